"""Updates of variables as functions."""

from sluice.framework.op_builder import apply_op
from sluice.ops import variables


def _ref(ref):
    return ref._ref() if isinstance(ref, variables.Variable) else ref


def assign(ref, value, validate_shape=None, use_locking=None, name=None):
    if isinstance(ref, variables.ResourceVariable):
        return ref.assign(value, name=name)
    return apply_op("Assign", name, ref=_ref(ref), value=value,
                    validate_shape=validate_shape, use_locking=use_locking)


def assign_add(ref, value, use_locking=None, name=None):
    if isinstance(ref, variables.ResourceVariable):
        return ref.assign_add(value, name=name)
    return apply_op("AssignAdd", name, ref=_ref(ref), value=value,
                    use_locking=use_locking)


def assign_sub(ref, value, use_locking=None, name=None):
    if isinstance(ref, variables.ResourceVariable):
        return ref.assign_sub(value, name=name)
    return apply_op("AssignSub", name, ref=_ref(ref), value=value,
                    use_locking=use_locking)


def _scatter(op_type):
    def function(ref, indices, updates, use_locking=None, name=None):
        if isinstance(ref, variables.ResourceVariable):
            return ref._scatter("Resource" + op_type, indices, updates, name)
        return apply_op(op_type, name, ref=_ref(ref), indices=indices,
                        updates=updates, use_locking=use_locking)
    return function


scatter_update = _scatter("ScatterUpdate")
scatter_add = _scatter("ScatterAdd")
scatter_sub = _scatter("ScatterSub")


def count_up_to(ref, limit, name=None):
    return apply_op("CountUpTo", name, ref=_ref(ref), limit=limit)
