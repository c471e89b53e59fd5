"""Tables: values by key, filled once or at any time."""

import uuid

from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework import sparse_tensor
from sluice.framework import tensor_shape
from sluice.framework.op_builder import apply_op, build
from sluice.platform import compat
from sluice.training.saveable_objects import SaveableObject, SaveSpec


def _check_dtypes(key_dtype, value_dtype, table):
    if key_dtype != table.key_dtype:
        raise TypeError("Invalid key dtype, expected %s but got %s." %
                        (table.key_dtype, key_dtype))
    if value_dtype != table.value_dtype:
        raise TypeError("Invalid value dtype, expected %s but got %s." %
                        (table.value_dtype, value_dtype))


class LookupInterface(object):
    """What all tables have."""

    _key_shape = tensor_shape.TensorShape([])

    def __init__(self, key_dtype, value_dtype):
        self._key_dtype = dtypes.as_dtype(key_dtype)
        self._value_dtype = dtypes.as_dtype(value_dtype)

    key_dtype = property(lambda self: self._key_dtype)
    value_dtype = property(lambda self: self._value_dtype)
    name = property(lambda self: self._name)
    resource_handle = property(lambda self: self._resource_handle)

    def _set_handle(self, handle):
        self._resource_handle = handle
        self._name = handle.op.name.split("/")[-1]

    def size(self, name=None):
        raise NotImplementedError

    def lookup(self, keys, name=None):
        raise NotImplementedError

    def _table_op(self, op_type, scope, among=(), **inputs):
        """An op on the table in a scope, as TensorFlow names them."""
        with ops.name_scope(scope[0], scope[1],
                            [self._resource_handle] + list(among)):
            return apply_op(op_type, None,
                            table_handle=self._resource_handle, **inputs)


class InitializableLookupTableBase(LookupInterface):
    """A table that an operation fills, once."""

    def __init__(self, default_value, initializer):
        super().__init__(initializer.key_dtype, initializer.value_dtype)
        self._default_value = ops.convert_to_tensor(default_value,
                                                    dtype=self._value_dtype)
        self._default_value.get_shape().assert_is_compatible_with([])
        self._initializer = initializer
        self._set_handle(self._create_resource())
        self._init_op = initializer.initialize(self)

    default_value = property(lambda self: self._default_value)
    initializer = property(lambda self: self._init_op)
    init = property(lambda self: self._init_op)

    def _create_resource(self):
        raise NotImplementedError

    def size(self, name=None):
        return self._table_op("LookupTableSizeV2",
                              (name, "%s_Size" % self.name))

    def lookup(self, keys, name=None):
        """The values of keys, dense or sparse."""
        key_tensor = keys
        if isinstance(keys, sparse_tensor.SparseTensor):
            key_tensor = keys.values
        if keys.dtype.base_dtype != self._key_dtype:
            raise TypeError("Signature mismatch. Keys must be dtype %s, got "
                            "%s." % (self._key_dtype, keys.dtype))
        with ops.name_scope(name, "%s_Lookup" % self.name,
                            [self._resource_handle, key_tensor,
                             self._default_value]):
            values = apply_op("LookupTableFindV2", None,
                              table_handle=self._resource_handle,
                              keys=key_tensor,
                              default_value=self._default_value)
        values.set_shape(key_tensor.get_shape())
        if isinstance(keys, sparse_tensor.SparseTensor):
            return sparse_tensor.SparseTensor(keys.indices, values,
                                              keys.dense_shape)
        return values


class StaticHashTable(InitializableLookupTableBase):
    """A table that does not change once it is filled."""

    def __init__(self, initializer, default_value, name=None,
                 _shared_name=None):
        # Nobody else's, unless it is asked for.
        self._shared_name = "hash_table_%s" % uuid.uuid4() \
            if _shared_name is None else _shared_name
        self._op_name = name or "hash_table"
        super().__init__(default_value, initializer)

    def _create_resource(self):
        return apply_op("HashTableV2", self._op_name,
                        shared_name=self._shared_name,
                        key_dtype=self._key_dtype,
                        value_dtype=self._value_dtype)

    def export(self, name=None):
        """(keys, values), in no particular order."""
        return _with_shapes(self, apply_op(
            "LookupTableExportV2", name or "%s_Export" % self.name,
            table_handle=self._resource_handle, Tkeys=self._key_dtype,
            Tvalues=self._value_dtype))


def _with_shapes(table, exported):
    """As many keys as values; a key may be a vector."""
    if table._key_shape.ndims == 0:
        exported.keys.set_shape([None])
    exported.values.set_shape(tensor_shape.TensorShape([None]).concatenate(
        table._default_value.get_shape()))
    return exported


class HashTable(StaticHashTable):
    """The name that TensorFlow 1 programs use."""

    def __init__(self, initializer, default_value, shared_name=None,
                 name=None):
        super().__init__(initializer, default_value, name, shared_name or "")


