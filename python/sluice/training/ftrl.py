"""FtrlOptimizer."""

from sluice.framework import constant_op
from sluice.framework import ops
from sluice.training import optimizer


class FtrlOptimizer(optimizer.EngineOptimizer):
    """Follow the regularized leader."""

    def __init__(self, learning_rate, learning_rate_power=-0.5,
                 initial_accumulator_value=0.1, l1_regularization_strength=0.0,
                 l2_regularization_strength=0.0, use_locking=False,
                 name="Ftrl", accum_name=None, linear_name=None,
                 l2_shrinkage_regularization_strength=0.0):
        super().__init__(use_locking, name)
        for argument, value in (
                ("initial_accumulator_value", initial_accumulator_value),
                ("l1_regularization_strength", l1_regularization_strength),
                ("l2_regularization_strength", l2_regularization_strength),
                ("l2_shrinkage_regularization_strength",
                 l2_shrinkage_regularization_strength)):
            if value < 0.0:
                raise ValueError("%s %f needs to be positive or zero" %
                                 (argument, value))
        if learning_rate_power > 0.0:
            raise ValueError("learning_rate_power %f needs to be negative or "
                             "zero" % learning_rate_power)
        self._learning_rate = learning_rate
        self._learning_rate_power = learning_rate_power
        self._initial_accumulator_value = initial_accumulator_value
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength
        self._l2_shrinkage = l2_shrinkage_regularization_strength
        self._accum_name = accum_name
        self._linear_name = linear_name

    def _create_slots(self, var_list):
        for v in var_list:
            with ops.colocate_with(v):
                accumulator = constant_op.constant(
                    self._initial_accumulator_value,
                    dtype=v.dtype.base_dtype, shape=v.get_shape())
                self._get_or_make_slot(v, accumulator, "accum",
                                       self._accum_name or self._name)
                self._zeros_slot(v, "linear",
                                 self._linear_name or self._name)

    def _prepare(self):
        self._learning_rate_tensor = ops.convert_to_tensor(
            self._learning_rate, name="learning_rate")
        self._l1_tensor = ops.convert_to_tensor(
            self._l1_regularization_strength,
            name="l1_regularization_strength")
        self._l2_tensor = ops.convert_to_tensor(
            self._l2_regularization_strength,
            name="l2_regularization_strength")
        self._l2_shrinkage_tensor = ops.convert_to_tensor(
            self._l2_shrinkage, name="l2_shrinkage_regularization_strength")
        self._learning_rate_power_tensor = ops.convert_to_tensor(
            self._learning_rate_power, name="learning_rate_power")

    def _update(self, grad, var):
        parameters = [self._learning_rate_tensor, self._l1_tensor,
                      self._l2_tensor, self._learning_rate_power_tensor]
        if self._l2_shrinkage > 0.0:
            parameters.append(self._l2_shrinkage_tensor)
        return self._apply_update("Ftrl", var, ["accum", "linear"],
                                  parameters, grad)
