"""AdagradOptimizer."""

from sluice.framework import ops
from sluice.ops import array_ops
from sluice.ops import init_ops
from sluice.ops import math_ops
from sluice.training import optimizer


class AdagradOptimizer(optimizer.EngineOptimizer):
    """Steps shrink with the root of the sum of squared gradients."""

    def __init__(self, learning_rate, initial_accumulator_value=0.1,
                 use_locking=False, name="Adagrad"):
        if initial_accumulator_value <= 0.0:
            raise ValueError("initial_accumulator_value must be positive: %s" %
                             initial_accumulator_value)
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_accumulator_value = initial_accumulator_value
        self._learning_rate_tensor = None

    def _create_slots(self, var_list):
        for v in var_list:
            dtype = v.dtype.base_dtype
            if v.get_shape().is_fully_defined():
                init = init_ops.constant_initializer(
                    self._initial_accumulator_value, dtype=dtype)
            else:
                def init(shape=None, dtype=dtype, partition_info=None, v=v):
                    return array_ops.fill(
                        array_ops.shape(v),
                        math_ops.cast(self._initial_accumulator_value, dtype))
            self._get_or_make_slot_with_initializer(
                v, init, v.get_shape(), dtype, "accumulator", self._name)

    def _prepare(self):
        self._learning_rate_tensor = ops.convert_to_tensor(
            self._call_if_callable(self._learning_rate), name="learning_rate")

    def _update(self, grad, var):
        return self._apply_update("Adagrad", var, ["accumulator"],
                                  [self._learning_rate_tensor], grad)
