"""MomentumOptimizer."""

from sluice.framework import ops
from sluice.training import optimizer


class MomentumOptimizer(optimizer.Optimizer):
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

    def _apply(self, op_type, grad, var, **indices):
        lr, momentum = self._scalars(var.dtype.base_dtype,
                                     self._learning_rate_tensor,
                                     self._momentum_tensor)
        return self._run_update(op_type, var, [("accum", "momentum")], lr=lr,
                                grad=grad, momentum=momentum,
                                use_nesterov=self._use_nesterov, **indices)

    def _apply_dense(self, grad, var):
        return self._apply("ApplyMomentum", grad, var)

    def _resource_apply_dense(self, grad, var):
        return self._apply("ApplyMomentum", grad, var)

    def _apply_sparse(self, grad, var):
        return self._apply("SparseApplyMomentum", grad.values, var,
                           indices=grad.indices)

    def _resource_apply_sparse(self, grad, var, indices):
        return self._apply("SparseApplyMomentum", grad, var, indices=indices)
