"""MomentumOptimizer."""

from sluice.framework import ops
from sluice.training import optimizer


class MomentumOptimizer(optimizer.EngineOptimizer):
    """accumulator = momentum * accumulator + gradient, and down along it."""

    def __init__(self, learning_rate, momentum, use_locking=False,
                 name="Momentum", use_nesterov=False):
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._momentum = momentum
        self._use_nesterov = use_nesterov

    def _create_slots(self, var_list):
        for v in var_list:
            self._zeros_slot(v, "momentum", self._name)

    def _prepare(self):
        self._learning_rate_tensor = ops.convert_to_tensor(
            self._call_if_callable(self._learning_rate), name="learning_rate")
        self._momentum_tensor = ops.convert_to_tensor(
            self._call_if_callable(self._momentum), name="momentum")

    def _update(self, grad, var):
        return self._apply_update(
            "Momentum", var, ["momentum"],
            [self._learning_rate_tensor, self._momentum_tensor], grad,
            nesterov=self._use_nesterov)
