"""AdadeltaOptimizer."""

from sluice.framework import ops
from sluice.training import optimizer


class AdadeltaOptimizer(optimizer.EngineOptimizer):
    """Steps in the ratio of the means of updates and gradients."""

    def __init__(self, learning_rate=0.001, rho=0.95, epsilon=1e-8,
                 use_locking=False, name="Adadelta"):
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._rho = rho
        self._epsilon = epsilon
        self._lr_t = self._rho_t = self._epsilon_t = None

    def _create_slots(self, var_list):
        for v in var_list:
            self._zeros_slot(v, "accum", self._name)
            self._zeros_slot(v, "accum_update", self._name)

    def _prepare(self):
        self._lr_t = ops.convert_to_tensor(
            self._call_if_callable(self._lr), name="lr")
        self._rho_t = ops.convert_to_tensor(
            self._call_if_callable(self._rho), name="rho")
        self._epsilon_t = ops.convert_to_tensor(
            self._call_if_callable(self._epsilon), name="epsilon")

    def _update(self, grad, var):
        return self._apply_update(
            "Adadelta", var, ["accum", "accum_update"],
            [self._lr_t, self._rho_t, self._epsilon_t], grad)
