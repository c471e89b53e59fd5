"""Collections of variables, and operations on all of them."""

import os

from sluice.framework import constant_op
from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework.op_builder import apply_op
from sluice.ops import array_ops
from sluice.ops import control_flow_ops
from sluice.ops import math_ops

GraphKeys = ops.GraphKeys


def _collected(key):
    def function(scope=None):
        return ops.get_collection(key, scope)
    return function


global_variables = _collected(GraphKeys.GLOBAL_VARIABLES)
local_variables = _collected(GraphKeys.LOCAL_VARIABLES)
model_variables = _collected(GraphKeys.MODEL_VARIABLES)
trainable_variables = _collected(GraphKeys.TRAINABLE_VARIABLES)
moving_average_variables = _collected(GraphKeys.MOVING_AVERAGE_VARIABLES)
all_variables = global_variables


def variables_initializer(var_list, name="init"):
    if var_list:
        return control_flow_ops.group(*[v.initializer for v in var_list],
                                      name=name)
    return control_flow_ops.group(name=name)


def global_variables_initializer():
    return variables_initializer(global_variables())


def local_variables_initializer():
    variables = local_variables()
    return variables_initializer(variables, name="init") if variables else \
        control_flow_ops.no_op(name="init")


def is_variable_initialized(variable):
    if variable._is_resource:
        return variable.is_initialized()
    return apply_op("IsVariableInitialized", None, ref=variable._variable)


def report_uninitialized_variables(var_list=None,
                                   name="report_uninitialized_variables"):
    if var_list is None:
        var_list = global_variables() + local_variables()
    with ops.name_scope(name):
        initialized = [is_variable_initialized(v) for v in var_list]
        with ops.device(os.environ.get(
                "TF_DEVICE_FOR_UNINITIALIZED_VARIABLE_REPORTING", "/cpu:0")):
            if not var_list:
                return constant_op.constant([], dtype=dtypes.string)
            mask = math_ops.logical_not(array_ops.stack(initialized))
            names = ops.convert_to_tensor([v.op.name for v in var_list],
                                          dtype=dtypes.string, name="Const")
            return array_ops.boolean_mask(names, mask)


def assert_variables_initialized(var_list=None):
    if var_list is None:
        var_list = global_variables() + local_variables()
    if not var_list:
        return None
    ranks = []
    for v in var_list:
        with ops.colocate_with(v.op):
            # Rank itself: what is known of the shape says nothing of a value.
            ranks.append(apply_op("Rank", None, input=v._as_graph_element()))
    return ranks[0] if len(ranks) == 1 else array_ops.stack(ranks)


def initialize_all_variables():
    return global_variables_initializer()


def initialize_variables(var_list, name="init"):
    return variables_initializer(var_list, name)


def initialize_local_variables():
    return local_variables_initializer()
