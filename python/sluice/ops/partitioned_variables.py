"""Variables in several parts, and functions that say in how many."""

import math

from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework import tensor_shape
from sluice.ops import array_ops


class PartitionedVariable(object):
    """The parts of a variable that is cut along one dimension."""

    def __init__(self, name, shape, dtype, variable_list, partitions):
        if not isinstance(variable_list, (list, tuple)):
            raise TypeError("variable_list is not a list or tuple: %s" %
                            variable_list)
        if not isinstance(partitions, (list, tuple)):
            raise TypeError("partitions is not a list or tuple: %s" %
                            partitions)
        self._name = name
        self._shape = tensor_shape.as_shape(shape)
        self._dtype = dtypes.as_dtype(dtype)
        self._variable_list = list(variable_list)
        self._partitions = list(partitions)

    name = property(lambda self: self._name)
    dtype = property(lambda self: self._dtype)
    shape = property(lambda self: self._shape)
    op = property(lambda self: [v.op for v in self._variable_list])

    def get_shape(self):
        return self._shape

    def __iter__(self):
        return iter(self._variable_list)

    def __len__(self):
        axes = self._axes()
        return self._partitions[axes[0]] if axes else 1

    def _axes(self):
        return [i for i, p in enumerate(self._partitions) if p > 1]

    def _get_variable_list(self):
        return self._variable_list

    def _get_partitions(self):
        return self._partitions

    @property
    def graph(self):
        return self._variable_list[0].graph

    def as_tensor(self):
        """The whole variable."""
        with ops.control_dependencies(None):
            axes = self._axes()
            with ops.name_scope(self._name + "/ConcatPartitions/"):
                whole = self._variable_list[0] if not axes else \
                    array_ops.concat(self._variable_list, axes[0])
            with ops.name_scope(None):
                return array_ops.identity(whole, name=self._name)

    def assign(self, value, use_locking=False, name=None, read_value=True):
        axes = self._axes()
        axis = axes[0] if axes else 0
        sizes = [v.shape.as_list()[axis] for v in self._variable_list]
        parts = array_ops.split(value, sizes, axis=axis)
        assigned = [v.assign(p, use_locking, name, read_value)
                    for v, p in zip(self._variable_list, parts)]
        return assigned if read_value else [a.op for a in assigned]


class PartitionInfo(object):
    """Where the part that an initializer fills lies in the whole."""

    def __init__(self, full_shape, var_offset):
        self.full_shape = full_shape
        self.var_offset = var_offset

    def single_offset(self, shape):
        return self.var_offset[self.single_slice_dim(shape) or 0]

    def single_slice_dim(self, shape):
        cut = [i for i, (a, b) in enumerate(zip(shape, self.full_shape))
               if a != b]
        return cut[0] if cut else None


def slices(shape, partitions):
    """(offset, shape) of each part."""
    cut = [i for i, p in enumerate(partitions) if p > 1]
    if len(cut) > 1:
        raise ValueError(
            "Can only slice a variable along one dimension: shape: %s, "
            "partitioning: %s" % (tensor_shape.TensorShape(shape),
                                  partitions))
    axis = cut[0] if cut else 0
    count = partitions[axis] if partitions else 1
    offset = [0] * len(shape)
    for i in range(count):
        part = list(shape)
        part[axis] = shape[axis] // count + (i < shape[axis] % count)
        yield list(offset), part
        offset[axis] += part[axis]


def _to_tensor(value, dtype=None, name=None, as_ref=False):
    if dtype is not None and not dtype.is_compatible_with(value.dtype):
        raise ValueError(
            "Incompatible type conversion requested to type '%s' for variable "
            "of type '%s'" % (dtype.name, value.dtype.name))
    if as_ref:
        raise NotImplementedError(
            "PartitionedVariable doesn't support being used as a reference.")
    return value.as_tensor()


ops.register_tensor_conversion_function(PartitionedVariable, _to_tensor, 50)


def fixed_size_partitioner(num_shards, axis=0):
    def partitioner(shape, **unused):
        parts = [1] * shape.ndims
        parts[axis] = min(num_shards, shape.as_list()[axis])
        return parts
    return partitioner


def variable_axis_size_partitioner(max_shard_bytes, axis=0,
                                   bytes_per_string_element=16,
                                   max_shards=None):
    if max_shard_bytes < 1 or bytes_per_string_element < 1:
        raise ValueError(
            "Both max_shard_bytes and bytes_per_string_element must be "
            "positive.")
    if max_shards and max_shards < 1:
        raise ValueError("max_shards must be positive.")

    def partitioner(shape, dtype):
        dims = _known(shape).as_list()
        size = bytes_per_string_element if dtype.base_dtype == \
            dtypes.string else dtype.size
        for i, d in enumerate(dims):
            size *= d if i != axis else 1
        rows = max(1, math.floor(max_shard_bytes / size))
        shards = int(math.ceil(dims[axis] / rows))
        parts = [1] * len(dims)
        parts[axis] = min(max_shards, shards) if max_shards else shards
        return parts
    return partitioner


def min_max_variable_partitioner(max_partitions=1, axis=0,
                                 min_slice_size=256 << 10,
                                 bytes_per_string_element=16):
    def partitioner(shape, dtype):
        dims = _known(shape).as_list()
        size = bytes_per_string_element if dtype.base_dtype == \
            dtypes.string else dtype.size
        for d in dims:
            size *= d
        parts = [1] * len(dims)
        parts[axis] = max(1, min(dims[axis], max_partitions,
                                 int(math.ceil(size / min_slice_size))))
        return parts
    return partitioner


def _known(shape):
    shape = tensor_shape.as_shape(shape)
    if not shape.is_fully_defined():
        raise ValueError("shape is not fully defined: %s" % shape)
    return shape


def create_partitioned_variables(shape, slicing, initializer,
                                 dtype=dtypes.float32, trainable=True,
                                 collections=None, name=None, reuse=None):
    """The parts of a variable cut into slicing[i] along dimension i."""
    from sluice.ops import variable_scope
    if len(shape) != len(slicing):
        raise ValueError("The 'shape' and 'slicing' of a partitioned Variable "
                         "must have the length: shape: %s, slicing: %s" %
                         (shape, slicing))
    if len(shape) < 1:
        raise ValueError("A partitioned Variable must have rank at least 1: "
                         "shape: %s" % (shape,))
    with variable_scope.variable_scope(name, "PartitionedVariable",
                                       reuse=reuse) as scope, \
            ops.name_scope(None):
        return list(variable_scope._get_partitioned(
            scope.name, tensor_shape.as_shape(shape), initializer,
            lambda **unused: slicing, dtype=dtype, trainable=trainable,
            collections=collections, reuse=scope.reuse))
