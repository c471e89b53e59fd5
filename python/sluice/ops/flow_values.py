"""What a loop or cond carries: any structure outside, flat tensors inside."""

from sluice.framework import nest
from sluice.framework import sparse_tensor
from sluice.framework import tensor_shape
from sluice.ops import tensor_array_ops


def tensors_of(structure):
    """What goes through, one by one; a TensorArray goes as its flow."""
    return [part for value in nest.flatten(structure)
            for part in _parts(value)]


def with_tensors(structure, tensors):
    """The same structure around others, in the order of tensors_of()."""
    rest = iter(tensors)
    return nest.pack_sequence_as(structure, [
        _whole(value, [next(rest) for _ in _parts(value)])
        for value in nest.flatten(structure)])


def shapes_of(structure, tensors, invariants=None):
    """The shapes that `tensors` keep in a loop, as given or as they are."""
    values = nest.flatten(structure)
    given = [None] * len(values) if invariants is None else \
        nest.flatten(invariants)
    rest = iter(tensors)
    return [shape for value, invariant in zip(values, given)
            for shape in _shapes(value, [next(rest) for _ in _parts(value)],
                                 invariant)]


def assert_same_structure(first, second):
    nest.assert_same_structure(first, second)
    for a, b in zip(nest.flatten(first), nest.flatten(second)):
        if _is_sparse(a) != _is_sparse(b):
            raise TypeError("The two structures don't have the same nested "
                            "structure: %s is in the place of %s" % (b, a))


def _is_sparse(value):
    return isinstance(value, sparse_tensor.SparseTensor)


def _parts(value):
    if _is_sparse(value):
        return [value.indices, value.values, value.dense_shape]
    if isinstance(value, tensor_array_ops.TensorArray):
        return [value.flow]
    return [value]


def _whole(value, parts):
    if _is_sparse(value):
        return sparse_tensor.SparseTensor(*parts)
    if isinstance(value, tensor_array_ops.TensorArray):
        return tensor_array_ops.build_ta_with_new_flow(value, parts[0])
    return parts[0]


def _shapes(value, parts, invariant):
    if _is_sparse(value):
        # The number of its values may change; the invariant is that of the
        # vector of its sizes.
        sizes = parts[2].shape if invariant is None else \
            tensor_shape.as_shape(invariant)
        rank, = sizes.with_rank(1).as_list()
        return [tensor_shape.TensorShape(dims)
                for dims in ([None, rank], [None], [rank])]
    return [parts[0].shape if invariant is None else
            tensor_shape.as_shape(invariant)]
