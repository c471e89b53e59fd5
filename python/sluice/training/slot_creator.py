"""Slots: variables an optimizer keeps beside each variable it trains."""

import contextlib

from sluice.framework import ops
from sluice.ops import array_ops
from sluice.ops import init_ops
from sluice.ops import variable_scope
from sluice.ops import variables


def _create_slot_var(primary, val, scope, validate_shape, shape, dtype):
    # A slot is as large as its primary: the scope's partitioner is not for it.
    current = variable_scope.get_variable_scope()
    partitioner = current.partitioner
    current.set_partitioner(None)
    try:
        slot = variable_scope.get_variable(
            scope, initializer=val, trainable=False,
            use_resource=getattr(primary, "_is_resource", None),
            shape=shape, dtype=dtype, validate_shape=validate_shape)
    finally:
        current.set_partitioner(partitioner)
    info = getattr(primary, "_save_slice_info", None)
    if info is not None:
        # Part of a slot of the whole variable.
        name = slot.name[len(primary.op.name + "/"):-2]
        slot._set_save_slice_info(variables.SaveSliceInfo(
            info.full_name + "/" + name, list(info.full_shape),
            list(info.var_offset), list(info.var_shape)))
    return slot


@contextlib.contextmanager
def _slot_scope(primary, name, colocate_with_primary):
    """Named after the primary, `_1` and so on if there is one already."""
    with variable_scope.variable_scope(None, primary.op.name + "/" + name):
        if colocate_with_primary:
            with ops.colocate_with(primary.op):
                yield
        else:
            yield


def create_slot(primary, val, name, colocate_with_primary=True):
    """A slot whose first value is the tensor `val`."""
    validate_shape = val.get_shape().is_fully_defined()
    with _slot_scope(primary, name, colocate_with_primary):
        return _create_slot_var(primary, val, "", validate_shape, None, None)


def create_slot_with_initializer(primary, initializer, shape, dtype, name,
                                 colocate_with_primary=True):
    validate_shape = shape.is_fully_defined()
    with _slot_scope(primary, name, colocate_with_primary):
        return _create_slot_var(primary, initializer, "", validate_shape,
                                shape, dtype)


def create_zeros_slot(primary, name, dtype=None, colocate_with_primary=True):
    if dtype is None:
        dtype = primary.dtype
    dtype = dtype.base_dtype
    shape = primary.get_shape()
    if shape.is_fully_defined():
        return create_slot_with_initializer(
            primary, init_ops.zeros_initializer(dtype), shape, dtype, name,
            colocate_with_primary)
    if isinstance(primary, variables.Variable):
        like = array_ops.shape(primary.initialized_value())
    else:
        like = array_ops.shape(primary)
    return create_slot(primary, array_ops.zeros(like, dtype=dtype), name,
                       colocate_with_primary)
