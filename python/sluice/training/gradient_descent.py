"""GradientDescentOptimizer."""

from sluice.framework import ops
from sluice.training import optimizer


class GradientDescentOptimizer(optimizer.EngineOptimizer):
    """var -= learning_rate * gradient."""

    def __init__(self, learning_rate, use_locking=False,
                 name="GradientDescent"):
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._learning_rate_tensor = None

    def _prepare(self):
        self._learning_rate = self._call_if_callable(self._learning_rate)
        self._learning_rate_tensor = ops.convert_to_tensor(
            self._learning_rate, name="learning_rate")

    def _update(self, grad, var):
        return self._apply_update(
            "GradientDescent", var, [],
            [self._learning_rate_tensor, self._learning_rate], grad)

    # The sum of rows of one index is what scattering them does.

    def _apply_sparse_duplicate_indices(self, grad, var):
        return self._update(grad, var)

    def _resource_apply_sparse_duplicate_indices(self, grad, handle, indices):
        return self._update(ops.IndexedSlices(grad, indices), handle)
