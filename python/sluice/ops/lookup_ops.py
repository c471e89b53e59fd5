"""Tables and vocabularies, under the name of TensorFlow's module."""

from sluice.ops.table_ops import (  # noqa: F401
    DenseHashTable, HashTable, InitializableLookupTableBase,
    KeyValueTensorInitializer, LookupInterface, MutableDenseHashTable,
    MutableHashTable, StaticHashTable, TableInitializerBase,
    TextFileIdTableInitializer, TextFileIndex, TextFileInitializer,
    TextFileStringTableInitializer)
from sluice.ops.vocabulary_ops import (  # noqa: F401
    FastHashSpec, HasherSpec, IdTableWithHashBuckets, StaticVocabularyTable,
    StrongHashSpec, index_table_from_file, index_table_from_tensor,
    index_to_string, index_to_string_table_from_file,
    index_to_string_table_from_tensor, string_to_index)
from sluice.training.resources import (  # noqa: F401
    initialize_all_tables, tables_initializer)
