"""Updates of variables as functions."""

from sluice.framework import ops
from sluice.framework.op_builder import apply_op


def _is_resource(ref):
    return getattr(ref, "_is_resource", False)


def _ref(ref):
    return ref._ref() if hasattr(ref, "_ref") else ref


def assign(ref, value, validate_shape=None, use_locking=None, name=None):
    if _is_resource(ref):
        return ref.assign(value, name=name)
    return apply_op("Assign", name, ref=_ref(ref), value=value,
                    validate_shape=validate_shape, use_locking=use_locking)


def assign_add(ref, value, use_locking=None, name=None):
    if _is_resource(ref):
        return ref.assign_add(value, name=name)
    return apply_op("AssignAdd", name, ref=_ref(ref), value=value,
                    use_locking=use_locking)


def assign_sub(ref, value, use_locking=None, name=None):
    if _is_resource(ref):
        return ref.assign_sub(value, name=name)
    return apply_op("AssignSub", name, ref=_ref(ref), value=value,
                    use_locking=use_locking)


def _scattered(op_type, ref, indices, updates, use_locking, name):
    if _is_resource(ref):
        return ref._scatter(op_type, indices, updates, name)
    return apply_op(op_type, name, ref=_ref(ref), indices=indices,
                    updates=updates, use_locking=use_locking)


def scatter_update(ref, indices, updates, use_locking=True, name=None):
    return _scattered("ScatterUpdate", ref, indices, updates, use_locking,
                      name)


def scatter_add(ref, indices, updates, use_locking=False, name=None):
    return _scattered("ScatterAdd", ref, indices, updates, use_locking, name)


def scatter_sub(ref, indices, updates, use_locking=False, name=None):
    return _scattered("ScatterSub", ref, indices, updates, use_locking, name)


def scatter_mul(ref, indices, updates, use_locking=False, name=None):
    return _scattered("ScatterMul", ref, indices, updates, use_locking, name)


def scatter_div(ref, indices, updates, use_locking=False, name=None):
    return _scattered("ScatterDiv", ref, indices, updates, use_locking, name)


def scatter_min(ref, indices, updates, use_locking=False, name=None):
    return _scattered("ScatterMin", ref, indices, updates, use_locking, name)


def scatter_max(ref, indices, updates, use_locking=False, name=None):
    return _scattered("ScatterMax", ref, indices, updates, use_locking, name)


def scatter_nd_update(ref, indices, updates, use_locking=True, name=None):
    return _scattered("ScatterNdUpdate", ref, indices, updates, use_locking,
                      name)


def scatter_nd_add(ref, indices, updates, use_locking=False, name=None):
    return _scattered("ScatterNdAdd", ref, indices, updates, use_locking, name)


def scatter_nd_sub(ref, indices, updates, use_locking=False, name=None):
    return _scattered("ScatterNdSub", ref, indices, updates, use_locking, name)


def batch_scatter_update(ref, indices, updates, use_locking=True, name=None):
    """ref[i..., indices[i..., j]] = updates[i..., j] for each i..., j."""
    from sluice.ops import array_ops
    from sluice.ops import math_ops
    with ops.name_scope(name):
        indices = ops.convert_to_tensor(indices, name="indices")
        shape = array_ops.shape(indices)
        dims = indices.shape.ndims
        coordinates = []
        # Dimension `d` of the batch counts along dimension `d` of the indices.
        for d in range(dims - 1):
            along = array_ops.reshape(math_ops.range(
                math_ops.cast(shape[d], indices.dtype)),
                [-1 if i == d else 1 for i in range(dims)])
            coordinates.append(along + array_ops.zeros_like(indices))
        coordinates.append(indices)
        return scatter_nd_update(
            ref, array_ops.stack(coordinates, axis=-1), updates, use_locking,
            name)


def count_up_to(ref, limit, name=None):
    if _is_resource(ref):
        return apply_op("ResourceCountUpTo", name, resource=ref.handle,
                        limit=limit, T=ref.dtype)
    return apply_op("CountUpTo", name, ref=_ref(ref), limit=limit)
