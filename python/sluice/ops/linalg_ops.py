"""Matrices: diagonals, transposes, decompositions."""

from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework.op_builder import apply_op
from sluice.ops import array_ops
from sluice.ops import math_ops


def diag(diagonal, name=None):
    return apply_op("Diag", name, diagonal=diagonal)


def diag_part(input, name=None):
    return apply_op("DiagPart", name, input=input)


def _only_main_diagonal(k=0, **sizes):
    if k != 0 or any(v not in (-1, 0) for v in sizes.values()):
        raise NotImplementedError(
            "Matrices have a main diagonal only: other diagonals, sizes and "
            "paddings (MatrixDiagV2) are not part of Sluice.")


def matrix_diag(diagonal, name="diag", k=0, num_rows=-1, num_cols=-1,
                padding_value=0):
    _only_main_diagonal(k, rows=num_rows, cols=num_cols,
                        padding_value=padding_value)
    return apply_op("MatrixDiag", name, diagonal=diagonal)


def matrix_diag_part(input, name="diag_part", k=0, padding_value=0):
    _only_main_diagonal(k, padding_value=padding_value)
    return apply_op("MatrixDiagPart", name, input=input)


def matrix_set_diag(input, diagonal, name="set_diag", k=0):
    _only_main_diagonal(k)
    return apply_op("MatrixSetDiag", name, input=input, diagonal=diagonal)


def qr(input, full_matrices=False, name=None):
    return apply_op("Qr", name, input=input, full_matrices=full_matrices)


def matrix_transpose(a, name="matrix_transpose", conjugate=False):
    """Each matrix of a batch with its rows as columns."""
    with ops.name_scope(name, values=[a]):
        a = ops.convert_to_tensor(a, name="a")
        ndims = a.shape.ndims
        if ndims is not None:
            if ndims < 2:
                raise ValueError("Argument 'a' should be a (batch) matrix, "
                                 "with rank >= 2.  Found: %s" % a.shape)
            perm = list(range(ndims - 2)) + [ndims - 1, ndims - 2]
        else:
            rank = array_ops.rank(a)
            perm = array_ops.concat(
                (math_ops.range(rank - 2), [rank - 1, rank - 2]), 0)
        return array_ops.transpose(a, perm=perm, conjugate=conjugate)


def eye(num_rows, num_columns=None, batch_shape=None, dtype=dtypes.float32,
        name=None):
    """The unit matrix, or a batch of them."""
    with ops.name_scope(name, "eye", [num_rows, num_columns, batch_shape]):
        batch = [] if batch_shape is None else batch_shape
        square = num_columns is None
        columns = num_rows if square else num_columns
        known = not any(isinstance(v, ops.Tensor)
                        for v in (num_rows, columns, batch))
        if known:
            square = num_rows == columns
            size = [min(num_rows, columns)]
            ones = array_ops.ones(list(batch) + size, dtype=dtype)
        else:
            size = math_ops.minimum(num_rows, columns)
            ones = array_ops.ones(array_ops.concat((
                ops.convert_to_tensor(batch, dtype=dtypes.int32),
                array_ops.expand_dims(size, 0)), 0), dtype=dtype)
        if square:
            return matrix_diag(ones)
        if known:
            shape = list(batch) + [num_rows, columns]
        else:
            shape = array_ops.concat((
                ops.convert_to_tensor(batch, dtype=dtypes.int32),
                array_ops.stack([num_rows, columns])), 0)
        return matrix_set_diag(array_ops.zeros(shape, dtype=dtype), ones)
