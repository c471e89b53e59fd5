"""AdagradDAOptimizer."""

from sluice.framework import constant_op
from sluice.framework import ops
from sluice.ops import array_ops
from sluice.training import optimizer


class AdagradDAOptimizer(optimizer.EngineOptimizer):
    """Adagrad by dual averaging: weights are often exactly zero."""

    def __init__(self, learning_rate, global_step,
                 initial_gradient_squared_accumulator_value=0.1,
                 l1_regularization_strength=0.0,
                 l2_regularization_strength=0.0, use_locking=False,
                 name="AdagradDA"):
        if initial_gradient_squared_accumulator_value <= 0.0:
            raise ValueError(
                "initial_gradient_squared_accumulator_value must be positive: "
                "%s" % initial_gradient_squared_accumulator_value)
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_gradient_squared_accumulator_value = \
            initial_gradient_squared_accumulator_value
        self._learning_rate_tensor = None
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength
        self._global_step = global_step
        self._global_step_on_worker = None

    def _create_slots(self, var_list):
        for v in var_list:
            with ops.colocate_with(v):
                sums = constant_op.constant(0.0, shape=v.get_shape(),
                                            dtype=v.dtype.base_dtype)
                squares = constant_op.constant(
                    self._initial_gradient_squared_accumulator_value,
                    shape=v.get_shape(), dtype=v.dtype.base_dtype)
            self._get_or_make_slot(v, sums, "gradient_accumulator",
                                   self._name)
            self._get_or_make_slot(v, squares, "gradient_squared_accumulator",
                                   self._name)

    def _prepare(self):
        self._learning_rate_tensor = ops.convert_to_tensor(
            self._learning_rate, name="learning_rate")
        # A copy of the step for all variables, so that they need not ask the
        # task that holds it.
        with ops.colocate_with(self._learning_rate_tensor):
            self._global_step_on_worker = array_ops.identity(
                self._global_step) + 1

    def _update(self, grad, var):
        return self._apply_update(
            "AdagradDA", var,
            ["gradient_accumulator", "gradient_squared_accumulator"],
            [self._learning_rate_tensor, self._l1_regularization_strength,
             self._l2_regularization_strength, self._global_step_on_worker],
            grad)
