"""tf.metrics: values that are gathered over many runs.

Each returns (value, update_op): run `update_op` on every batch, then fetch
`value`. The state is in local variables.
"""

from sluice.framework import dtypes
from sluice.framework import ops
from sluice.ops import array_ops
from sluice.ops import math_ops
from sluice.ops import state_ops
from sluice.ops import variable_scope
from sluice.ops import variables
from sluice.ops import weights_broadcast_ops as _weights


def _state(name):
    return variables.Variable(
        lambda: array_ops.zeros([], dtypes.float32), trainable=False,
        collections=[ops.GraphKeys.LOCAL_VARIABLES,
                     ops.GraphKeys.METRIC_VARIABLES], name=name)


def _ratio(numerator, denominator, name):
    return math_ops.div_no_nan(numerator, math_ops.maximum(denominator, 0),
                               name=name)


def _collected(value, update, metrics_collections, updates_collections):
    if metrics_collections:
        ops.add_to_collections(metrics_collections, value)
    if updates_collections:
        ops.add_to_collections(updates_collections, update)
    return value, update


def _fitted(labels, predictions, weights):
    labels, predictions = _squeezed(labels, predictions)
    predictions.get_shape().assert_is_compatible_with(labels.get_shape())
    return labels, predictions, _weights.fit_weights(weights, predictions)


def _squeezed(labels, predictions):
    labels = ops.convert_to_tensor(labels)
    predictions = ops.convert_to_tensor(predictions)
    if labels.shape.ndims == predictions.shape.ndims:
        return labels, predictions
    return _weights.remove_squeezable_dimensions(labels, predictions)


def mean(values, weights=None, metrics_collections=None,
         updates_collections=None, name=None):
    with variable_scope.variable_scope(name, "mean", (values, weights)):
        values = math_ops.cast(values, dtypes.float32)
        total, count = _state("total"), _state("count")
        if weights is None:
            number = math_ops.cast(array_ops.size(values), dtypes.float32)
        else:
            weights = _weights.broadcast_weights(
                math_ops.cast(_weights.fit_weights(weights, values),
                              dtypes.float32), values)
            values = math_ops.multiply(values, weights)
            number = math_ops.reduce_sum(weights)
        added = state_ops.assign_add(total, math_ops.reduce_sum(values))
        with ops.control_dependencies([values]):
            counted = state_ops.assign_add(count, number)
        return _collected(_ratio(total, count, "value"),
                          _ratio(added, counted, "update_op"),
                          metrics_collections, updates_collections)


def accuracy(labels, predictions, weights=None, metrics_collections=None,
             updates_collections=None, name=None):
    labels, predictions, weights = _fitted(labels, predictions, weights)
    if labels.dtype != predictions.dtype:
        predictions = math_ops.cast(predictions, labels.dtype)
    correct = math_ops.cast(math_ops.equal(predictions, labels),
                            dtypes.float32)
    return mean(correct, weights, metrics_collections, updates_collections,
                name or "accuracy")


def mean_squared_error(labels, predictions, weights=None,
                       metrics_collections=None, updates_collections=None,
                       name=None):
    labels, predictions, weights = _fitted(labels, predictions, weights)
    return mean(math_ops.squared_difference(labels, predictions), weights,
                metrics_collections, updates_collections,
                name or "mean_squared_error")


def mean_absolute_error(labels, predictions, weights=None,
                        metrics_collections=None, updates_collections=None,
                        name=None):
    labels, predictions, weights = _fitted(labels, predictions, weights)
    return mean(math_ops.abs(predictions - labels), weights,
                metrics_collections, updates_collections,
                name or "mean_absolute_error")


def root_mean_squared_error(labels, predictions, weights=None,
                            metrics_collections=None,
                            updates_collections=None, name=None):
    labels, predictions, weights = _fitted(labels, predictions, weights)
    value, update = mean_squared_error(labels, predictions, weights, None,
                                       None, name or "root_mean_squared_error")
    return _collected(math_ops.sqrt(value), math_ops.sqrt(update),
                      metrics_collections, updates_collections)


def percentage_below(values, threshold, weights=None,
                     metrics_collections=None, updates_collections=None,
                     name=None):
    below = math_ops.cast(math_ops.less(values, threshold), dtypes.float32)
    return mean(below, weights, metrics_collections, updates_collections,
                name or "percentage_below_threshold")


# ---- Counts of right and wrong ----

def _count(kind, labels, predictions, wanted, weights, metrics_collections,
           updates_collections, name):
    with variable_scope.variable_scope(name, kind,
                                       (predictions, labels, weights)):
        labels, predictions, weights = _fitted(
            math_ops.cast(labels, dtypes.bool_),
            math_ops.cast(predictions, dtypes.bool_), weights)
        met = math_ops.logical_and(math_ops.equal(labels, wanted[0]),
                                   math_ops.equal(predictions, wanted[1]))
        count = _state("count")
        values = math_ops.cast(met, dtypes.float32)
        if weights is not None:
            values = math_ops.multiply(
                values, math_ops.cast(weights, dtypes.float32))
        value = array_ops.identity(count)
        update = state_ops.assign_add(count, math_ops.reduce_sum(values))
        return _collected(value, update, metrics_collections,
                          updates_collections)


def true_positives(labels, predictions, weights=None,
                   metrics_collections=None, updates_collections=None,
                   name=None):
    return _count("true_positives", labels, predictions, (True, True),
                  weights, metrics_collections, updates_collections, name)


def true_negatives(labels, predictions, weights=None,
                   metrics_collections=None, updates_collections=None,
                   name=None):
    return _count("true_negatives", labels, predictions, (False, False),
                  weights, metrics_collections, updates_collections, name)


def false_positives(labels, predictions, weights=None,
                    metrics_collections=None, updates_collections=None,
                    name=None):
    return _count("false_positives", labels, predictions, (False, True),
                  weights, metrics_collections, updates_collections, name)


def false_negatives(labels, predictions, weights=None,
                    metrics_collections=None, updates_collections=None,
                    name=None):
    return _count("false_negatives", labels, predictions, (True, False),
                  weights, metrics_collections, updates_collections, name)


def _share(kind, other, labels, predictions, weights, metrics_collections,
           updates_collections, name):
    """True positives as a share of them and the others."""
    with variable_scope.variable_scope(name, kind,
                                       (predictions, labels, weights)):
        right, more_right = true_positives(labels, predictions, weights)
        wrong, more_wrong = other(labels, predictions, weights)

        def share(a, b, name):
            return array_ops.where(
                math_ops.greater(a + b, 0), math_ops.divide(a, a + b),
                array_ops.zeros_like(a), name)

        return _collected(share(right, wrong, "value"),
                          share(more_right, more_wrong, "update_op"),
                          metrics_collections, updates_collections)


def precision(labels, predictions, weights=None, metrics_collections=None,
              updates_collections=None, name=None):
    return _share("precision", false_positives, labels, predictions, weights,
                  metrics_collections, updates_collections, name)


def recall(labels, predictions, weights=None, metrics_collections=None,
           updates_collections=None, name=None):
    return _share("recall", false_negatives, labels, predictions, weights,
                  metrics_collections, updates_collections, name)
