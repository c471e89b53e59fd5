"""tf.nn: activations, losses, layers without state."""

import numbers

from sluice.framework import constant_op
from sluice.framework import dtypes
from sluice.framework import errors
from sluice.framework import ops
from sluice.framework import tensor_shape
from sluice.framework.op_builder import apply_op
from sluice.ops import array_ops
from sluice.ops import embedding_ops
from sluice.ops import math_ops
from sluice.ops import random_ops


def _features(op_type):
    def function(features, name=None):
        return apply_op(op_type, name, features=features)
    function.__name__ = op_type.lower()
    return function


relu = _features("Relu")
relu6 = _features("Relu6")
elu = _features("Elu")
selu = _features("Selu")
softplus = _features("Softplus")
softsign = _features("Softsign")
sigmoid = math_ops.sigmoid
tanh = math_ops.tanh
l2_loss = math_ops.l2_loss
embedding_lookup = embedding_ops.embedding_lookup
embedding_lookup_sparse = embedding_ops.embedding_lookup_sparse
safe_embedding_lookup_sparse = embedding_ops.safe_embedding_lookup_sparse


def leaky_relu(features, alpha=0.2, name=None):
    return apply_op("LeakyRelu", name, features=features, alpha=alpha)


def bias_add(value, bias, data_format=None, name=None):
    with ops.name_scope(name, "BiasAdd", [value, bias]) as scope:
        value = ops.convert_to_tensor(value, name="input")
        bias = ops.convert_to_tensor(bias, dtype=value.dtype, name="bias")
        return apply_op("BiasAdd", scope, value=value, bias=bias,
                        data_format=data_format)


def _check_axis(axis, rank):
    if not -rank <= axis < rank:
        raise errors.InvalidArgumentError(
            None, None, "Axis (%s) must be in the range [%d, %d) where %d is "
            "the number of dimensions in the input." %
            (axis, -rank, rank, rank))


def _over_axis(op_type, logits, axis, name):
    """A softmax works on the last axis; another one is swapped with it."""
    logits = ops.convert_to_tensor(logits)
    rank = logits.shape.ndims
    if axis is None or axis == -1 or (rank is not None and axis == rank - 1):
        return apply_op(op_type, name, logits=logits)
    if rank is not None:
        _check_axis(axis, rank)
    array_ops.rank(logits)  # TensorFlow asks twice; names depend on it.
    if rank is not None:
        axis %= rank
    input_rank = array_ops.rank(logits)

    def swapped(tensor, name=None):
        last = math_ops.subtract(input_rank, 1)
        perm = array_ops.concat(
            [math_ops.range(axis), [last], math_ops.range(axis + 1, last),
             [axis]], 0)
        return array_ops.transpose(tensor, perm, name=name or "transpose")

    result = swapped(apply_op(op_type, None, logits=swapped(logits)), name)
    result.set_shape(logits.shape)
    return result


def softmax(logits, axis=None, name=None, dim=None):
    return _over_axis("Softmax", logits, dim if axis is None else axis, name)


def log_softmax(logits, axis=None, name=None, dim=None):
    return _over_axis("LogSoftmax", logits, dim if axis is None else axis,
                      name)


def _require_names(name, sentinel, labels, logits):
    if sentinel is not None:
        raise ValueError("Only call `%s` with named arguments (labels=..., "
                         "logits=..., ...)" % name)
    if labels is None or logits is None:
        raise ValueError("Both labels and logits must be provided.")


