"""Random numbers, and the seeds of operations."""

from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework.op_builder import apply_op

_DEFAULT_GRAPH_SEED = 87654321
_MAXINT32 = 2**31 - 1


def get_seed(op_seed):
    """The (seed, seed2) attributes for an operation built now."""
    graph_seed = ops.get_default_graph().seed
    if graph_seed is not None:
        if op_seed is None:
            op_seed = ops.get_default_graph()._last_id
        seeds = graph_seed % _MAXINT32, op_seed % _MAXINT32
    elif op_seed is not None:
        seeds = _DEFAULT_GRAPH_SEED, op_seed % _MAXINT32
    else:
        return 0, 0
    if seeds == (0, 0):
        return 0, _MAXINT32
    return seeds


def set_random_seed(seed):
    ops.get_default_graph().seed = seed


def _shape_tensor(shape):
    if isinstance(shape, (tuple, list)) and not shape:
        return ops.convert_to_tensor(shape, dtype=dtypes.int32, name="shape")
    return ops.convert_to_tensor(shape, name="shape")


def random_normal(shape, mean=0.0, stddev=1.0, dtype=dtypes.float32,
                  seed=None, name=None):
    with ops.name_scope(name, "random_normal", [shape, mean, stddev]) as scope:
        shape = _shape_tensor(shape)
        mean = ops.convert_to_tensor(mean, dtype=dtype, name="mean")
        stddev = ops.convert_to_tensor(stddev, dtype=dtype, name="stddev")
        seed1, seed2 = get_seed(seed)
        rnd = apply_op("RandomStandardNormal", None, shape=shape, dtype=dtype,
                       seed=seed1, seed2=seed2)
        from sluice.ops import math_ops
        return math_ops.add(rnd * stddev, mean, name=scope)


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype=dtypes.float32,
                     seed=None, name=None):
    with ops.name_scope(name, "truncated_normal",
                        [shape, mean, stddev]) as scope:
        shape = _shape_tensor(shape)
        mean = ops.convert_to_tensor(mean, dtype=dtype, name="mean")
        stddev = ops.convert_to_tensor(stddev, dtype=dtype, name="stddev")
        seed1, seed2 = get_seed(seed)
        rnd = apply_op("TruncatedNormal", None, shape=shape, dtype=dtype,
                       seed=seed1, seed2=seed2)
        from sluice.ops import math_ops
        return math_ops.add(rnd * stddev, mean, name=scope)


def random_uniform(shape, minval=0, maxval=None, dtype=dtypes.float32,
                   seed=None, name=None):
    dtype = dtypes.as_dtype(dtype)
    if maxval is None:
        if dtype.is_integer:
            raise ValueError("Must specify maxval for integer dtype %r" %
                             dtype)
        maxval = 1
    with ops.name_scope(name, "random_uniform",
                        [shape, minval, maxval]) as scope:
        shape = _shape_tensor(shape)
        minval = ops.convert_to_tensor(minval, dtype=dtype, name="min")
        maxval = ops.convert_to_tensor(maxval, dtype=dtype, name="max")
        seed1, seed2 = get_seed(seed)
        if dtype.is_integer:
            return apply_op("RandomUniformInt", scope, shape=shape,
                            minval=minval, maxval=maxval, seed=seed1,
                            seed2=seed2)
        rnd = apply_op("RandomUniform", None, shape=shape, dtype=dtype,
                       seed=seed1, seed2=seed2)
        from sluice.ops import math_ops
        return math_ops.add(rnd * (maxval - minval), minval, name=scope)


def random_shuffle(value, seed=None, name=None):
    seed1, seed2 = get_seed(seed)
    return apply_op("RandomShuffle", name, value=value, seed=seed1,
                    seed2=seed2)


def random_crop(value, size, seed=None, name=None):
    """A part of `value` of shape `size`, at a random place."""
    from sluice.ops import array_ops
    from sluice.ops import control_flow_ops
    from sluice.ops import math_ops
    with ops.name_scope(name, "random_crop", [value, size]) as scope:
        value = ops.convert_to_tensor(value, name="value")
        size = ops.convert_to_tensor(size, dtype=dtypes.int32, name="size")
        shape = array_ops.shape(value)
        check = control_flow_ops.Assert(
            math_ops.reduce_all(shape >= size),
            ["Need value.shape >= size, got ", shape, size], summarize=1000)
        shape = control_flow_ops.with_dependencies([check], shape)
        limit = shape - size + 1
        offset = random_uniform(array_ops.shape(shape), dtype=size.dtype,
                                maxval=size.dtype.max, seed=seed) % limit
        return array_ops.slice(value, offset, size, name=scope)


def random_gamma(shape, alpha, beta=None, dtype=dtypes.float32, seed=None,
                 name=None):
    """Samples of `shape` for each pair of alpha and beta."""
    from sluice.ops import array_ops
    from sluice.ops import math_ops
    with ops.name_scope(name, "random_gamma", [shape, alpha, beta]):
        shape = ops.convert_to_tensor(shape, name="shape", dtype=dtypes.int32)
        alpha = ops.convert_to_tensor(alpha, name="alpha", dtype=dtype)
        beta = ops.convert_to_tensor(beta if beta is not None else 1,
                                     name="beta", dtype=dtype)
        alpha = alpha + array_ops.zeros_like(beta)
        seed1, seed2 = get_seed(seed)
        import numpy as np  # Servers, which build nothing, do without.
        # A sample may round to 0, where the density has no logarithm.
        smallest = np.finfo(alpha.dtype.as_numpy_dtype).tiny
        return math_ops.maximum(smallest, apply_op(
            "RandomGamma", None, shape=shape, alpha=alpha, seed=seed1,
            seed2=seed2) / beta)


def random_poisson(lam, shape, dtype=dtypes.float32, seed=None, name=None):
    """Samples of `shape` for each rate in `lam`."""
    with ops.name_scope(name, "random_poisson", [lam, shape]):
        shape = ops.convert_to_tensor(shape, name="shape", dtype=dtypes.int32)
        seed1, seed2 = get_seed(seed)
        return apply_op("RandomPoissonV2", None, shape=shape, rate=lam,
                        dtype=dtype, seed=seed1, seed2=seed2)


def multinomial(logits, num_samples, seed=None, name=None, output_dtype=None):
    with ops.name_scope(name, "multinomial", [logits]):
        return _categorical(logits, num_samples, output_dtype, seed)


def categorical(logits, num_samples, dtype=None, seed=None, name=None):
    with ops.name_scope(name, "categorical", [logits]):
        return _categorical(logits, num_samples, dtype, seed)


def _categorical(logits, num_samples, dtype, seed):
    logits = ops.convert_to_tensor(logits, name="logits")
    seed1, seed2 = get_seed(seed)
    return apply_op("Multinomial", None, logits=logits,
                    num_samples=num_samples, seed=seed1, seed2=seed2,
                    output_dtype=dtype or dtypes.int64)
