"""Initializers of variables."""

import math

from sluice.framework import constant_op
from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework import tensor_shape
from sluice.ops import array_ops
from sluice.ops import linalg_ops
from sluice.ops import math_ops
from sluice.ops import random_ops


def _floating(dtype):
    dtype = dtypes.as_dtype(dtype)
    if not dtype.is_floating:
        raise ValueError("Expected floating point type, got %s." % dtype)
    return dtype


def _dims(shape):
    return tensor_shape.as_shape(shape).as_list()


class Initializer(object):
    """Makes the first value of a variable.

    `_config` names the arguments it was made with, which are attributes too.
    """

    _config = ("dtype",)

    def __call__(self, shape, dtype=None, partition_info=None):
        raise NotImplementedError

    def get_config(self):
        return {name: self.dtype.name if name == "dtype" else
                getattr(self, name) for name in self._config}

    @classmethod
    def from_config(cls, config):
        return cls(**config)


class Zeros(Initializer):
    def __init__(self, dtype=dtypes.float32):
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(self, shape, dtype=None, partition_info=None):
        return array_ops.zeros(shape, dtype or self.dtype)


class Ones(Initializer):
    def __init__(self, dtype=dtypes.float32):
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(self, shape, dtype=None, partition_info=None):
        return array_ops.ones(shape, dtype or self.dtype)


class Constant(Initializer):
    _config = ("value", "dtype")

    def __init__(self, value=0, dtype=dtypes.float32, verify_shape=False):
        if not (isinstance(value, (list, tuple, int, float, complex, bool,
                                   bytes, str)) or
                (hasattr(value, "dtype") and
                 not isinstance(value, ops.Tensor))):
            raise TypeError(
                "Invalid type for initial value: %s (expected Python scalar, "
                "list or tuple of values, or numpy.ndarray)." % type(value))
        self.value = value
        self.dtype = dtypes.as_dtype(dtype)
        self._verify_shape = verify_shape

    def __call__(self, shape, dtype=None, partition_info=None,
                 verify_shape=None):
        return constant_op.constant(
            self.value, dtype=dtype or self.dtype, shape=shape,
            verify_shape=self._verify_shape if verify_shape is None else
            verify_shape)


class RandomUniform(Initializer):
    _config = ("minval", "maxval", "seed", "dtype")

    def __init__(self, minval=0, maxval=None, seed=None,
                 dtype=dtypes.float32):
        self.minval = minval
        self.maxval = maxval
        self.seed = seed
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(self, shape, dtype=None, partition_info=None):
        return random_ops.random_uniform(shape, self.minval, self.maxval,
                                         dtype or self.dtype, seed=self.seed)


class RandomNormal(Initializer):
    _config = ("mean", "stddev", "seed", "dtype")

    def __init__(self, mean=0.0, stddev=1.0, seed=None,
                 dtype=dtypes.float32):
        self.mean = mean
        self.stddev = stddev
        self.seed = seed
        self.dtype = _floating(dtype)

    def __call__(self, shape, dtype=None, partition_info=None):
        return random_ops.random_normal(shape, self.mean, self.stddev,
                                        dtype or self.dtype, seed=self.seed)


class TruncatedNormal(Initializer):
    _config = ("mean", "stddev", "seed", "dtype")

    def __init__(self, mean=0.0, stddev=1.0, seed=None,
                 dtype=dtypes.float32):
        self.mean = mean
        self.stddev = stddev
        self.seed = seed
        self.dtype = _floating(dtype)

    def __call__(self, shape, dtype=None, partition_info=None):
        return random_ops.truncated_normal(shape, self.mean, self.stddev,
                                           dtype or self.dtype,
                                           seed=self.seed)


class UniformUnitScaling(Initializer):
    _config = ("factor", "seed", "dtype")

    def __init__(self, factor=1.0, seed=None, dtype=dtypes.float32):
        self.factor = factor
        self.seed = seed
        self.dtype = _floating(dtype)

    def __call__(self, shape, dtype=None, partition_info=None):
        dims = _dims(shape)
        whole = dims if partition_info is None else partition_info.full_shape
        size = 1.0
        for d in whole[:-1]:
            size *= float(d)
        limit = math.sqrt(3 / max(1.0, size)) * self.factor
        return random_ops.random_uniform(dims, -limit, limit,
                                         dtype or self.dtype, seed=self.seed)


def _compute_fans(shape):
    if not shape:
        return 1, 1
    if len(shape) == 1:
        return shape[0], shape[0]
    if len(shape) == 2:
        return shape[0], shape[1]
    field = 1
    for d in shape[:-2]:
        field *= d
    return shape[-2] * field, shape[-1] * field


