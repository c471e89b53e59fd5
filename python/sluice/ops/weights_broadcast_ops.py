"""Weights of losses and metrics: one number, or as many as there are values in
each dimension or 1."""

from sluice.framework import ops
from sluice.framework.op_builder import raw_ops
from sluice.ops import array_ops
from sluice.ops import control_flow_ops
from sluice.ops import math_ops

_PREFIX = "weights can not be broadcast to values."


def assert_broadcastable(weights, values):
    """An op that fails unless the weights fit; ValueError if that is known
    while the graph is built."""
    with ops.name_scope(None, "assert_broadcastable",
                        (weights, values)) as scope:
        with ops.name_scope(None, "weights", (weights,)) as weights_scope:
            weights = ops.convert_to_tensor(weights, name=weights_scope)
            weights_shape = array_ops.shape(weights, name="shape")
            weights_rank = array_ops.rank(weights, name="rank")
        with ops.name_scope(None, "values", (values,)) as values_scope:
            values = ops.convert_to_tensor(values, name=values_scope)
            values_shape = array_ops.shape(values, name="shape")
            values_rank = array_ops.rank(values, name="rank")
        checked = _check_static(weights, values)
        if checked is not None:
            return control_flow_ops.no_op(name=checked)
        is_scalar = math_ops.equal(0, weights_rank, name="is_scalar")
        data = (_PREFIX, "weights.shape=", weights.name, weights_shape,
                "values.shape=", values.name, values_shape, "is_scalar=",
                is_scalar)
        is_valid = control_flow_ops.cond(
            is_scalar, lambda: is_scalar,
            lambda: _valid_shape(weights_rank, weights_shape, values_rank,
                                 values_shape), name="is_valid_shape")
        return control_flow_ops.Assert(is_valid, data, name=scope)


def _check_static(weights, values):
    """The name of the check that was passed, or None if it must wait."""
    w, v = weights.shape, values.shape
    if w.ndims is None or v.ndims is None:
        return None
    if w.ndims == 0:
        return "static_scalar_check_success"
    if w.ndims != v.ndims:
        raise ValueError(
            "%s values.rank=%s. weights.rank=%s. values.shape=%s. "
            "weights.shape=%s." % (_PREFIX, v.ndims, w.ndims, v, w))
    if not (w.is_fully_defined() and v.is_fully_defined()):
        return None
    for a, b in zip(v.as_list(), w.as_list()):
        if b not in (1, a):
            raise ValueError("%s Mismatch at dim. values.shape=%s "
                             "weights.shape=%s." % (_PREFIX, v, w))
    return "static_dims_check_success"


def _valid_shape(weights_rank, weights_shape, values_rank, values_shape):
    with ops.name_scope(None, "has_valid_nonscalar_shape",
                        (weights_rank, weights_shape, values_rank,
                         values_shape)) as scope:
        same_rank = math_ops.equal(values_rank, weights_rank,
                                   name="is_same_rank")
        return control_flow_ops.cond(
            same_rank, lambda: _valid_dims(weights_shape, values_shape),
            lambda: same_rank, name=scope)


def _valid_dims(weights_shape, values_shape):
    with ops.name_scope(None, "has_invalid_dims",
                        (weights_shape, values_shape)) as scope:
        values_2d = array_ops.expand_dims(values_shape, -1)
        valid = array_ops.concat((values_2d, array_ops.ones_like(values_2d)),
                                 axis=1)
        weights_2d = array_ops.expand_dims(weights_shape, -1)
        invalid = raw_ops.DenseToDenseSetOperation(
            set1=weights_2d, set2=valid, set_operation="a-b")
        count = array_ops.size(invalid[1], name="num_invalid_dims")
        return math_ops.equal(0, count, name=scope)


def broadcast_weights(weights, values):
    """The weights in the shape of the values."""
    with ops.name_scope(None, "broadcast_weights", (weights, values)) as scope:
        values = ops.convert_to_tensor(values, name="values")
        weights = ops.convert_to_tensor(
            weights, dtype=values.dtype.base_dtype, name="weights")
        w, v = weights.shape, values.shape
        if w.is_fully_defined() and v.is_fully_defined() and \
                w.is_compatible_with(v):
            return weights
        with ops.control_dependencies([assert_broadcastable(weights,
                                                            values)]):
            return math_ops.multiply(weights, array_ops.ones_like(values),
                                     name=scope)


def remove_squeezable_dimensions(labels, predictions, expected_rank_diff=0,
                                 name=None):
    """Drops a last dimension of 1 that one of the two has in excess."""
    with ops.name_scope(name, "remove_squeezable_dimensions",
                        [labels, predictions]):
        predictions = ops.convert_to_tensor(predictions)
        labels = ops.convert_to_tensor(labels)
        p, l = predictions.shape, labels.shape
        if p.ndims is not None and l.ndims is not None:
            excess = p.ndims - l.ndims - expected_rank_diff
            if excess == 1 and p.dims[-1].is_compatible_with(1):
                predictions = array_ops.squeeze(predictions, [-1])
            elif excess == -1 and l.dims[-1].is_compatible_with(1):
                labels = array_ops.squeeze(labels, [-1])
        return labels, predictions


def fit_weights(weights, values):
    """Weights with one dimension more or less than the values, fitted."""
    if weights is None:
        return None
    weights = ops.convert_to_tensor(weights)
    w, v = weights.shape.ndims, values.shape.ndims
    if w in (0, None) or v is None:
        return weights
    if w - v == 1:
        return array_ops.squeeze(weights, [-1])
    if v - w == 1:
        return array_ops.expand_dims(weights, [-1])
    return weights
