"""Vocabularies: tables from words to ids and back, with buckets for words that
no table has."""

import collections

from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework import sparse_tensor
from sluice.framework.op_builder import apply_op
from sluice.ops import array_ops
from sluice.ops import math_ops
from sluice.ops.table_ops import (
    HashTable, KeyValueTensorInitializer, LookupInterface, StaticHashTable,
    TextFileIdTableInitializer, TextFileIndex,
    TextFileStringTableInitializer)

HasherSpec = collections.namedtuple("HasherSpec", ["hasher", "key"])
FastHashSpec = HasherSpec("fasthash", None)


class StrongHashSpec(HasherSpec):

    __slots__ = ()

    def __new__(cls, key):
        if len(key) != 2:
            raise ValueError("key must have size 2, got %s." % len(key))
        if not all(isinstance(part, int) for part in key):
            raise TypeError("Invalid key %s. Must be unsigned integer "
                            "values." % (key,))
        return super().__new__(cls, "stronghash", list(key))


class IdTableWithHashBuckets(LookupInterface):
    """A table of ids, with hashes as ids of all other keys."""

    def __init__(self, table, num_oov_buckets, hasher_spec=FastHashSpec,
                 name=None, key_dtype=None):
        if not isinstance(hasher_spec, HasherSpec):
            raise TypeError("hasher_spec must be of type HasherSpec, got %s" %
                            hasher_spec)
        if hasher_spec.hasher not in ("fasthash", "stronghash", "legacy"):
            raise ValueError("Unknown hasher %s" % hasher_spec.hasher)
        if table is None:
            if num_oov_buckets <= 0:
                raise ValueError("oov_buckets must be > 0 if no table is "
                                 "supplied.")
            key_dtype = key_dtype or dtypes.string
        else:
            key_dtype = key_dtype or table.key_dtype
        key_dtype = dtypes.as_dtype(key_dtype)
        if key_dtype not in (dtypes.int32, dtypes.int64, dtypes.string):
            raise TypeError("Invalid key_dtype: %s" % key_dtype)
        if table is not None and table.value_dtype != dtypes.int64:
            raise TypeError("Values assigned to keys must be of int64, but "
                            "are of %s" % table.value_dtype)
        super().__init__(key_dtype, dtypes.int64)
        self._table = table
        self._num_oov_buckets = num_oov_buckets
        self._hasher_spec = hasher_spec
        if name:
            self._name = name.split("/")[-1]
        else:
            self._name = "hash_bucket" if table is None else table.name

    @property
    def resource_handle(self):
        return None if self._table is None else self._table.resource_handle

    @property
    def initializer(self):
        if self._table is not None:
            return self._table.initializer
        from sluice.ops import control_flow_ops
        return control_flow_ops.no_op()

    init = initializer

    def size(self, name=None):
        with ops.name_scope(name, "%s_Size" % self.name):
            if self._table is None:
                return ops.convert_to_tensor(self._num_oov_buckets,
                                             dtypes.int64)
            return self._table.size() + self._num_oov_buckets

    def _hash(self, words):
        spec = self._hasher_spec
        if spec.hasher == "stronghash":
            return apply_op("StringToHashBucketStrong", "hash_bucket",
                            input=words, num_buckets=self._num_oov_buckets,
                            key=spec.key)
        if spec.hasher == "legacy":
            return apply_op("StringToHashBucket", "hash_bucket",
                            string_tensor=words,
                            num_buckets=self._num_oov_buckets)
        return apply_op("StringToHashBucketFast", "hash_bucket", input=words,
                        num_buckets=self._num_oov_buckets)

    def lookup(self, keys, name=None):
        if keys.dtype.base_dtype != self._key_dtype:
            raise TypeError("Signature mismatch. Keys must be dtype %s, got "
                            "%s." % (self._key_dtype, keys.dtype))
        values = keys
        if isinstance(keys, sparse_tensor.SparseTensor):
            values = keys.values
        if self._table is not None and \
                self._table.key_dtype.base_dtype == dtypes.int64:
            values = math_ops.cast(values, dtypes.int64)
        if self._num_oov_buckets == 0:
            ids = self._table.lookup(values, name=name)
        else:
            with ops.name_scope(name, "%s_Lookup" % self.name):
                words = values
                if words.dtype.base_dtype != dtypes.string:
                    words = apply_op("AsString", None, input=words)
                buckets = self._hash(words)
                if self._table is None:
                    ids = buckets
                else:
                    ids = self._table.lookup(values)
                    buckets = math_ops.add(buckets, self._table.size())
                    known = math_ops.not_equal(ids,
                                               self._table.default_value)
                    ids = array_ops.where_v2(known, ids, buckets)
        if isinstance(keys, sparse_tensor.SparseTensor):
            return sparse_tensor.SparseTensor(keys.indices, ids,
                                              keys.dense_shape)
        return ids


