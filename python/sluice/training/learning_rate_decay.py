"""Schedules of the learning rate: tensors of the global step."""

import math

from sluice.framework import constant_op
from sluice.framework import dtypes
from sluice.framework import ops
from sluice.ops import control_flow_ops
from sluice.ops import math_ops
from sluice.ops import random_ops


def _required(global_step, name):
    if global_step is None:
        raise ValueError("global_step is required for %s." % name)


def exponential_decay(learning_rate, global_step, decay_steps, decay_rate,
                      staircase=False, name=None):
    """learning_rate * decay_rate ^ (global_step / decay_steps)."""
    _required(global_step, "exponential_decay")
    with ops.name_scope(name, "ExponentialDecay",
                        [learning_rate, global_step, decay_steps,
                         decay_rate]) as name:
        rate = ops.convert_to_tensor(learning_rate,
                                     name="initial_learning_rate")
        dtype = rate.dtype
        decay_steps = math_ops.cast(decay_steps, dtype)
        decay_rate = math_ops.cast(decay_rate, dtype)
        p = math_ops.cast(global_step, dtype) / decay_steps
        if staircase:
            p = math_ops.floor(p)
        return math_ops.multiply(rate, math_ops.pow(decay_rate, p), name=name)


def piecewise_constant(x, boundaries, values, name=None):
    """values[i] up to and including boundaries[i], then the last."""
    if len(boundaries) != len(values) - 1:
        raise ValueError("The length of boundaries should be 1 less than the "
                         "length of values")
    # Written boundaries and values stand outside of the scope.
    boundaries = [ops.convert_to_tensor(b) for b in boundaries]
    values = [ops.convert_to_tensor(v) for v in values]
    x = ops.convert_to_tensor(x)
    for i, b in enumerate(boundaries):
        if b.dtype.base_dtype != x.dtype.base_dtype:
            # Steps are int64; a written boundary is int32.
            if b.dtype.base_dtype == dtypes.int32 and \
                    x.dtype.base_dtype == dtypes.int64:
                boundaries[i] = math_ops.cast(b, x.dtype.base_dtype)
            else:
                raise ValueError(
                    "Boundaries (%s) must have the same dtype as x (%s)." %
                    (b.dtype.base_dtype, x.dtype.base_dtype))
    for v in values[1:]:
        if v.dtype.base_dtype != values[0].dtype.base_dtype:
            raise ValueError(
                "Values must have elements all with the same dtype (%s vs "
                "%s)." % (values[0].dtype.base_dtype, v.dtype.base_dtype))
    with ops.name_scope(name, "PiecewiseConstant",
                        [x, boundaries, values]):
        cases = [(x <= boundaries[0], lambda: values[0]),
                 (x > boundaries[-1], lambda: values[-1])]
        for low, high, v in zip(boundaries[:-1], boundaries[1:],
                                values[1:-1]):
            cases.append(((x > low) & (x <= high), lambda v=v: v))
        return control_flow_ops.case(cases, lambda: values[0],
                                     exclusive=True)


piecewise_constant_decay = piecewise_constant


def polynomial_decay(learning_rate, global_step, decay_steps,
                     end_learning_rate=0.0001, power=1.0, cycle=False,
                     name=None):
    """From learning_rate to end_learning_rate in decay_steps."""
    _required(global_step, "polynomial_decay")
    with ops.name_scope(name, "PolynomialDecay",
                        [learning_rate, global_step, decay_steps,
                         end_learning_rate, power]) as name:
        rate = ops.convert_to_tensor(learning_rate,
                                     name="initial_learning_rate")
        dtype = rate.dtype
        end = math_ops.cast(end_learning_rate, dtype)
        power = math_ops.cast(power, dtype)
        steps = math_ops.cast(global_step, dtype)
        first_steps = decay_steps
        decay_steps = math_ops.cast(decay_steps, dtype)
        if cycle:
            # The first period starts at step 0, too.
            multiplier = control_flow_ops.cond(
                math_ops.equal(steps, 0),
                lambda: constant_op.constant(1.0, dtype=dtype),
                lambda: math_ops.ceil(steps / first_steps))
            decay_steps = math_ops.multiply(decay_steps, multiplier)
        else:
            steps = math_ops.minimum(steps, decay_steps)
        p = math_ops.divide(steps, decay_steps)
        return math_ops.add(
            math_ops.multiply(rate - end, math_ops.pow(1 - p, power)), end,
            name=name)


def natural_exp_decay(learning_rate, global_step, decay_steps, decay_rate,
                      staircase=False, name=None):
    """learning_rate * e ^ (-decay_rate * global_step / decay_steps)."""
    _required(global_step, "natural_exp_decay")
    natural_exp_rate = math_ops.exp(math_ops.negative(decay_rate))
    return exponential_decay(learning_rate, global_step, decay_steps,
                             natural_exp_rate, staircase=staircase, name=name)


