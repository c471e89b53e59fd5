"""Old spellings: names and argument orders before 1.0.

`names()` gives what the package adds to itself or puts in the place of the
newer function; each new function here still takes the new order.
"""

import numbers

from sluice.platform.lazy_numpy import np

from sluice.framework import ops
from sluice.framework.op_builder import apply_op
from sluice.ops import array_ops
from sluice.ops import math_ops
from sluice.summary import summary as _summary
from sluice.training import resources


def _is_int(value):
    """Whether a value can only be a dimension."""
    if isinstance(value, (numbers.Integral, np.integer)) and not isinstance(
            value, bool):
        return True
    return (isinstance(value, ops.Tensor) and value.shape.ndims == 0 and
            value.dtype.base_dtype.is_integer)


def concat(values=None, axis=None, name="concat", concat_dim=None):
    """concat(values, axis), or the old concat(concat_dim, values)."""
    if concat_dim is not None:
        if axis is None:
            axis = concat_dim
        elif values is None:
            values, axis = axis, concat_dim
    elif _is_int(values) and isinstance(axis, (list, tuple)):
        values, axis = axis, values
    return array_ops.concat(values, axis, name)


def split(value=None, num_or_size_splits=None, axis=0, num=None, name="split",
          split_dim=None, num_split=None):
    """split(value, num, axis), or the old split(split_dim, num, value)."""
    if split_dim is not None or num_split is not None:
        if split_dim is not None:
            axis = split_dim
        if num_split is not None:
            num_or_size_splits = num_split
    elif _is_int(value) and _is_int(num_or_size_splits) and \
            not _is_int(axis):
        value, axis = axis, value
    return array_ops.split(value, num_or_size_splits, axis, num, name)


def reverse(tensor, axis=None, name=None, dims=None):
    """reverse(tensor, axes), or the old form with a bool per dimension."""
    axis = dims if axis is None else axis
    if isinstance(axis, (list, tuple)) and axis and all(
            isinstance(a, (bool, np.bool_)) for a in axis):
        axis = [i for i, turned in enumerate(axis) if turned]
    return array_ops.reverse(tensor, axis, name)


def batch_matmul(x, y, adj_x=False, adj_y=False, name=None):
    return math_ops.matmul(x, y, adjoint_a=adj_x, adjoint_b=adj_y, name=name)


def complex_abs(x, name=None):
    return math_ops.abs(x, name=name)


# ---- Summaries: the tag is taken as it is ----

def _add(op_type, collections, name, inputs, **arguments):
    with ops.name_scope(name, op_type, inputs) as scope:
        val = apply_op(op_type, scope, **arguments)
        _summary.collect(val, collections, [ops.GraphKeys.SUMMARIES])
    return val


def scalar_summary(tags, values, collections=None, name=None):
    return _add("ScalarSummary", collections, name, [tags, values], tags=tags,
                values=values)


def histogram_summary(tag, values, collections=None, name=None):
    return _add("HistogramSummary", collections, name, [tag, values], tag=tag,
                values=values)


def image_summary(tag, tensor, max_images=3, collections=None, name=None):
    return _add("ImageSummary", collections, name, [tag, tensor], tag=tag,
                tensor=tensor, max_images=max_images)


def audio_summary(tag, tensor, sample_rate, max_outputs=3, collections=None,
                  name=None):
    return _add("AudioSummaryV2", collections, name, [tag, tensor], tag=tag,
                tensor=tensor, sample_rate=float(sample_rate),
                max_outputs=max_outputs)


def merge_summary(inputs, collections=None, name=None):
    return _summary.merge(inputs, collections, name)


def merge_all_summaries(key=ops.GraphKeys.SUMMARIES):
    return _summary.merge_all(key)


_BATCH = (
    "batch_matrix_inverse batch_matrix_determinant batch_cholesky "
    "batch_cholesky_solve batch_matrix_solve batch_matrix_triangular_solve "
    "batch_matrix_solve_ls batch_self_adjoint_eig batch_self_adjoint_eigvals "
    "batch_svd batch_fft batch_fft2d batch_fft3d batch_ifft batch_ifft2d "
    "batch_ifft3d batch_matrix_diag batch_matrix_diag_part "
    "batch_matrix_transpose batch_matrix_band_part batch_matrix_set_diag")


def names(package=None):
    """{name: function}; `package` is where newer functions are found."""
    found = {
        "audio_summary": audio_summary,
        "batch_matmul": batch_matmul,
        "complex_abs": complex_abs,
        "concat": concat,
        "histogram_summary": histogram_summary,
        "image_summary": image_summary,
        "initialize_all_tables": resources.initialize_all_tables,
        "merge_all_summaries": merge_all_summaries,
        "merge_summary": merge_summary,
        "reverse": reverse,
        "scalar_summary": scalar_summary,
        "split": split,
        "tables_initializer": resources.tables_initializer,
    }
    renamed = {name: name[len("batch_"):] for name in _BATCH.split()}
    renamed.update({
        "VariableV2": "Variable", "all_variables": "global_variables", "inv": "reciprocal",
        "list_diff": "setdiff1d", "listdiff": "setdiff1d", "mul": "multiply",
        "neg": "negative", "pack": "stack", "select": "where",
        "sub": "subtract", "unpack": "unstack",
        "initialize_all_variables": "global_variables_initializer",
        "initialize_variables": "variables_initializer",
        "initialize_local_variables": "local_variables_initializer",
    })
    for old, new in renamed.items():
        if package is not None and hasattr(package, new) and \
                not hasattr(package, old):
            found[old] = getattr(package, new)
    return found
