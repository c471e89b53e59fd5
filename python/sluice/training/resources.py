"""Resources and tables that need an operation to make them."""

from sluice.framework import constant_op
from sluice.framework import dtypes
from sluice.framework import ops
from sluice.ops import array_ops
from sluice.ops import control_flow_ops
from sluice.ops import math_ops


class _Resource(object):

    def __init__(self, handle, create, is_initialized):
        self.handle = handle
        self.create = create
        self.is_initialized = is_initialized


def register_resource(handle, create_op, is_initialized_op, is_shared=True):
    key = ops.GraphKeys.RESOURCES if is_shared else \
        ops.GraphKeys.LOCAL_RESOURCES
    ops.add_to_collection(key, _Resource(handle, create_op,
                                         is_initialized_op))


def shared_resources():
    return ops.get_collection(ops.GraphKeys.RESOURCES)


def local_resources():
    return ops.get_collection(ops.GraphKeys.LOCAL_RESOURCES)


def initialize_resources(resource_list, name="init"):
    if resource_list:
        return control_flow_ops.group(*[r.create for r in resource_list],
                                      name=name)
    return control_flow_ops.no_op(name=name)


def report_uninitialized_resources(resource_list=None,
                                   name="report_uninitialized_resources"):
    if resource_list is None:
        resource_list = shared_resources() + local_resources()
    with ops.name_scope(name):
        with ops.device("/cpu:0"):
            if not resource_list:
                return constant_op.constant([], dtype=dtypes.string)
            mask = math_ops.logical_not(array_ops.stack(
                [r.is_initialized for r in resource_list]))
            names = constant_op.constant(
                [r.handle.name for r in resource_list])
            return array_ops.boolean_mask(names, mask)


def tables_initializer(name="init_all_tables"):
    initializers = ops.get_collection(ops.GraphKeys.TABLE_INITIALIZERS)
    if initializers:
        return control_flow_ops.group(*initializers, name=name)
    return control_flow_ops.no_op(name=name)


def initialize_all_tables(name="init_all_tables"):
    return tables_initializer(name)