def sparse_softmax_cross_entropy_with_logits(_sentinel=None, labels=None,
                                             logits=None, name=None):
    _require_names("sparse_softmax_cross_entropy_with_logits", _sentinel,
                   labels, logits)
    with ops.name_scope(name, "SparseSoftmaxCrossEntropyWithLogits",
                        [labels, logits]):
        labels = ops.convert_to_tensor(labels)
        logits = ops.convert_to_tensor(logits)
        labels_static = labels.shape
        if labels_static.ndims is not None and logits.shape.ndims and \
                labels_static.ndims != logits.shape.ndims - 1:
            raise ValueError(
                "Rank mismatch: Rank of labels (received %s) should equal "
                "rank of logits minus 1 (received %s)." %
                (labels_static.ndims, logits.shape.ndims))
        array_ops.shape(labels)
        if logits.shape.ndims == 2:
            cost = apply_op(
                "SparseSoftmaxCrossEntropyWithLogits",
                "SparseSoftmaxCrossEntropyWithLogits", features=logits,
                labels=labels)
            return cost.loss
        classes = array_ops.shape(logits)[-1]
        flat = apply_op(
            "SparseSoftmaxCrossEntropyWithLogits",
            "SparseSoftmaxCrossEntropyWithLogits",
            features=array_ops.reshape(logits, [-1, classes]),
            labels=array_ops.reshape(labels, [-1]))
        result = array_ops.reshape(flat.loss, array_ops.shape(labels))
        result.set_shape(labels_static)
        return result


def _with_axis_last(tensor, axis):
    rank = tensor.shape.ndims
    if axis == -1 or (rank is not None and axis == rank - 1):
        return tensor
    if rank is None:
        rank = array_ops.rank(tensor)
    else:
        _check_axis(axis, rank)
    at = axis if axis >= 0 else axis + rank
    return array_ops.transpose(tensor, array_ops.concat(
        [math_ops.range(at), math_ops.range(at + 1, rank), [at]], 0))


def softmax_cross_entropy_with_logits_v2(labels, logits, axis=None, name=None,
                                         dim=None):
    axis = dim if axis is None else axis
    with ops.name_scope(name, "softmax_cross_entropy_with_logits",
                        [logits, labels]) as scope:
        logits = ops.convert_to_tensor(logits, name="logits")
        labels = ops.convert_to_tensor(labels, name="labels",
                                       dtype=logits.dtype)
        if axis is not None:
            logits = _with_axis_last(logits, axis)
            labels = _with_axis_last(labels, axis)
        rank = array_ops.rank(logits)
        shape = array_ops.shape(logits)

        def flatten(x):
            r = array_ops.rank(x)
            last = array_ops.slice(
                array_ops.shape(x), [math_ops.subtract(r, 1)], [1])
            out = array_ops.reshape(x, array_ops.concat([[-1], last], 0))
            static = x.shape
            if static.ndims is not None:
                dims = static.as_list()
                rows = 1
                for d in dims[:-1]:
                    rows = None if d is None or rows is None else rows * d
                out.set_shape([rows, dims[-1]])
            return out

        static = logits.shape
        cost = apply_op("SoftmaxCrossEntropyWithLogits", scope,
                        features=flatten(logits), labels=flatten(labels)).loss
        out = array_ops.reshape(cost, array_ops.slice(
            shape, [0], [math_ops.subtract(rank, 1)]))
        if static.ndims is not None:
            out.set_shape(static.as_list()[:-1])
        return out


def softmax_cross_entropy_with_logits(_sentinel=None, labels=None,
                                      logits=None, dim=-1, name=None,
                                      axis=None):
    _require_names("softmax_cross_entropy_with_logits", _sentinel, labels,
                   logits)
    with ops.name_scope(name, "softmax_cross_entropy_with_logits_sg",
                        [logits, labels]) as scope:
        labels = array_ops.stop_gradient(labels, name="labels_stop_gradient")
    return softmax_cross_entropy_with_logits_v2(
        labels=labels, logits=logits, axis=dim if axis is None else axis,
        name=scope)


def sigmoid_cross_entropy_with_logits(_sentinel=None, labels=None,
                                      logits=None, name=None):
    _require_names("sigmoid_cross_entropy_with_logits", _sentinel, labels,
                   logits)
    with ops.name_scope(name, "logistic_loss", [logits, labels]) as scope:
        logits = ops.convert_to_tensor(logits, name="logits")
        labels = ops.convert_to_tensor(labels, name="labels",
                                       dtype=logits.dtype)
        if not labels.shape.is_compatible_with(logits.shape):
            raise ValueError("logits and labels must have the same shape "
                             "(%s vs %s)" % (logits.shape, labels.shape))
        zeros = array_ops.zeros_like(logits, dtype=logits.dtype)
        positive = logits >= zeros
        relu_logits = array_ops.where(positive, logits, zeros)
        neg_abs = array_ops.where(positive, -logits, logits)
        return math_ops.add(relu_logits - logits * labels,
                            math_ops.log1p(math_ops.exp(neg_abs)),
                            name=scope)


