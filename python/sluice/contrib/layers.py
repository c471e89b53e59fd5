"""tf.contrib.layers: regularizers and initializers."""

import math
import numbers

from sluice.framework import constant_op
from sluice.framework import dtypes
from sluice.framework import ops
from sluice.ops import embedding_ops
from sluice.ops import math_ops
from sluice.ops import random_ops
from sluice.platform import tf_logging as logging


def _check_scale(scale):
    if isinstance(scale, numbers.Integral):
        raise ValueError("scale cannot be an integer: %s" % (scale,))
    if not isinstance(scale, numbers.Real):
        return True
    if scale < 0.:
        raise ValueError("Setting a scale less than 0 on a regularizer: %g." %
                         scale)
    return scale != 0.


def _none(_):
    return None


def l1_regularizer(scale, scope=None):
    """A function of weights: scale * sum of their sizes."""
    if not _check_scale(scale):
        logging.info("Scale of 0 disables regularizer.")
        return _none

    def l1(weights, name=None):
        with ops.name_scope(scope, "l1_regularizer", [weights]) as name:
            my_scale = ops.convert_to_tensor(
                scale, dtype=weights.dtype.base_dtype, name="scale")
            return math_ops.multiply(
                my_scale, math_ops.reduce_sum(math_ops.abs(weights)),
                name=name)
    return l1


def l2_regularizer(scale, scope=None):
    """A function of weights: scale * half the sum of their squares."""
    if not _check_scale(scale):
        logging.info("Scale of 0 disables regularizer.")
        return _none

    def l2(weights):
        with ops.name_scope(scope, "l2_regularizer", [weights]) as name:
            my_scale = ops.convert_to_tensor(
                scale, dtype=weights.dtype.base_dtype, name="scale")
            return math_ops.multiply(my_scale, math_ops.l2_loss(weights),
                                     name=name)
    return l2


def l1_l2_regularizer(scale_l1=1.0, scale_l2=1.0, scope=None):
    for scale, name in ((scale_l1, "scale_l1"), (scale_l2, "scale_l2")):
        if isinstance(scale, numbers.Integral):
            raise ValueError("%s cannot be an integer: %s" % (name, scale))
    scope = scope or "l1_l2_regularizer"
    if scale_l1 == 0.:
        return l2_regularizer(scale_l2, scope)
    if scale_l2 == 0.:
        return l1_regularizer(scale_l1, scope)
    return sum_regularizer([l1_regularizer(scale_l1),
                            l2_regularizer(scale_l2)], scope=scope)


def sum_regularizer(regularizer_list, scope=None):
    regularizer_list = [r for r in regularizer_list if r is not None]
    if not regularizer_list:
        return None

    def sum_reg(weights):
        with ops.name_scope(scope, "sum_regularizer", [weights]) as name:
            found = [r(weights) for r in regularizer_list]
            found = [t for t in found if t is not None]
            return math_ops.add_n(found, name=name) if found else None
    return sum_reg


def apply_regularization(regularizer, weights_list=None):
    """The sum of what the regularizer says of all weights."""
    if not weights_list:
        weights_list = ops.get_collection(ops.GraphKeys.WEIGHTS)
    if not weights_list:
        raise ValueError("No weights to regularize.")
    with ops.name_scope("get_regularization_penalty",
                        values=weights_list) as scope:
        penalties = [regularizer(w) for w in weights_list]
        penalties = [p if p is not None else constant_op.constant(0.0)
                     for p in penalties]
        for p in penalties:
            if p.get_shape().ndims != 0:
                raise ValueError("regularizer must return a scalar Tensor "
                                 "instead of a Tensor with rank %d." %
                                 p.get_shape().ndims)
        total = math_ops.add_n(penalties, name=scope)
        ops.add_to_collection(ops.GraphKeys.REGULARIZATION_LOSSES, total)
        return total


def xavier_initializer(uniform=True, seed=None, dtype=dtypes.float32):
    return variance_scaling_initializer(factor=1.0, mode="FAN_AVG",
                                        uniform=uniform, seed=seed,
                                        dtype=dtype)


xavier_initializer_conv2d = xavier_initializer


def variance_scaling_initializer(factor=2.0, mode="FAN_IN", uniform=False,
                                 seed=None, dtype=dtypes.float32):
    """Random numbers whose variance is factor / number of inputs."""
    if not dtypes.as_dtype(dtype).is_floating:
        raise TypeError("Cannot create initializer for non-floating point "
                        "type.")
    if mode not in ("FAN_IN", "FAN_OUT", "FAN_AVG"):
        raise TypeError("Unknown mode %s [FAN_IN, FAN_OUT, FAN_AVG]", mode)

    def _initializer(shape, dtype=dtype, partition_info=None):
        fan_in, fan_out = _fans(shape)
        n = {"FAN_IN": fan_in, "FAN_OUT": fan_out,
             "FAN_AVG": (fan_in + fan_out) / 2.0}[mode]
        if uniform:
            limit = math.sqrt(3.0 * factor / n)
            return random_ops.random_uniform(shape, -limit, limit, dtype,
                                             seed=seed)
        # What is lost by cutting the normal is given back.
        return random_ops.truncated_normal(
            shape, 0.0, math.sqrt(1.3 * factor / n), dtype, seed=seed)
    return _initializer


def _fans(shape):
    if not shape:
        return 1.0, 1.0
    fan_in = float(shape[-2]) if len(shape) > 1 else float(shape[-1])
    fan_out = float(shape[-1])
    for d in shape[:-2]:
        fan_in *= float(d)
        fan_out *= float(d)
    return fan_in, fan_out


def safe_embedding_lookup_sparse(embedding_weights, sparse_ids,
                                 sparse_weights=None, combiner=None,
                                 default_id=None, name=None,
                                 partition_strategy="div", max_norm=None):
    if combiner is None:
        logging.warning('The default value of combiner will change from '
                        '"mean" to "sqrtn" after 2016/11/01.')
        combiner = "mean"
    return embedding_ops.safe_embedding_lookup_sparse(
        embedding_weights, sparse_ids, sparse_weights, combiner, default_id,
        name, partition_strategy, max_norm)
