"""Optimizers around another optimizer (tf.contrib.opt)."""

import contextlib

from sluice.framework import dtypes
from sluice.framework import ops
from sluice.ops import array_ops
from sluice.ops import clip_ops
from sluice.ops import control_flow_ops
from sluice.ops import init_ops
from sluice.ops import math_ops
from sluice.ops import variable_scope
from sluice.ops import variables
from sluice.platform import tf_logging as logging
from sluice.summary import summary
from sluice.training import moving_averages
from sluice.training import optimizer
from sluice.training import saver
from sluice.training import training_util


class _Wrapper(optimizer.Optimizer):
    """Hands what it does not change on to `_opt`."""

    def __init__(self, opt, use_locking, name):
        super().__init__(use_locking, name)
        self._opt = opt

    def compute_gradients(self, *args, **kwargs):
        return self._opt.compute_gradients(*args, **kwargs)

    def get_slot(self, *args, **kwargs):
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args, **kwargs):
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self):
        return self._opt.variables()


class DropStaleGradientOptimizer(_Wrapper):
    """Leaves out gradients that are more than `staleness` steps old.

    How many were left out stands in the variable `stale_counter`.
    """

    def __init__(self, opt, staleness, use_locking=False,
                 name="DropStaleGradient"):
        super().__init__(opt, use_locking, name)
        self._staleness = staleness

    def compute_gradients(self, loss, *args, **kwargs):
        # The step that this worker starts from.
        with ops.colocate_with(loss):
            self._local_step = training_util.get_global_step() + 0
        with ops.control_dependencies([self._local_step]):
            loss = array_ops.identity(loss)
            return self._opt.compute_gradients(loss, *args, **kwargs)

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        if global_step is None:
            raise ValueError("Global step is required to check staleness")
        with ops.colocate_with(global_step):
            stale_counter = variable_scope.get_variable(
                "stale_counter", [], initializer=init_ops.zeros_initializer(),
                trainable=False)

        def accept():
            update = self._opt.apply_gradients(
                grads_and_vars, global_step=global_step, name=name)
            with ops.control_dependencies([update]):
                return array_ops.identity(0.0)

        def drop():
            return array_ops.identity(1.0)

        computed = [g if isinstance(g, ops.Tensor) else g.op
                    for g, _ in grads_and_vars if g is not None]
        with ops.control_dependencies(computed), \
                ops.colocate_with(global_step):
            age = array_ops.reshape(global_step - self._local_step, shape=())
        update = stale_counter.assign_add(control_flow_ops.cond(
            math_ops.less_equal(age, self._staleness), accept, drop))
        summary.scalar(
            "Gradient staleness percentage",
            stale_counter / math_ops.cast(global_step + 1, dtypes.float32))
        return update


class MovingAverageOptimizer(_Wrapper):
    """Keeps moving averages, and saves them in place of the variables."""

    def __init__(self, opt, average_decay=0.9999, num_updates=None,
                 sequential_update=True):
        super().__init__(opt, False, "MovingAverageOptimizer")
        self._ema = moving_averages.ExponentialMovingAverage(
            average_decay, num_updates=num_updates)
        self._swapped_variable_name_map = None
        self._sequential_update = sequential_update

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        train_op = self._opt.apply_gradients(grads_and_vars,
                                             global_step=global_step,
                                             name=name)
        var_list = [v for g, v in grads_and_vars if g is not None]
        after = [train_op] if self._sequential_update else []
        with ops.control_dependencies(after):
            averages = self._ema.apply(var_list)
        self._swapped_variable_name_map = {}
        for v in var_list:
            average = self._ema.average(v)
            self._swapped_variable_name_map[v.op.name] = average.op.name
            self._swapped_variable_name_map[average.op.name] = v.op.name
        return control_flow_ops.group(train_op, averages,
                                      name="train_with_avg")

    def swapping_saver(self, var_list=None, name="swapping_saver", **kwargs):
        """A Saver that writes averages under the names of the variables."""
        if self._swapped_variable_name_map is None:
            raise RuntimeError("Must call apply_gradients or minimize before "
                               "creating the swapping_saver")
        if var_list is None:
            var_list = variables.global_variables()
        if not isinstance(var_list, dict):
            var_list = {v.op.name: v for v in var_list}
        swapped = {}
        for key, var in var_list.items():
            other = self._swapped_variable_name_map.get(key)
            if other is None:
                swapped[key] = var
            elif other not in var_list:
                raise ValueError(
                    "Variable to swap %s is not part of variables to save. "
                    "This breaks MovingAverageOptimizer." % other)
            else:
                swapped[key] = var_list[other]
        return saver.Saver(swapped, name=name, **kwargs)


class VariableClippingOptimizer(_Wrapper):
    """Bounds norms of parts of variables after each update.

    `vars_to_clip_dims` says for a variable over which dimensions a norm goes.
    """

    def __init__(self, opt, vars_to_clip_dims, max_norm, use_locking=False,
                 colocate_clip_ops_with_vars=False, name="VariableClipping"):
        super().__init__(opt, use_locking, name)
        self._vars_to_clip_dims = dict(vars_to_clip_dims)
        self._max_norm = max_norm
        self._colocate_clip_ops_with_vars = colocate_clip_ops_with_vars

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        with ops.name_scope(name, self._name) as name:
            update_op = self._opt.apply_gradients(grads_and_vars,
                                                  global_step=global_step)
            clips = []
            with ops.control_dependencies([update_op]):
                for grad, var in grads_and_vars:
                    if grad is None or var not in self._vars_to_clip_dims:
                        continue
                    with ops.name_scope("clip_" + var.op.name):
                        clips.append(self._clip(grad, var))
            return control_flow_ops.group(*[update_op] + clips, name=name)

    def _clip(self, grad, var):
        dims = self._vars_to_clip_dims[var]
        if isinstance(grad, ops.Tensor):
            return self._clip_dense(var)
        if 0 in dims:
            logging.warning("Clipping norm across dims %s for %s is "
                            "inefficient when including sparse dimension 0.",
                            dims, var.op.name)
            return self._clip_dense(var)
        with ops.colocate_with(var):
            rows = array_ops.gather(var, grad.indices)
        with self._maybe_colocate_with(var):
            clipped = clip_ops.clip_by_norm(rows, self._max_norm, dims)
            delta = ops.IndexedSlices(rows - clipped, grad.indices,
                                      grad.dense_shape)
        with ops.colocate_with(var):
            return var.scatter_sub(delta, use_locking=self._use_locking)

    def _clip_dense(self, var):
        with self._maybe_colocate_with(var):
            value = var.read_value()
            delta = value - clip_ops.clip_by_norm(
                value, self._max_norm, self._vars_to_clip_dims[var])
        with ops.colocate_with(var):
            return var.assign_sub(delta, use_locking=self._use_locking)

    def _maybe_colocate_with(self, var):
        if self._colocate_clip_ops_with_vars:
            return ops.colocate_with(var)
        return contextlib.nullcontext()