class TableInitializerBase(object):

    def __init__(self, key_dtype, value_dtype):
        self._key_dtype = dtypes.as_dtype(key_dtype)
        self._value_dtype = dtypes.as_dtype(value_dtype)

    key_dtype = property(lambda self: self._key_dtype)
    value_dtype = property(lambda self: self._value_dtype)

    def initialize(self, table):
        raise NotImplementedError


class KeyValueTensorInitializer(TableInitializerBase):
    """Fills a table with given keys and values."""

    def __init__(self, keys, values, key_dtype=None, value_dtype=None,
                 name=None):
        self._keys = ops.convert_to_tensor(keys, dtype=key_dtype, name="keys")
        self._values = ops.convert_to_tensor(values, dtype=value_dtype,
                                             name="values")
        self._name = name or "key_value_init"
        if key_dtype is not None and dtypes.as_dtype(key_dtype) != \
                self._keys.dtype.base_dtype:
            raise TypeError("Invalid key dtype, expected %s but got %s." %
                            (key_dtype, self._keys.dtype))
        super().__init__(self._keys.dtype.base_dtype,
                         self._values.dtype.base_dtype)

    def initialize(self, table):
        _check_dtypes(self._keys.dtype, self._values.dtype, table)
        with ops.name_scope(self._name, values=(
                table.resource_handle, self._keys, self._values)):
            init = apply_op("LookupTableImportV2", None,
                            table_handle=table.resource_handle,
                            keys=self._keys, values=self._values)
        ops.add_to_collection(ops.GraphKeys.TABLE_INITIALIZERS, init)
        return init


