"""tf.contrib.lookup."""

from sluice.framework import dtypes
from sluice.ops import lookup_ops
from sluice.ops.lookup_ops import (  # noqa: F401
    FastHashSpec, HasherSpec, HashTable, IdTableWithHashBuckets,
    InitializableLookupTableBase, KeyValueTensorInitializer, LookupInterface,
    MutableDenseHashTable, MutableHashTable, StrongHashSpec,
    TableInitializerBase, TextFileIdTableInitializer, TextFileIndex,
    TextFileInitializer, TextFileStringTableInitializer, index_table_from_file,
    index_to_string, index_to_string_table_from_file, string_to_index)


def index_table_from_tensor(mapping, num_oov_buckets=0, default_value=-1,
                            hasher_spec=FastHashSpec, dtype=dtypes.string,
                            name=None):
    if mapping is None:
        raise ValueError("mapping must be specified.")
    return lookup_ops.index_table_from_tensor(
        mapping, num_oov_buckets, default_value, hasher_spec, dtype, name)


def index_to_string_table_from_tensor(mapping, default_value="UNK",
                                      name=None):
    if mapping is None:
        raise ValueError("mapping must be specified.")
    return lookup_ops.index_to_string_table_from_tensor(mapping,
                                                        default_value, name)


def string_to_index_table_from_file(vocabulary_file=None, num_oov_buckets=0,
                                    vocab_size=None, default_value=-1,
                                    hasher_spec=FastHashSpec, name=None):
    return index_table_from_file(vocabulary_file, num_oov_buckets, vocab_size,
                                 default_value, hasher_spec,
                                 key_dtype=dtypes.string, name=name)


def string_to_index_table_from_tensor(mapping, num_oov_buckets=0,
                                      default_value=-1,
                                      hasher_spec=FastHashSpec, name=None):
    return index_table_from_tensor(mapping, num_oov_buckets, default_value,
                                   hasher_spec, dtypes.string, name)
