"""tf.lookup."""

import types as _types

from sluice.ops.lookup_ops import DenseHashTable as _DenseHashTable
from sluice.ops.lookup_ops import (  # noqa: F401
    KeyValueTensorInitializer, StaticHashTable, StaticVocabularyTable,
    TextFileIndex, TextFileInitializer)

experimental = _types.SimpleNamespace(DenseHashTable=_DenseHashTable)
