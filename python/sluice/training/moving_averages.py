"""Moving averages of variables and tensors."""

from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework.op_builder import apply_op
from sluice.ops import control_flow_ops
from sluice.ops import init_ops
from sluice.ops import math_ops
from sluice.ops import variable_scope
from sluice.ops import variables
from sluice.training import slot_creator


def assign_moving_average(variable, value, decay, zero_debias=True, name=None):
    """variable -= (1 - decay) * (variable - value)."""
    with ops.name_scope(name, "AssignMovingAvg",
                        [variable, value, decay]) as scope:
        decay = ops.convert_to_tensor(1.0 - decay, name="decay")
        if decay.dtype != variable.dtype.base_dtype:
            decay = math_ops.cast(decay, variable.dtype.base_dtype)
        if zero_debias:
            return _zero_debias(variable, value, decay, scope)
        delta = (variable - value) * decay
        return variable.assign_sub(delta, name=scope)


def _zero_debias(unbiased_var, value, decay, scope):
    """Undoes that the average started from zero."""
    with variable_scope.variable_scope(
            unbiased_var.op.name, values=[unbiased_var, value, decay],
            auxiliary_name_scope=False):
        with ops.init_scope(), ops.colocate_with(unbiased_var.op):
            dtype = unbiased_var.dtype.base_dtype
            resource = getattr(unbiased_var, "_is_resource", False)

            def zeros(name, shape):
                return variable_scope.get_variable(
                    name, shape=shape, dtype=dtype, trainable=False,
                    use_resource=resource,
                    initializer=init_ops.zeros_initializer())
            biased_var = zeros("biased", unbiased_var.get_shape())
            local_step = zeros("local_step", [])
        biased = biased_var.assign_sub((biased_var - value) * decay)
        step = local_step.assign_add(1)
        unbiased = biased / (1 - math_ops.pow(1.0 - decay, step))
        if not resource:
            return apply_op("Assign", scope, ref=unbiased_var._ref(),
                            value=unbiased, use_locking=True)
        return unbiased_var.assign(unbiased, name=scope)


def weighted_moving_average(value, decay, weight, truediv=True,
                            collections=None, name=None):
    """The average of value·weight over the average of weight."""
    if collections is None:
        collections = [ops.GraphKeys.GLOBAL_VARIABLES]
    with variable_scope.variable_scope(name, "WeightedMovingAvg",
                                       [value, weight, decay]):
        value_x_weight = variable_scope.get_variable(
            "value_x_weight", shape=value.get_shape(), dtype=value.dtype,
            initializer=init_ops.zeros_initializer(), trainable=False,
            collections=collections)
        weight_var = variable_scope.get_variable(
            "weight", shape=weight.get_shape(), dtype=weight.dtype,
            initializer=init_ops.zeros_initializer(), trainable=False,
            collections=collections)
        numerator = assign_moving_average(value_x_weight, value * weight,
                                          decay, zero_debias=False)
        denominator = assign_moving_average(weight_var, weight, decay,
                                            zero_debias=False)
        if truediv:
            return math_ops.truediv(numerator, denominator)
        return math_ops.div(numerator, denominator)


class ExponentialMovingAverage(object):
    """Keeps a shadow of each variable that follows it slowly."""

    def __init__(self, decay, num_updates=None, zero_debias=False,
                 name="ExponentialMovingAverage"):
        self._decay = decay
        self._num_updates = num_updates
        self._zero_debias = zero_debias
        self._name = name
        self._averages = {}

    @property
    def name(self):
        return self._name

    def apply(self, var_list=None):
        """An operation that moves the averages."""
        if var_list is None:
            var_list = variables.trainable_variables()
        zero_debias_true = set()
        for var in var_list:
            if var.dtype.base_dtype not in (
                    dtypes.bfloat16, dtypes.float16, dtypes.float32,
                    dtypes.float64):
                raise TypeError("The variables must be half, float, or "
                                "double: %s" % var.name)
            if var not in self._averages:
                self._averages[var] = self._make_average(var,
                                                         zero_debias_true)
        with ops.name_scope(self.name) as scope:
            decay = ops.convert_to_tensor(self._decay, name="decay")
            if self._num_updates is not None:
                num_updates = math_ops.cast(
                    self._num_updates, dtypes.float32, name="num_updates")
                decay = math_ops.minimum(
                    decay, (1.0 + num_updates) / (10.0 + num_updates))
            updates = [assign_moving_average(
                self._averages[var], var, decay,
                zero_debias=self._averages[var] in zero_debias_true)
                for var in var_list]
            return control_flow_ops.group(*updates, name=scope)

    def _make_average(self, var, zero_debias_true):
        with ops.init_scope():
            if isinstance(var, variables.Variable):
                average = slot_creator.create_slot(
                    var, var.initialized_value(), self.name,
                    colocate_with_primary=True)
                # Its value is worth keeping only with its variable's.
                ops.add_to_collection(
                    ops.GraphKeys.MOVING_AVERAGE_VARIABLES, var)
            else:
                average = slot_creator.create_zeros_slot(
                    var, self.name, colocate_with_primary=var.op.type in (
                        "Variable", "VariableV2", "VarHandleOp"))
                if self._zero_debias:
                    zero_debias_true.add(average)
        return average

    def average(self, var):
        return self._averages.get(var)

    def average_name(self, var):
        """The name of the shadow, whether it exists or not."""
        if var in self._averages:
            return self._averages[var].op.name
        return ops.get_default_graph().unique_name(
            var.op.name + "/" + self.name, mark_as_used=False)

    def variables_to_restore(self, moving_avg_variables=None):
        """{name in the checkpoint: variable}, with shadows for variables."""
        names = {}
        if moving_avg_variables is None:
            moving_avg_variables = variables.trainable_variables() + \
                variables.moving_average_variables()
        moving_avg_variables = set(moving_avg_variables)
        for v in moving_avg_variables:
            names[self.average_name(v)] = v
        averaged = {v.name for v in moving_avg_variables}
        for v in variables.global_variables():
            if v.name not in averaged and v.op.name not in names:
                names[v.op.name] = v
        return names
