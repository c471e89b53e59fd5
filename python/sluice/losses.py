"""tf.losses."""

from sluice.framework import constant_op
from sluice.framework import dtypes
from sluice.framework import ops
from sluice.ops import array_ops
from sluice.ops import math_ops
from sluice.ops import nn_ops
from sluice.ops import weights_broadcast_ops as _weights

_LOSSES = ops.GraphKeys.LOSSES


class Reduction(object):
    """How the loss of each element becomes one number."""
    NONE = "none"
    SUM = "weighted_sum"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    MEAN = "weighted_mean"
    SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_OVER_NONZERO_WEIGHTS = SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def all(cls):
        return (cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE,
                cls.SUM_OVER_NONZERO_WEIGHTS, cls.SUM_BY_NONZERO_WEIGHTS)

    @classmethod
    def validate(cls, key):
        if key not in cls.all():
            raise ValueError("Invalid Reduction Key %s." % key)


_DEFAULT = Reduction.SUM_BY_NONZERO_WEIGHTS


# ---- Collections ----

def add_loss(loss, loss_collection=_LOSSES):
    if loss_collection:
        ops.add_to_collection(loss_collection, loss)


def get_losses(scope=None, loss_collection=_LOSSES):
    return ops.get_collection(loss_collection, scope)


def get_regularization_losses(scope=None):
    return ops.get_collection(ops.GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(scope=None, name="total_regularization_loss"):
    losses = get_regularization_losses(scope)
    if losses:
        return math_ops.add_n(losses, name=name)
    return constant_op.constant(0.0)


def get_total_loss(add_regularization_losses=True, name="total_loss",
                   scope=None):
    losses = list(get_losses(scope=scope))
    if add_regularization_losses:
        losses += get_regularization_losses(scope=scope)
    return math_ops.add_n(losses, name=name)


# ---- From losses of elements to one ----

def _safe_mean(losses, count):
    return math_ops.div_no_nan(math_ops.reduce_sum(losses), count,
                               name="value")


def _num_present(losses, weights):
    with ops.name_scope(None, "num_present", (losses, weights)) as scope:
        present = array_ops.where(
            math_ops.equal(weights, 0.0), array_ops.zeros_like(weights),
            array_ops.ones_like(weights))
        present = _weights.broadcast_weights(present, losses)
        return math_ops.reduce_sum(present, name=scope)


def _num_elements(losses):
    with ops.name_scope(None, "num_elements", [losses]) as scope:
        return math_ops.cast(array_ops.size(losses, name=scope),
                             dtype=losses.dtype)


def compute_weighted_loss(losses, weights=1.0, scope=None,
                          loss_collection=_LOSSES, reduction=_DEFAULT):
    Reduction.validate(reduction)
    with ops.name_scope(scope, "weighted_loss", (losses, weights)):
        with ops.control_dependencies(
                [_weights.assert_broadcastable(weights, losses)]):
            losses = ops.convert_to_tensor(losses)
            given = losses.dtype
            losses = math_ops.cast(losses, dtypes.float32)
            weights = math_ops.cast(weights, dtypes.float32)
            loss = math_ops.multiply(losses, weights)
            if reduction != Reduction.NONE:
                loss = math_ops.reduce_sum(loss)
                if reduction == Reduction.MEAN:
                    loss = _safe_mean(loss, math_ops.reduce_sum(
                        array_ops.ones_like(losses) * weights))
                elif reduction == Reduction.SUM_BY_NONZERO_WEIGHTS:
                    loss = _safe_mean(loss, _num_present(losses, weights))
                elif reduction == Reduction.SUM_OVER_BATCH_SIZE:
                    loss = _safe_mean(loss, _num_elements(losses))
            loss = math_ops.cast(loss, given)
            add_loss(loss, loss_collection)
            return loss


def _floats(labels, predictions):
    """Both as floats of one shape; the predictions first."""
    for name, value in (("labels", labels), ("predictions", predictions)):
        if value is None:
            raise ValueError("%s must not be None." % name)
    predictions = math_ops.cast(predictions, dtypes.float32)
    labels = math_ops.cast(labels, dtypes.float32)
    predictions.get_shape().assert_is_compatible_with(labels.get_shape())
    return predictions, labels


# ---- Losses ----

def absolute_difference(labels, predictions, weights=1.0, scope=None,
                        loss_collection=_LOSSES, reduction=_DEFAULT):
    with ops.name_scope(scope, "absolute_difference",
                        (predictions, labels, weights)) as scope:
        predictions, labels = _floats(labels, predictions)
        losses = math_ops.abs(math_ops.subtract(predictions, labels))
        return compute_weighted_loss(losses, weights, scope, loss_collection,
                                     reduction)


def mean_squared_error(labels, predictions, weights=1.0, scope=None,
                       loss_collection=_LOSSES, reduction=_DEFAULT):
    with ops.name_scope(scope, "mean_squared_error",
                        (predictions, labels, weights)) as scope:
        predictions, labels = _floats(labels, predictions)
        losses = math_ops.squared_difference(predictions, labels)
        return compute_weighted_loss(losses, weights, scope, loss_collection,
                                     reduction)


def huber_loss(labels, predictions, weights=1.0, delta=1.0, scope=None,
               loss_collection=_LOSSES, reduction=_DEFAULT):
    """Quadratic up to `delta`, linear beyond."""
    with ops.name_scope(scope, "huber_loss",
                        (predictions, labels, weights)) as scope:
        predictions, labels = _floats(labels, predictions)
        distance = math_ops.abs(math_ops.subtract(predictions, labels))
        quadratic = math_ops.minimum(distance, delta)
        linear = math_ops.subtract(distance, quadratic)
        losses = math_ops.add(
            math_ops.multiply(
                ops.convert_to_tensor(0.5, dtype=quadratic.dtype),
                math_ops.multiply(quadratic, quadratic)),
            math_ops.multiply(delta, linear))
        return compute_weighted_loss(losses, weights, scope, loss_collection,
                                     reduction)


def log_loss(labels, predictions, weights=1.0, epsilon=1e-7, scope=None,
             loss_collection=_LOSSES, reduction=_DEFAULT):
    with ops.name_scope(scope, "log_loss",
                        (predictions, labels, weights)) as scope:
        predictions, labels = _floats(labels, predictions)
        losses = -math_ops.multiply(
            labels, math_ops.log(predictions + epsilon)) - math_ops.multiply(
                1 - labels, math_ops.log(1 - predictions + epsilon))
        return compute_weighted_loss(losses, weights, scope, loss_collection,
                                     reduction)


def hinge_loss(labels, logits, weights=1.0, scope=None,
               loss_collection=_LOSSES, reduction=_DEFAULT):
    with ops.name_scope(scope, "hinge_loss",
                        (logits, labels, weights)) as scope:
        logits, labels = _floats(labels, logits)
        ones = array_ops.ones_like(labels)
        labels = math_ops.subtract(2 * labels, ones)
        losses = nn_ops.relu(math_ops.subtract(
            ones, math_ops.multiply(labels, logits)))
        return compute_weighted_loss(losses, weights, scope, loss_collection,
                                     reduction)


def cosine_distance(labels, predictions, axis=None, weights=1.0, scope=None,
                    loss_collection=_LOSSES, reduction=_DEFAULT, dim=None):
    axis = dim if axis is None else axis
    if axis is None:
        raise ValueError("You must specify 'axis'.")
    with ops.name_scope(scope, "cosine_distance_loss",
                        (predictions, labels, weights)) as scope:
        predictions, labels = _floats(labels, predictions)
        products = math_ops.multiply(predictions, labels)
        losses = 1 - math_ops.reduce_sum(products, axis=(axis,),
                                         keepdims=True)
        return compute_weighted_loss(losses, weights, scope, loss_collection,
                                     reduction)


def sigmoid_cross_entropy(multi_class_labels, logits, weights=1.0,
                          label_smoothing=0, scope=None,
                          loss_collection=_LOSSES, reduction=_DEFAULT):
    with ops.name_scope(scope, "sigmoid_cross_entropy_loss",
                        (logits, multi_class_labels, weights)) as scope:
        logits = ops.convert_to_tensor(logits)
        labels = math_ops.cast(multi_class_labels, logits.dtype)
        logits.get_shape().assert_is_compatible_with(labels.get_shape())
        if label_smoothing > 0:
            labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
        losses = nn_ops.sigmoid_cross_entropy_with_logits(
            labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, scope, loss_collection,
                                     reduction)


def softmax_cross_entropy(onehot_labels, logits, weights=1.0,
                          label_smoothing=0, scope=None,
                          loss_collection=_LOSSES, reduction=_DEFAULT):
    with ops.name_scope(scope, "softmax_cross_entropy_loss",
                        (logits, onehot_labels, weights)) as scope:
        logits = ops.convert_to_tensor(logits)
        labels = math_ops.cast(onehot_labels, logits.dtype)
        logits.get_shape().assert_is_compatible_with(labels.get_shape())
        if label_smoothing > 0:
            classes = math_ops.cast(
                array_ops.shape(labels)[len(labels.shape) - 1], logits.dtype)
            labels = labels * (1.0 - label_smoothing) + \
                label_smoothing / classes
        labels = array_ops.stop_gradient(labels, name="labels_stop_gradient")
        losses = nn_ops.softmax_cross_entropy_with_logits_v2(
            labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, scope, loss_collection,
                                     reduction)


def sparse_softmax_cross_entropy(labels, logits, weights=1.0, scope=None,
                                 loss_collection=_LOSSES, reduction=_DEFAULT):
    with ops.name_scope(scope, "sparse_softmax_cross_entropy_loss",
                        (logits, labels, weights)) as scope:
        labels, logits = _weights.remove_squeezable_dimensions(
            labels, logits, expected_rank_diff=1)
        if not isinstance(weights, (int, float)):
            weights = _weights.fit_weights(weights, labels)
        losses = nn_ops.sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, scope, loss_collection,
                                     reduction)
