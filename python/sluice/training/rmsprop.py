"""RMSPropOptimizer."""

from sluice.framework import ops
from sluice.ops import array_ops
from sluice.ops import init_ops
from sluice.training import optimizer


class RMSPropOptimizer(optimizer.EngineOptimizer):
    """Gradients are divided by the root of the mean of their squares."""

    def __init__(self, learning_rate, decay=0.9, momentum=0.0, epsilon=1e-10,
                 use_locking=False, centered=False, name="RMSProp"):
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._decay = decay
        self._momentum = momentum
        self._epsilon = epsilon
        self._centered = centered

    def _create_slots(self, var_list):
        for v in var_list:
            dtype = v.dtype.base_dtype
            if v.get_shape().is_fully_defined():
                init = init_ops.ones_initializer(dtype=dtype)
            else:
                init = array_ops.ones_like(v)
            self._get_or_make_slot_with_initializer(
                v, init, v.get_shape(), dtype, "rms", self._name)
            if self._centered:
                self._zeros_slot(v, "mg", self._name)
            self._zeros_slot(v, "momentum", self._name)

    def _prepare(self):
        def tensor(value, name):
            return ops.convert_to_tensor(self._call_if_callable(value),
                                         name=name)
        self._learning_rate_tensor = tensor(self._learning_rate,
                                            "learning_rate")
        self._decay_tensor = tensor(self._decay, "decay")
        self._momentum_tensor = tensor(self._momentum, "momentum")
        self._epsilon_tensor = tensor(self._epsilon, "epsilon")

    def _update(self, grad, var):
        slots = ["rms", "momentum"] + (["mg"] if self._centered else [])
        return self._apply_update(
            "RMSProp", var, slots,
            [self._learning_rate_tensor, self._decay_tensor,
             self._momentum_tensor, self._epsilon_tensor], grad)