class StaticVocabularyTable(IdTableWithHashBuckets):
    """A vocabulary whose ids are 0, 1, 2…, with buckets behind them."""

    def __init__(self, initializer, num_oov_buckets, lookup_key_dtype=None,
                 name=None):
        if num_oov_buckets <= 0:
            raise ValueError("oov_buckets must be > 0.")
        table = None
        if initializer is not None:
            if dtypes.int64 != initializer.value_dtype:
                raise TypeError("Invalid value dtype, expected %s but got "
                                "%s." % (dtypes.int64,
                                         initializer.value_dtype))
            table = StaticHashTable(initializer, -1, name)
        super().__init__(table, num_oov_buckets, FastHashSpec, name,
                         lookup_key_dtype)


# ---- Vocabularies ----

def _check_oov(num_oov_buckets):
    if num_oov_buckets < 0:
        raise ValueError("num_oov_buckets must be greater or equal than 0, "
                         "got %d." % num_oov_buckets)


def _file_table(init, default_value, file, vocab_size, key_column,
                value_column):
    """Programs that read the same columns of a file share a table."""
    if isinstance(file, ops.Tensor):
        shared_name = ""
    elif vocab_size:
        shared_name = "hash_table_%s_%d_%s_%s" % (file, vocab_size,
                                                  key_column, value_column)
    else:
        shared_name = "hash_table_%s_%s_%s" % (file, key_column, value_column)
    return HashTable(init, default_value, shared_name)


def index_table_from_file(vocabulary_file=None, num_oov_buckets=0,
                          vocab_size=None, default_value=-1,
                          hasher_spec=FastHashSpec, key_dtype=dtypes.string,
                          name=None,
                          key_column_index=TextFileIndex.WHOLE_LINE,
                          value_column_index=TextFileIndex.LINE_NUMBER,
                          delimiter="\t"):
    """From the lines of a file to their numbers."""
    if vocabulary_file is None or (isinstance(vocabulary_file, str) and
                                   not vocabulary_file):
        raise ValueError("vocabulary_file must be specified and must not be "
                         "empty.")
    _check_oov(num_oov_buckets)
    if vocab_size is not None and vocab_size < 1:
        raise ValueError("`vocab_file_size` must be greater than 0 if "
                         "specified, got %s" % vocab_size)
    key_dtype = dtypes.as_dtype(key_dtype)
    if key_dtype != dtypes.string and not key_dtype.is_integer:
        raise TypeError("Only integer and string keys are supported.")
    with ops.name_scope(name, "string_to_index"):
        with ops.name_scope(None, "hash_table"):
            init = TextFileIdTableInitializer(
                vocabulary_file, vocab_size=vocab_size,
                key_dtype=dtypes.int64 if key_dtype.is_integer else key_dtype,
                name="table_init", key_column_index=key_column_index,
                value_column_index=value_column_index, delimiter=delimiter)
            table = _file_table(init, default_value, vocabulary_file,
                                vocab_size, key_column_index,
                                value_column_index)
        if num_oov_buckets:
            table = IdTableWithHashBuckets(
                table, num_oov_buckets=num_oov_buckets,
                hasher_spec=hasher_spec, key_dtype=key_dtype)
    return table


