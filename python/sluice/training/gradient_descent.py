"""GradientDescentOptimizer."""

from sluice.framework import ops
from sluice.framework.op_builder import apply_op
from sluice.ops import math_ops
from sluice.training import optimizer


class GradientDescentOptimizer(optimizer.Optimizer):
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

    def _apply_dense(self, grad, var):
        return self._run_update(
            "ApplyGradientDescent", var, (),
            alpha=math_ops.cast(self._learning_rate_tensor,
                                var.dtype.base_dtype),
            delta=grad)

    def _resource_apply_dense(self, grad, handle):
        return self._run_update(
            "ApplyGradientDescent", handle, (),
            alpha=math_ops.cast(self._learning_rate_tensor,
                                grad.dtype.base_dtype),
            delta=grad)

    def _apply_sparse_duplicate_indices(self, grad, var):
        # The sum of rows of one index is what scattering them does.
        delta = ops.IndexedSlices(
            grad.values * math_ops.cast(self._learning_rate_tensor,
                                        var.dtype.base_dtype),
            grad.indices, grad.dense_shape)
        return var.scatter_sub(delta, use_locking=self._use_locking)

    def _resource_apply_sparse_duplicate_indices(self, grad, handle, indices):
        return apply_op("ResourceScatterAdd", None, resource=handle.handle,
                        indices=indices, updates=-grad * self._learning_rate)
