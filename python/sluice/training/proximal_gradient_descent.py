"""ProximalGradientDescentOptimizer."""

from sluice.framework import ops
from sluice.training import optimizer


class ProximalGradientDescentOptimizer(optimizer.EngineOptimizer):
    """Gradient descent, after which each weight shrinks towards zero."""

    def __init__(self, learning_rate, l1_regularization_strength=0.0,
                 l2_regularization_strength=0.0, use_locking=False,
                 name="ProximalGradientDescent"):
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength
        self._l1_regularization_strength_tensor = None
        self._l2_regularization_strength_tensor = None

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
            "ProximalGradientDescent", var, [],
            [self._learning_rate_tensor,
             self._l1_regularization_strength_tensor,
             self._l2_regularization_strength_tensor], grad)
