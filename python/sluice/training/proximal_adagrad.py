"""ProximalAdagradOptimizer."""

from sluice.framework import constant_op
from sluice.framework import ops
from sluice.training import optimizer


class ProximalAdagradOptimizer(optimizer.EngineOptimizer):
    """Adagrad, after which each weight shrinks towards zero."""

    def __init__(self, learning_rate, initial_accumulator_value=0.1,
                 l1_regularization_strength=0.0,
                 l2_regularization_strength=0.0, use_locking=False,
                 name="ProximalAdagrad"):
        if initial_accumulator_value <= 0.0:
            raise ValueError("initial_accumulator_value must be positive: %s" %
                             initial_accumulator_value)
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_accumulator_value = initial_accumulator_value
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength
        self._l1_regularization_strength_tensor = None
        self._l2_regularization_strength_tensor = None
        self._learning_rate_tensor = None

    def _create_slots(self, var_list):
        for v in var_list:
            with ops.colocate_with(v):
                value = constant_op.constant(self._initial_accumulator_value,
                                             shape=v.get_shape(),
                                             dtype=v.dtype.base_dtype)
            self._get_or_make_slot(v, value, "accumulator", self._name)

    def _prepare(self):
        self._learning_rate_tensor = ops.convert_to_tensor(
            self._learning_rate, name="learning_rate")
        self._l1_regularization_strength_tensor = ops.convert_to_tensor(
            self._l1_regularization_strength,
            name="l1_regularization_strength")
        self._l2_regularization_strength_tensor = ops.convert_to_tensor(
            self._l2_regularization_strength,
            name="l2_regularization_strength")

    def _update(self, grad, var):
        return self._apply_update(
            "ProximalAdagrad", var, ["accumulator"],
            [self._learning_rate_tensor,
             self._l1_regularization_strength_tensor,
             self._l2_regularization_strength_tensor], grad)