class VarianceScaling(Initializer):
    _config = ("scale", "mode", "distribution", "seed", "dtype")

    def __init__(self, scale=1.0, mode="fan_in",
                 distribution="truncated_normal", seed=None,
                 dtype=dtypes.float32):
        if scale <= 0.:
            raise ValueError("`scale` must be positive float.")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError("Invalid `mode` argument:", mode)
        distribution = distribution.lower()
        if distribution not in ("normal", "uniform", "truncated_normal",
                                "untruncated_normal"):
            raise ValueError("Invalid `distribution` argument:", distribution)
        self.scale = scale
        self.mode = mode
        self.distribution = distribution
        self.seed = seed
        self.dtype = _floating(dtype)

    def __call__(self, shape, dtype=None, partition_info=None):
        dtype = dtype or self.dtype
        dims = _dims(shape)
        full = dims if partition_info is None else list(
            partition_info.full_shape)
        fan_in, fan_out = _compute_fans(full)
        scale = self.scale
        if self.mode == "fan_in":
            scale /= max(1., fan_in)
        elif self.mode == "fan_out":
            scale /= max(1., fan_out)
        else:
            scale /= max(1., (fan_in + fan_out) / 2.)
        if self.distribution in ("normal", "truncated_normal"):
            # The standard deviation of a normal cut at two of its own.
            stddev = math.sqrt(scale) / .87962566103423978
            return random_ops.truncated_normal(dims, 0.0, stddev, dtype,
                                               seed=self.seed)
        if self.distribution == "untruncated_normal":
            return random_ops.random_normal(dims, 0.0, math.sqrt(scale),
                                            dtype, seed=self.seed)
        limit = math.sqrt(3.0 * scale)
        return random_ops.random_uniform(dims, -limit, limit, dtype,
                                         seed=self.seed)


class GlorotUniform(VarianceScaling):
    _config = ("seed", "dtype")

    def __init__(self, seed=None, dtype=dtypes.float32):
        super().__init__(1.0, "fan_avg", "uniform", seed, dtype)


class GlorotNormal(VarianceScaling):
    _config = ("seed", "dtype")

    def __init__(self, seed=None, dtype=dtypes.float32):
        super().__init__(1.0, "fan_avg", "truncated_normal", seed, dtype)


class Orthogonal(Initializer):
    """An orthogonal matrix: of the QR decomposition of random numbers."""

    _config = ("gain", "seed", "dtype")

    def __init__(self, gain=1.0, seed=None, dtype=dtypes.float32):
        self.gain = gain
        self.seed = seed
        self.dtype = _floating(dtype)

    def __call__(self, shape, dtype=None, partition_info=None):
        dtype = dtype or self.dtype
        dims = _dims(shape)
        if len(dims) < 2:
            raise ValueError("The tensor to initialize must be at least "
                             "two-dimensional")
        rows = 1
        for d in dims[:-1]:
            rows *= d
        columns = dims[-1]
        flat = (columns, rows) if rows < columns else (rows, columns)
        numbers = random_ops.random_normal(flat, dtype=dtype, seed=self.seed)
        q, r = linalg_ops.qr(numbers, full_matrices=False)
        # Made unique by a positive diagonal of r.
        q *= math_ops.sign(linalg_ops.diag_part(r))
        if rows < columns:
            q = linalg_ops.matrix_transpose(q)
        return self.gain * array_ops.reshape(q, dims)


class Identity(Initializer):
    """A matrix with ones on its diagonal."""

    _config = ("gain", "dtype")

    def __init__(self, gain=1.0, dtype=dtypes.float32):
        self.gain = gain
        self.dtype = _floating(dtype)

    def __call__(self, shape, dtype=None, partition_info=None):
        full = shape if partition_info is None else partition_info.full_shape
        if len(full) != 2:
            raise ValueError("Identity matrix initializer can only be used "
                             "for 2D matrices.")
        value = linalg_ops.eye(*full, dtype=dtype or self.dtype)
        if partition_info is not None:
            value = array_ops.slice(value, partition_info.var_offset, shape)
        return self.gain * value


def lecun_normal(seed=None):
    return VarianceScaling(1., "fan_in", "truncated_normal", seed)


def lecun_uniform(seed=None):
    return VarianceScaling(1., "fan_in", "uniform", seed)


def he_normal(seed=None):
    return VarianceScaling(2., "fan_in", "truncated_normal", seed)


def he_uniform(seed=None):
    return VarianceScaling(2., "fan_in", "uniform", seed)


zeros_initializer = Zeros
ones_initializer = Ones
constant_initializer = Constant
random_uniform_initializer = RandomUniform
random_normal_initializer = RandomNormal
truncated_normal_initializer = TruncatedNormal
uniform_unit_scaling_initializer = UniformUnitScaling
variance_scaling_initializer = VarianceScaling
glorot_uniform_initializer = GlorotUniform
glorot_normal_initializer = GlorotNormal
orthogonal_initializer = Orthogonal
identity_initializer = Identity