def inverse_time_decay(learning_rate, global_step, decay_steps, decay_rate,
                       staircase=False, name=None):
    """learning_rate / (1 + decay_rate * global_step / decay_steps)."""
    _required(global_step, "inverse_time_decay")
    with ops.name_scope(name, "InverseTimeDecay",
                        [learning_rate, global_step, decay_rate]) as name:
        rate = ops.convert_to_tensor(learning_rate,
                                     name="initial_learning_rate")
        dtype = rate.dtype
        decay_steps = math_ops.cast(decay_steps, dtype)
        decay_rate = math_ops.cast(decay_rate, dtype)
        p = math_ops.cast(global_step, dtype) / decay_steps
        if staircase:
            p = math_ops.floor(p)
        const = math_ops.cast(constant_op.constant(1), dtype)
        denominator = math_ops.add(const, math_ops.multiply(decay_rate, p))
        return math_ops.divide(rate, denominator, name=name)


def cosine_decay(learning_rate, global_step, decay_steps, alpha=0.0,
                 name=None):
    """Half a cosine from learning_rate to alpha * learning_rate."""
    _required(global_step, "cosine_decay")
    with ops.name_scope(name, "CosineDecay", [learning_rate, global_step]):
        rate = ops.convert_to_tensor(learning_rate,
                                     name="initial_learning_rate")
        dtype = rate.dtype
        decay_steps = math_ops.cast(decay_steps, dtype)
        steps = math_ops.minimum(math_ops.cast(global_step, dtype),
                                 decay_steps)
        completed = steps / decay_steps
        decayed = 0.5 * (1.0 + math_ops.cos(
            constant_op.constant(math.pi) * completed))
        return math_ops.multiply(rate, (1 - alpha) * decayed + alpha)


def cosine_decay_restarts(learning_rate, global_step, first_decay_steps,
                          t_mul=2.0, m_mul=1.0, alpha=0.0, name=None):
    """Cosine decays one after the other, each t_mul times as long."""
    _required(global_step, "cosine decay restarts")
    with ops.name_scope(name, "SGDRDecay",
                        [learning_rate, global_step]) as name:
        rate = ops.convert_to_tensor(learning_rate,
                                     name="initial_learning_rate")
        dtype = rate.dtype
        first = math_ops.cast(first_decay_steps, dtype)
        alpha = math_ops.cast(alpha, dtype)
        t_mul = math_ops.cast(t_mul, dtype)
        m_mul = math_ops.cast(m_mul, dtype)
        completed = math_ops.cast(global_step, dtype) / first

        def compute(completed, geometric):
            if geometric:
                i_restart = math_ops.floor(
                    math_ops.log(1.0 - completed * (1.0 - t_mul)) /
                    math_ops.log(t_mul))
                sum_r = (1.0 - t_mul ** i_restart) / (1.0 - t_mul)
                completed = (completed - sum_r) / t_mul ** i_restart
            else:
                i_restart = math_ops.floor(completed)
                completed -= i_restart
            return i_restart, completed

        i_restart, completed = control_flow_ops.cond(
            math_ops.equal(t_mul, 1.0),
            lambda: compute(completed, geometric=False),
            lambda: compute(completed, geometric=True))
        m_fac = m_mul ** i_restart
        decayed = 0.5 * m_fac * (1.0 + math_ops.cos(
            constant_op.constant(math.pi) * completed))
        return math_ops.multiply(rate, (1 - alpha) * decayed + alpha,
                                 name=name)


def linear_cosine_decay(learning_rate, global_step, decay_steps,
                        num_periods=0.5, alpha=0.0, beta=0.001, name=None):
    _required(global_step, "linear cosine decay")
    with ops.name_scope(name, "LinearCosineDecay",
                        [learning_rate, global_step]) as name:
        return _linear_cosine(learning_rate, global_step, decay_steps,
                              num_periods, alpha, beta, name, None)


def noisy_linear_cosine_decay(learning_rate, global_step, decay_steps,
                              initial_variance=1.0, variance_decay=0.55,
                              num_periods=0.5, alpha=0.0, beta=0.001,
                              name=None):
    _required(global_step, "noisy linear cosine decay")
    with ops.name_scope(name, "NoisyLinearCosineDecay",
                        [learning_rate, global_step]) as name:
        return _linear_cosine(learning_rate, global_step, decay_steps,
                              num_periods, alpha, beta, name,
                              (initial_variance, variance_decay))


def _linear_cosine(learning_rate, global_step, decay_steps, num_periods,
                   alpha, beta, name, noise):
    rate = ops.convert_to_tensor(learning_rate, name="initial_learning_rate")
    dtype = rate.dtype
    decay_steps = math_ops.cast(decay_steps, dtype)
    num_periods = math_ops.cast(num_periods, dtype)
    steps = math_ops.cast(global_step, dtype)
    alpha = math_ops.cast(alpha, dtype)
    beta = math_ops.cast(beta, dtype)
    steps = math_ops.minimum(steps, decay_steps)
    decayed = (decay_steps - steps) / decay_steps
    if noise is not None:
        initial_variance = math_ops.cast(noise[0], dtype)
        variance_decay = math_ops.cast(noise[1], dtype)
        variance = initial_variance / math_ops.pow(1.0 + steps,
                                                   variance_decay)
        decayed = decayed + random_ops.random_normal(
            decayed.shape, stddev=math_ops.sqrt(variance))
    completed = steps / decay_steps
    fraction = 2.0 * num_periods * completed
    cosine = 0.5 * (1.0 + math_ops.cos(
        constant_op.constant(math.pi) * fraction))
    return math_ops.multiply(rate, (alpha + decayed) * cosine + beta,
                             name=name)
