"""Bounds on values and norms."""

from sluice.framework import constant_op
from sluice.framework import dtypes
from sluice.framework import ops
from sluice.ops import array_ops
from sluice.ops import math_ops


def _values(t):
    return t.values if isinstance(t, ops.IndexedSlices) else t


def _like(t, values):
    if isinstance(t, ops.IndexedSlices):
        return ops.IndexedSlices(values, t.indices, t.dense_shape)
    return values


def clip_by_value(t, clip_value_min, clip_value_max, name=None):
    with ops.name_scope(name, "clip_by_value",
                        [t, clip_value_min, clip_value_max]) as scope:
        values = ops.convert_to_tensor(_values(t), name="t")
        low = math_ops.minimum(values, clip_value_max)
        values.shape.merge_with(low.shape)
        result = math_ops.maximum(low, clip_value_min, name=scope)
        values.shape.merge_with(result.shape)
    return _like(t, result)


def clip_by_norm(t, clip_norm, axes=None, name=None):
    with ops.name_scope(name, "clip_by_norm", [t, clip_norm]) as scope:
        values = ops.convert_to_tensor(_values(t), name="t")
        total = math_ops.reduce_sum(values * values, axes, keepdims=True)
        positive = total > 0
        # The root of zero has no gradient, so it is not taken of zeros.
        safe = array_ops.where(positive, total, array_ops.ones_like(total))
        norm = array_ops.where(positive, math_ops.sqrt(safe), total)
        scaled = values * clip_norm
        values.shape.merge_with(scaled.shape)
        clipped = array_ops.identity(
            scaled / math_ops.maximum(norm, clip_norm), name=scope)
    return _like(t, clipped)


def _all_values(t_list):
    if not isinstance(t_list, (list, tuple)):
        raise TypeError("t_list should be a sequence")
    return [None if t is None else ops.convert_to_tensor(
        _values(t), name="t_%d" % i) for i, t in enumerate(t_list)]


def global_norm(t_list, name=None):
    values = _all_values(t_list)
    with ops.name_scope(name, "global_norm", list(t_list)):
        halves = []
        for v in values:
            if v is not None:
                with ops.colocate_with(v):
                    halves.append(math_ops.l2_loss(v))
        total = math_ops.reduce_sum(array_ops.stack(halves))
        return math_ops.sqrt(
            total * constant_op.constant(2.0, dtype=total.dtype),
            name="global_norm")


def clip_by_global_norm(t_list, clip_norm, use_norm=None, name=None):
    if use_norm is None:
        use_norm = global_norm(t_list, name)
    with ops.name_scope(name, "clip_by_global_norm",
                        list(t_list) + [clip_norm]) as scope:
        scale = clip_norm * math_ops.minimum(
            1.0 / use_norm,
            constant_op.constant(1.0, dtype=use_norm.dtype) / clip_norm)
        # A norm that is not finite shows in every gradient.
        scale = array_ops.where(
            math_ops.is_finite(use_norm), scale,
            constant_op.constant(float("nan"), dtype=use_norm.dtype))
        clipped = []
        for i, v in enumerate(_all_values(t_list)):
            if v is None:
                clipped.append(None)
                continue
            with ops.colocate_with(v):
                clipped.append(array_ops.identity(v * scale,
                                                  name="%s_%d" % (scope, i)))
        return [None if c is None else _like(t, c)
                for t, c in zip(t_list, clipped)], use_norm


def clip_by_average_norm(t, clip_norm, name=None):
    with ops.name_scope(name, "clip_by_average_norm", [t, clip_norm]) as scope:
        t = ops.convert_to_tensor(t, name="t")
        count = math_ops.cast(array_ops.size(t), dtypes.float32)
        inverse = math_ops.rsqrt(math_ops.reduce_sum(
            t * t, math_ops.range(array_ops.rank(t))))
        return array_ops.identity(
            t * clip_norm * math_ops.minimum(
                inverse * count, constant_op.constant(1.0 / clip_norm)),
            name=scope)