def _numbers_below_size_of(keys):
    size = array_ops.size(keys)
    return math_ops.cast(math_ops.range(size), dtypes.int64)


def index_table_from_tensor(vocabulary_list=None, num_oov_buckets=0,
                            default_value=-1, hasher_spec=FastHashSpec,
                            dtype=dtypes.string, name=None, mapping=None):
    """From the elements of a list to their numbers."""
    vocabulary_list = mapping if vocabulary_list is None else vocabulary_list
    if vocabulary_list is None:
        raise ValueError("vocabulary_list must be specified.")
    _check_oov(num_oov_buckets)
    dtype = dtypes.as_dtype(dtype)
    if not dtype.is_integer and dtype != dtypes.string:
        raise TypeError("Only integer and string keys are supported.")
    with ops.name_scope(name, "string_to_index"):
        keys = ops.convert_to_tensor(vocabulary_list)
        if keys.dtype.is_integer != dtype.is_integer:
            raise ValueError("Expected %s, got %s." % (
                "integer" if dtype.is_integer else "non-integer", keys.dtype))
        if not dtype.is_integer and keys.dtype.base_dtype != dtype:
            raise ValueError("Expected %s, got %s." % (dtype, keys.dtype))
        values = _numbers_below_size_of(keys)
        with ops.name_scope(None, "hash_table"):
            if keys.dtype.is_integer:
                keys = math_ops.cast(keys, dtypes.int64)
            init = KeyValueTensorInitializer(
                keys, values, keys.dtype.base_dtype, dtypes.int64,
                name="table_init")
            table = StaticHashTable(init, default_value)
        if num_oov_buckets:
            table = IdTableWithHashBuckets(
                table, num_oov_buckets=num_oov_buckets,
                hasher_spec=hasher_spec, key_dtype=dtype)
    return table


def index_to_string_table_from_file(
        vocabulary_file, vocab_size=None, default_value="UNK", name=None,
        key_column_index=TextFileIndex.LINE_NUMBER,
        value_column_index=TextFileIndex.WHOLE_LINE, delimiter="\t"):
    """From line numbers to the lines of a file."""
    if vocabulary_file is None or (isinstance(vocabulary_file, str) and
                                   not vocabulary_file):
        raise ValueError("vocabulary_file must be specified and must not be "
                         "empty.")
    if vocab_size is not None and vocab_size < 1:
        raise ValueError("vocab_size must be greater than 0, got %d." %
                         vocab_size)
    with ops.name_scope(name, "index_to_string"):
        init = TextFileStringTableInitializer(
            vocabulary_file, vocab_size=vocab_size, name="table_init",
            key_column_index=key_column_index,
            value_column_index=value_column_index, delimiter=delimiter)
        return _file_table(init, default_value, vocabulary_file, vocab_size,
                           key_column_index, value_column_index)


def index_to_string_table_from_tensor(vocabulary_list=None,
                                      default_value="UNK", name=None,
                                      mapping=None):
    """From numbers to the elements of a list."""
    vocabulary_list = mapping if vocabulary_list is None else vocabulary_list
    if vocabulary_list is None:
        raise ValueError("vocabulary_list must be specified.")
    with ops.name_scope(name, "index_to_string"):
        strings = ops.convert_to_tensor(vocabulary_list, dtypes.string)
        keys = _numbers_below_size_of(strings)
        init = KeyValueTensorInitializer(keys, strings, dtypes.int64,
                                         dtypes.string, name="table_init")
        return StaticHashTable(init, default_value)


def string_to_index(tensor, mapping, default_value=-1, name=None):
    table = index_table_from_tensor(mapping, default_value=default_value,
                                    name=name)
    return table.lookup(tensor)


def index_to_string(tensor, mapping, default_value="UNK", name=None):
    table = index_to_string_table_from_tensor(
        mapping, default_value=default_value, name=name)
    return table.lookup(tensor)