class TextFileIndex(object):
    """What of a line is meant that is no column."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class TextFileInitializer(TableInitializerBase):
    """Fills a table with the lines of a file."""

    def __init__(self, filename, key_dtype, key_index, value_dtype,
                 value_index, vocab_size=None, delimiter="\t", name=None):
        if not isinstance(filename, ops.Tensor) and not filename:
            raise ValueError("Filename required for %s." % name)
        key_dtype = dtypes.as_dtype(key_dtype)
        value_dtype = dtypes.as_dtype(value_dtype)
        for what, index, dtype in (("Key", key_index, key_dtype),
                                   ("Value", value_index, value_dtype)):
            if index < -2:
                raise ValueError("Invalid %s index %s." %
                                 (what.lower(), index))
            if index == TextFileIndex.LINE_NUMBER and dtype != dtypes.int64:
                raise ValueError("Signature mismatch. %ss must be dtype %s, "
                                 "got %s." % (what, dtypes.int64, dtype))
            if index == TextFileIndex.WHOLE_LINE and \
                    not dtype.is_integer and dtype != dtypes.string:
                raise ValueError(
                    "Signature mismatch. %ss must be integer or string, got "
                    "%s." % (what, dtype))
        if vocab_size is not None and vocab_size <= 0:
            raise ValueError("Invalid vocab_size %s." % vocab_size)
        self._key_index, self._value_index = key_index, value_index
        self._vocab_size = vocab_size
        self._delimiter = delimiter
        self._name = name or "text_file_init"
        if not isinstance(filename, ops.Tensor):
            filename = compat.as_str_any(filename)
        with ops.device("CPU"):
            self._filename = ops.convert_to_tensor(filename, dtypes.string,
                                                   name="asset_path")
        super().__init__(key_dtype, value_dtype)

    def initialize(self, table):
        _check_dtypes(self.key_dtype, self.value_dtype, table)
        with ops.name_scope(self._name, values=(table.resource_handle,)):
            init = build("InitializeTableFromTextFileV2", None,
                         table_handle=table.resource_handle,
                         filename=self._filename, key_index=self._key_index,
                         value_index=self._value_index,
                         vocab_size=-1 if self._vocab_size is None
                         else self._vocab_size, delimiter=self._delimiter)
        ops.add_to_collection(ops.GraphKeys.TABLE_INITIALIZERS, init)
        # Exported programs take the file along.
        ops.add_to_collection(ops.GraphKeys.ASSET_FILEPATHS, self._filename)
        return init


class TextFileStringTableInitializer(TextFileInitializer):
    """From line numbers to lines."""

    def __init__(self, filename, key_column_index=TextFileIndex.LINE_NUMBER,
                 value_column_index=TextFileIndex.WHOLE_LINE, vocab_size=None,
                 delimiter="\t", name="text_file_string_table_init"):
        super().__init__(filename, dtypes.int64, key_column_index,
                         dtypes.string, value_column_index, vocab_size,
                         delimiter, name)


class TextFileIdTableInitializer(TextFileInitializer):
    """From lines to line numbers."""

    def __init__(self, filename, key_column_index=TextFileIndex.WHOLE_LINE,
                 value_column_index=TextFileIndex.LINE_NUMBER,
                 vocab_size=None, delimiter="\t",
                 name="text_file_id_table_init", key_dtype=dtypes.string):
        super().__init__(filename, key_dtype, key_column_index, dtypes.int64,
                         value_column_index, vocab_size, delimiter, name)


# ---- Tables that change ----

class _TableSaveable(SaveableObject):
    """Saves all keys and values of a table."""

    def __init__(self, table, name):
        keys, values = table.export()
        specs = [SaveSpec(keys, "", name + "-keys"),
                 SaveSpec(values, "", name + "-values")]
        super().__init__(table, specs, name)

    def restore(self, restored_tensors, restored_shapes):
        table = self.op
        with ops.name_scope("%s_table_restore" % self.name):
            with ops.colocate_with(table.resource_handle):
                return apply_op("LookupTableImportV2", None,
                                table_handle=table.resource_handle,
                                keys=restored_tensors[0],
                                values=restored_tensors[1])


class _MutableTable(LookupInterface):

    def _table_op(self, op_type, scope, among=(), **inputs):
        with ops.name_scope(scope[0], scope[1],
                            [self._resource_handle] + list(among)):
            with ops.colocate_with(self._resource_handle):
                return apply_op(op_type, None,
                                table_handle=self._resource_handle, **inputs)

    def _set_up(self, handle, checkpoint):
        self._set_handle(handle)
        if checkpoint:
            saveable = _TableSaveable(self, handle.op.name)
            ops.add_to_collection(ops.GraphKeys.SAVEABLE_OBJECTS, saveable)

    def size(self, name=None):
        return self._table_op("LookupTableSizeV2",
                              (name, "%s_Size" % self.name))

    def lookup(self, keys, name=None):
        keys = ops.convert_to_tensor(keys, dtype=self._key_dtype, name="keys")
        return self._table_op(
            "LookupTableFindV2", (name, "%s_lookup_table_find" % self.name),
            [keys, self._default_value], keys=keys,
            default_value=self._default_value)

    def insert(self, keys, values, name=None):
        """Adds or replaces."""
        keys = ops.convert_to_tensor(keys, self._key_dtype, name="keys")
        values = ops.convert_to_tensor(values, self._value_dtype,
                                       name="values")
        return self._table_op(
            "LookupTableInsertV2",
            (name, "%s_lookup_table_insert" % self.name), [keys, values],
            keys=keys, values=values)

    def remove(self, keys, name=None):
        """Takes keys away; those that are not there do not matter."""
        if not isinstance(keys, ops.Tensor):
            keys = ops.convert_to_tensor(keys, self._key_dtype, name="keys")
        if keys.dtype.base_dtype != self._key_dtype:
            raise TypeError("Signature mismatch. Keys must be dtype %s, got "
                            "%s." % (self._key_dtype, keys.dtype))
        with ops.name_scope(name, "%s_lookup_table_remove" % self.name,
                            [self._resource_handle, keys,
                             self._default_value]):
            return apply_op("LookupTableRemoveV2", None,
                            table_handle=self._resource_handle, keys=keys)

    def export(self, name=None):
        """(keys, values), in no particular order."""
        return _with_shapes(self, self._table_op(
            "LookupTableExportV2",
            (name, "%s_lookup_table_export_values" % self.name),
            Tkeys=self._key_dtype, Tvalues=self._value_dtype))


class MutableHashTable(_MutableTable):
    """A table that steps fill."""

    def __init__(self, key_dtype, value_dtype, default_value,
                 name="MutableHashTable", checkpoint=True):
        super().__init__(key_dtype, value_dtype)
        self._default_value = ops.convert_to_tensor(default_value,
                                                    dtype=value_dtype)
        shape = self._default_value.get_shape()
        attrs = dict(key_dtype=self._key_dtype, value_dtype=self._value_dtype,
                     use_node_name_sharing=bool(checkpoint))
        if shape.ndims == 0:
            handle = apply_op("MutableHashTableV2", name, **attrs)
        else:
            handle = apply_op("MutableHashTableOfTensorsV2", name,
                              value_shape=shape, **attrs)
        self._set_up(handle, checkpoint)


class MutableDenseHashTable(_MutableTable):
    """The same with two keys that must not be used."""

    def __init__(self, key_dtype, value_dtype, default_value, empty_key,
                 deleted_key, initial_num_buckets=None,
                 name="MutableDenseHashTable", checkpoint=True):
        super().__init__(key_dtype, value_dtype)
        self._default_value = ops.convert_to_tensor(
            default_value, dtype=value_dtype, name="default_value")
        empty_key = ops.convert_to_tensor(empty_key, dtype=key_dtype,
                                          name="empty_key")
        deleted_key = ops.convert_to_tensor(deleted_key, dtype=key_dtype,
                                            name="deleted_key")
        self._key_shape = empty_key.get_shape()
        handle = apply_op(
            "MutableDenseHashTableV2", name, empty_key=empty_key,
            deleted_key=deleted_key, value_dtype=self._value_dtype,
            value_shape=self._default_value.get_shape(),
            initial_num_buckets=initial_num_buckets,
            use_node_name_sharing=bool(checkpoint))
        self._set_up(handle, checkpoint)

    def insert_or_assign(self, keys, values, name=None):
        return self.insert(keys, values, name)

    def erase(self, keys, name=None):
        return self.remove(keys, name)


DenseHashTable = MutableDenseHashTable
