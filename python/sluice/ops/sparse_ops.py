"""Sparse tensors: how they are stored, merged and made dense."""

from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework import sparse_tensor
from sluice.framework.op_builder import apply_op
from sluice.ops import array_ops
from sluice.ops import math_ops


def _checked(value):
    if isinstance(value, sparse_tensor.SparseTensorValue):
        return sparse_tensor.SparseTensor(*value)
    if not isinstance(value, sparse_tensor.SparseTensor):
        raise TypeError("Input must be a SparseTensor.")
    return value


def sparse_to_dense(sparse_indices, output_shape, sparse_values,
                    default_value=0, validate_indices=True, name=None):
    return apply_op("SparseToDense", name, sparse_indices=sparse_indices,
                    output_shape=output_shape, sparse_values=sparse_values,
                    default_value=default_value,
                    validate_indices=validate_indices)


def sparse_tensor_to_dense(sp_input, default_value=None,
                           validate_indices=True, name=None):
    sp_input = _checked(sp_input)
    if default_value is None:
        default_value = array_ops.zeros([], dtype=sp_input.dtype)
    return sparse_to_dense(sp_input.indices, sp_input.dense_shape,
                           sp_input.values, default_value=default_value,
                           validate_indices=validate_indices, name=name)


def sparse_reorder(sp_input, name=None):
    """The same with its indices in row-major order."""
    sp_input = _checked(sp_input)
    indices, values = apply_op(
        "SparseReorder", name, input_indices=sp_input.indices,
        input_values=sp_input.values, input_shape=sp_input.dense_shape)
    if sp_input.get_shape().is_fully_defined():
        shape = sp_input.dense_shape
    else:
        shape = array_ops.identity(sp_input.dense_shape)
    return sparse_tensor.SparseTensor(indices, values, shape)


def sparse_merge(sp_ids, sp_values, vocab_size, name=None,
                 already_sorted=False):
    """A tensor whose last dimensions are the values of `sp_ids`."""
    if isinstance(sp_ids, (list, tuple)):
        sp_ids = [_checked(ids) for ids in sp_ids]
    else:
        sp_ids = [_checked(sp_ids)]
        vocab_size = [vocab_size]
    sp_values = _checked(sp_values)
    if len(sp_ids) != len(vocab_size):
        raise ValueError("sp_ids and vocab_size have to have equal lengths.")
    with ops.name_scope(name, "SparseMerge", list(sp_ids) + [sp_values]):
        columns = []
        for ids in sp_ids:
            values = ids.values
            if values.dtype != dtypes.int64:
                values = math_ops.cast(values, dtypes.int64)
            columns.append(array_ops.expand_dims(values, axis=1))
        sizes = [math_ops.cast(size, dtypes.int64) for size in vocab_size]
        # All but the last dimension of the ids stay.
        indices = array_ops.concat([sp_ids[0].indices[:, :-1]] + columns,
                                   axis=1)
        shape = array_ops.concat([sp_ids[0].dense_shape[:-1], sizes], axis=0)
        result = sparse_tensor.SparseTensor(indices, sp_values.values, shape)
        return result if already_sorted else sparse_reorder(result)


def serialize_sparse(sp_input, name=None, out_type=dtypes.string):
    sp_input = _checked(sp_input)
    return apply_op("SerializeSparse", name, sparse_indices=sp_input.indices,
                    sparse_values=sp_input.values,
                    sparse_shape=sp_input.dense_shape, out_type=out_type)


def serialize_many_sparse(sp_input, name=None, out_type=dtypes.string):
    sp_input = _checked(sp_input)
    return apply_op("SerializeManySparse", name,
                    sparse_indices=sp_input.indices,
                    sparse_values=sp_input.values,
                    sparse_shape=sp_input.dense_shape, out_type=out_type)


def _from_parts(parts, rank):
    indices, values, shape = parts
    indices.set_shape([None, rank])
    shape.set_shape([rank])
    return sparse_tensor.SparseTensor(indices, values, shape)


def deserialize_many_sparse(serialized_sparse, dtype, rank=None, name=None):
    return _from_parts(
        apply_op("DeserializeManySparse", name,
                 serialized_sparse=serialized_sparse, dtype=dtype), rank)


def add_sparse_to_tensors_map(sp_input, container=None, shared_name=None,
                              name=None):
    """A handle by which take_many_sparse_from_tensors_map finds it again."""
    sp_input = _checked(sp_input)
    return apply_op("AddSparseToTensorsMap", name,
                    sparse_indices=sp_input.indices,
                    sparse_values=sp_input.values,
                    sparse_shape=sp_input.dense_shape, container=container,
                    shared_name=shared_name)