def _noise_shape(x, noise_shape):
    """The shape of what is kept or dropped together; None is x's size."""
    if noise_shape is None:
        return array_ops.shape(x)
    try:
        dims = tensor_shape.as_shape(noise_shape)
    except (TypeError, ValueError):
        return noise_shape
    if x.shape.dims is not None and dims.dims is not None and \
            len(x.shape.dims) == len(dims.dims):
        return tensor_shape.TensorShape([
            whole if part.value is None else part
            for whole, part in zip(x.shape.dims, dims.dims)])
    return noise_shape


def dropout(x, keep_prob=None, noise_shape=None, seed=None, name=None,
            rate=None):
    if keep_prob is not None:
        if rate is not None:
            raise ValueError("Cannot specify both 'keep_prob' and 'rate'")
        try:
            rate = 1. - keep_prob
        except TypeError:
            raise ValueError("keep_prob must be a floating point number or "
                             "Tensor (got %r)" % (keep_prob,)) from None
    if rate is None:
        raise ValueError("You must provide a rate to dropout.")
    with ops.name_scope(name, "dropout", [x]):
        x = ops.convert_to_tensor(x, name="x")
        if not x.dtype.is_floating:
            raise ValueError(
                "x has to be a floating point tensor since it's going to be "
                "scaled. Got a %s tensor instead." % x.dtype)
        if isinstance(rate, numbers.Real) and not 0 <= rate < 1:
            raise ValueError("rate must be a scalar tensor or a float in the "
                             "range [0, 1), got %g" % rate)
        if not isinstance(rate, ops.Tensor) and rate == 0:
            return x
        rate = ops.convert_to_tensor(rate, dtype=x.dtype, name="rate")
        rate.shape.assert_has_rank(0)
        noise = random_ops.random_uniform(_noise_shape(x, noise_shape),
                                          seed=seed, dtype=x.dtype)
        scale = 1 / (1 - rate)
        keep = noise >= rate
        result = x * scale * math_ops.cast(keep, x.dtype)
        result.set_shape(x.shape)
        return result


def l2_normalize(x, axis=None, epsilon=1e-12, name=None, dim=None):
    axis = dim if axis is None else axis
    with ops.name_scope(name, "l2_normalize", [x]) as scope:
        x = ops.convert_to_tensor(x, name="x")
        total = math_ops.reduce_sum(math_ops.square(x), axis, keepdims=True)
        inverse = math_ops.rsqrt(math_ops.maximum(total, epsilon))
        return math_ops.multiply(x, inverse, name=scope)


def in_top_k(predictions, targets, k, name=None):
    return apply_op("InTopKV2", name, predictions=predictions,
                    targets=targets, k=k)


def top_k(input, k=1, sorted=True, name=None):
    return apply_op("TopKV2", name, input=input, k=k, sorted=sorted)


def zero_fraction(value, name=None):
    with ops.name_scope(name, "zero_fraction", [value]):
        value = ops.convert_to_tensor(value, name="value")
        zero = constant_op.constant(0, dtype=value.dtype, name="zero")
        return math_ops.reduce_mean(math_ops.cast(
            math_ops.equal(value, zero), dtypes.float32))


def xw_plus_b(x, weights, biases, name=None):
    with ops.name_scope(name, "xw_plus_b", [x, weights, biases]) as scope:
        return bias_add(math_ops.matmul(x, weights), biases, name=scope)


def moments(x, axes, shift=None, name=None, keep_dims=None, keepdims=None):
    keep = bool(keep_dims if keepdims is None else keepdims)
    with ops.name_scope(name, "moments", [x, axes]):
        mean = math_ops.reduce_mean(x, axes, keepdims=True, name="mean")
        variance = math_ops.reduce_mean(
            math_ops.squared_difference(x, array_ops.stop_gradient(mean)),
            axes, keepdims=True, name="variance")
        if keep:
            return mean, variance
        return array_ops.squeeze(mean, axes), array_ops.squeeze(variance,
                                                                axes)
