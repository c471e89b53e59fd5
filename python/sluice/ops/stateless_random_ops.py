"""tf.random.stateless_*: numbers that follow from their seed alone."""

from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework.op_builder import apply_op
from sluice.ops import math_ops
from sluice.ops.random_ops import _shape_tensor


def stateless_random_uniform(shape, seed, minval=0, maxval=None,
                             dtype=dtypes.float32, name=None):
    dtype = dtypes.as_dtype(dtype)
    if maxval is None:
        if dtype.is_integer:
            raise ValueError("Must specify maxval for integer dtype %r" %
                             dtype)
        maxval = 1
    with ops.name_scope(name, "stateless_random_uniform",
                        [shape, seed, minval, maxval]) as scope:
        shape = _shape_tensor(shape)
        minval = ops.convert_to_tensor(minval, dtype=dtype, name="min")
        maxval = ops.convert_to_tensor(maxval, dtype=dtype, name="max")
        if dtype.is_integer:
            return apply_op("StatelessRandomUniformInt", scope, shape=shape,
                            seed=seed, minval=minval, maxval=maxval)
        rnd = apply_op("StatelessRandomUniform", None, shape=shape, seed=seed,
                       dtype=dtype)
        return math_ops.add(rnd * (maxval - minval), minval, name=scope)


def _normal(op_type, default_name, shape, seed, mean, stddev, dtype, name):
    with ops.name_scope(name, default_name,
                        [shape, seed, mean, stddev]) as scope:
        shape = _shape_tensor(shape)
        mean = ops.convert_to_tensor(mean, dtype=dtype, name="mean")
        stddev = ops.convert_to_tensor(stddev, dtype=dtype, name="stddev")
        rnd = apply_op(op_type, None, shape=shape, seed=seed, dtype=dtype)
        return math_ops.add(rnd * stddev, mean, name=scope)


def stateless_random_normal(shape, seed, mean=0.0, stddev=1.0,
                            dtype=dtypes.float32, name=None):
    return _normal("StatelessRandomNormal", "stateless_random_normal", shape,
                   seed, mean, stddev, dtype, name)


def stateless_truncated_normal(shape, seed, mean=0.0, stddev=1.0,
                               dtype=dtypes.float32, name=None):
    return _normal("StatelessTruncatedNormal", "stateless_truncated_normal",
                   shape, seed, mean, stddev, dtype, name)


def stateless_multinomial(logits, num_samples, seed, output_dtype=dtypes.int64,
                          name=None):
    with ops.name_scope(name, "stateless_multinomial", [logits, seed]):
        return _classes(logits, num_samples, seed, output_dtype)


def stateless_categorical(logits, num_samples, seed, dtype=dtypes.int64,
                          name=None):
    with ops.name_scope(name, "stateless_categorical", [logits, seed]):
        return _classes(logits, num_samples, seed, dtype)


def _classes(logits, num_samples, seed, dtype):
    logits = ops.convert_to_tensor(logits, name="logits")
    return apply_op("StatelessMultinomial", None, logits=logits,
                    num_samples=num_samples, seed=seed, output_dtype=dtype)


stateless_uniform = stateless_random_uniform
stateless_normal = stateless_random_normal