def add_many_sparse_to_tensors_map(sp_input, container=None, shared_name=None,
                                   name=None):
    """A handle for each row."""
    sp_input = _checked(sp_input)
    return apply_op("AddManySparseToTensorsMap", name,
                    sparse_indices=sp_input.indices,
                    sparse_values=sp_input.values,
                    sparse_shape=sp_input.dense_shape, container=container,
                    shared_name=shared_name)


def take_many_sparse_from_tensors_map(sparse_map_op, sparse_handles,
                                      rank=None, name=None):
    """The tensors behind handles that `sparse_map_op` made, as a batch."""
    if not isinstance(sparse_map_op, ops.Operation):
        raise TypeError("sparse_map_op be an Operation")
    if sparse_map_op.type not in ("AddSparseToTensorsMap",
                                  "AddManySparseToTensorsMap"):
        raise TypeError(
            "sparse_map_op must be one of AddSparseToTensorsMap or "
            "AddSparseToTensorsMap. Instead, found `%s`." %
            sparse_map_op.type)
    with ops.colocate_with(sparse_map_op):
        shared_name = sparse_map_op.get_attr("shared_name") or \
            sparse_map_op.name
        parts = apply_op(
            "TakeManySparseFromTensorsMap", name,
            sparse_handles=sparse_handles,
            dtype=sparse_map_op.get_attr("T"),
            container=sparse_map_op.get_attr("container"),
            shared_name=shared_name)
    return _from_parts(parts, rank)


def sparse_fill_empty_rows(sp_input, default_value, name=None):
    """(filled, which rows were empty): each has `default_value` at least."""
    sp_input = _checked(sp_input)
    with ops.name_scope(name, "SparseFillEmptyRows", [sp_input]):
        default_value = ops.convert_to_tensor(
            default_value, dtype=sp_input.values.dtype)
        filled = apply_op("SparseFillEmptyRows", None,
                          indices=sp_input.indices, values=sp_input.values,
                          dense_shape=sp_input.dense_shape,
                          default_value=default_value)
        return (sparse_tensor.SparseTensor(filled[0], filled[1],
                                           sp_input.dense_shape), filled[2])


def sparse_retain(sp_input, to_retain):
    """The values for which the vector of bools says so."""
    sp_input = _checked(sp_input)
    to_retain = ops.convert_to_tensor(to_retain)
    if sp_input.values.shape.ndims is not None:
        to_retain.shape.assert_is_compatible_with(sp_input.values.shape)
    where = array_ops.reshape(array_ops.where(to_retain), [-1])
    return sparse_tensor.SparseTensor(
        array_ops.gather(sp_input.indices, where),
        array_ops.gather(sp_input.values, where),
        array_ops.identity(sp_input.dense_shape))


def sparse_transpose(sp_input, perm=None, name=None):
    with ops.name_scope(name, "SparseTranspose", [sp_input]):
        sp_input = _checked(sp_input)
        if perm is None:
            rank = array_ops.size(sp_input.dense_shape)
            perm = (rank - 1) - math_ops.range(0, rank, 1)
        indices = array_ops.transpose(array_ops.gather(
            array_ops.transpose(sp_input.indices), perm))
        shape = array_ops.gather(sp_input.dense_shape, perm)
        return sparse_reorder(sparse_tensor.SparseTensor(
            indices, sp_input.values, shape))


def sparse_to_indicator(sp_input, vocab_size, name=None):
    """A dense tensor of bools: which ids are there in each row."""
    sp_input = _checked(sp_input)
    with ops.name_scope(name, "SparseToIndicator", [sp_input]) as name:
        there = sparse_tensor.SparseTensor(
            sp_input.indices,
            array_ops.fill(array_ops.shape(sp_input.values), True),
            sp_input.dense_shape)
        merged = sparse_merge(sp_input, there, vocab_size)
        return sparse_tensor_to_dense(merged, default_value=False,
                                      validate_indices=False, name=name)


def sparse_mask(a, mask_indices, name=None):
    """Slices without the rows of `mask_indices`."""
    with ops.name_scope(name, "sparse_mask", [a, mask_indices]):
        left, where = array_ops.setdiff1d(a.indices, mask_indices)
        values = array_ops.gather(a.values, where, name=name)
        return ops.IndexedSlices(values, left, a.dense_shape)


def sparse_tensor_dense_matmul(sp_a, b, adjoint_a=False, adjoint_b=False,
                               name=None):
    """A sparse matrix times a dense one."""
    sp_a = _checked(sp_a)
    with ops.name_scope(name, "SparseTensorDenseMatMul",
                        [sp_a.indices, sp_a.values, b]):
        b = ops.convert_to_tensor(b, name="b")
        return apply_op("SparseTensorDenseMatMul", None,
                        a_indices=sp_a.indices, a_values=sp_a.values,
                        a_shape=sp_a.dense_shape, b=b, adjoint_a=adjoint_a,
                        adjoint_b=adjoint_b)
