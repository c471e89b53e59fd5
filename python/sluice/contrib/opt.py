"""tf.contrib.opt: optimizers beside those of tf.train."""

import math

from sluice.contrib.averaging_optimizers import (  # noqa: F401
    AGNCustomGetter, AGNOptimizer, ElasticAverageCustomGetter,
    ElasticAverageOptimizer, ModelAverageCustomGetter, ModelAverageOptimizer)
from sluice.contrib.wrapped_optimizers import (  # noqa: F401
    DropStaleGradientOptimizer, MovingAverageOptimizer,
    VariableClippingOptimizer)
from sluice.framework import ops
from sluice.framework.op_builder import apply_op
from sluice.ops import array_ops
from sluice.ops import control_flow_ops
from sluice.ops import state_ops
from sluice.training import adam
from sluice.training import momentum
from sluice.training import optimizer


class LazyAdamOptimizer(adam.AdamOptimizer):
    """Adam whose sparse updates touch only the rows of the gradient."""

    def _update(self, grad, var):
        return self._apply_adam("LazyAdam", grad, var)


class NadamOptimizer(adam.AdamOptimizer):
    """Adam with Nesterov's momentum."""

    def _update(self, grad, var):
        return self._apply_adam("Nadam", grad, var)


class AdaMaxOptimizer(adam.AdamOptimizer):
    """Adam that divides by the largest gradient, not by a mean of squares."""

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999,
                 epsilon=1e-8, use_locking=False, name="AdaMax"):
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking,
                         name)

    def _get_beta_accumulators(self):
        return self._get_non_slot_variable("beta1_power",
                                           graph=ops.get_default_graph())

    def _create_slots(self, var_list):
        first = min(var_list, key=lambda v: v.name)
        self._create_non_slot_variable(self._beta1, "beta1_power", first)
        for v in var_list:
            self._zeros_slot(v, "m", self._name)
            self._zeros_slot(v, "v", self._name)

    def _update(self, grad, var):
        return self._apply_adam("AdaMax", grad, var)


class _SignOptimizer(optimizer.EngineOptimizer):
    """Steps are larger while the gradient has the sign of its mean."""

    def __init__(self, learning_rate, beta, sign_decay_fn, use_locking, name):
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._beta = beta
        self._sign_decay_fn = sign_decay_fn
        self._sign_decay_t = None

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        if self._sign_decay_fn is not None:
            self._sign_decay_t = ops.convert_to_tensor(
                self._sign_decay_fn(global_step), name="sign_decay")
        return super().apply_gradients(grads_and_vars, global_step, name)

    def _create_slots(self, var_list):
        for v in var_list:
            self._zeros_slot(v, "m", self._name)

    def _prepare(self):
        self._lr_t = ops.convert_to_tensor(self._lr, name="learning_rate")
        self._beta_t = ops.convert_to_tensor(self._beta, name="beta")
        self._prepare_factor()
        if self._sign_decay_fn is None:
            self._sign_decay_t = ops.convert_to_tensor(1.0, name="sign_decay")

    def _apply_sign(self, kind, factor, grad, var):
        return self._apply_update(
            kind, var, ["m"],
            [self._lr_t, self._sign_decay_t, self._beta_t, factor], grad)

    def _resource_apply_sparse(self, grad, handle, indices):
        raise NotImplementedError()


class AddSignOptimizer(_SignOptimizer):
    """var -= rate * (alpha + agreement of signs) * gradient."""

    def __init__(self, learning_rate=0.1, alpha=1.0, beta=0.9,
                 sign_decay_fn=None, use_locking=False,
                 name="AddSignOptimizer"):
        super().__init__(learning_rate, beta, sign_decay_fn, use_locking,
                         name)
        self._alpha = alpha

    def _prepare_factor(self):
        self._alpha_t = ops.convert_to_tensor(self._alpha, name="alpha")

    def _update(self, grad, var):
        return self._apply_sign("AddSign", self._alpha_t, grad, var)


class PowerSignOptimizer(_SignOptimizer):
    """var -= rate * base ^ (agreement of signs) * gradient."""

    def __init__(self, learning_rate=0.1, base=math.e, beta=0.9,
                 sign_decay_fn=None, use_locking=False,
                 name="PowerSignOptimizer"):
        super().__init__(learning_rate, beta, sign_decay_fn, use_locking,
                         name)
        self._logbase = math.log(base)

    def _prepare_factor(self):
        self._logbase_t = ops.convert_to_tensor(self._logbase, name="logbase")

    def _update(self, grad, var):
        return self._apply_sign("PowerSign", self._logbase_t, grad, var)


class DecoupledWeightDecayExtension(object):
    """Makes weights decay before their update; inherit it before an optimizer.
    """

    def __init__(self, weight_decay, **kwargs):
        self._decay_var_list = None
        self._weight_decay = weight_decay
        self._weight_decay_tensor = None
        super().__init__(**kwargs)

    def minimize(self, loss, global_step=None, var_list=None,
                 gate_gradients=optimizer.Optimizer.GATE_OP,
                 aggregation_method=None, colocate_gradients_with_ops=False,
                 name=None, grad_loss=None, decay_var_list=None):
        grads_and_vars = self.compute_gradients(
            loss, var_list=var_list, gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss)
        if all(g is None for g, _ in grads_and_vars):
            raise ValueError(
                "No gradients provided for any variable, check your graph for "
                "ops that do not support gradients, between variables %s and "
                "loss %s." % ([str(v) for _, v in grads_and_vars], loss))
        return self.apply_gradients(grads_and_vars, global_step, name,
                                    decay_var_list=decay_var_list)

    def apply_gradients(self, grads_and_vars, global_step=None, name=None,
                        decay_var_list=None):
        """Only variables of `decay_var_list` decay, if it is given."""
        self._decay_var_list = set(decay_var_list) if decay_var_list else None
        return super().apply_gradients(grads_and_vars, global_step=global_step,
                                       name=name)

    def _prepare(self):
        weight_decay = self._weight_decay
        if callable(weight_decay):
            weight_decay = weight_decay()
        self._weight_decay_tensor = ops.convert_to_tensor(weight_decay,
                                                          name="weight_decay")
        super()._prepare()

    def _decays(self, var):
        return not self._decay_var_list or var in self._decay_var_list

    def _decay_weights_op(self, var):
        if not self._decays(var):
            return control_flow_ops.no_op()
        return var.assign_sub(self._weight_decay * var, self._use_locking)

    def _decay_weights_sparse_op(self, var, indices, scatter_add):
        if not self._decays(var):
            return control_flow_ops.no_op()
        update = -self._weight_decay * array_ops.gather(var, indices)
        return scatter_add(var, indices, update, self._use_locking)

    def _apply_dense(self, grad, var):
        with ops.control_dependencies([self._decay_weights_op(var)]):
            return super()._apply_dense(grad, var)

    def _resource_apply_dense(self, grad, var):
        with ops.control_dependencies([self._decay_weights_op(var)]):
            return super()._resource_apply_dense(grad, var)

    def _apply_sparse(self, grad, var):
        decay = self._decay_weights_sparse_op(var, grad.indices,
                                              state_ops.scatter_add)
        with ops.control_dependencies([decay]):
            return super()._apply_sparse(grad, var)

    def _resource_scatter_add(self, x, i, v, _=None):
        update = apply_op("ResourceScatterAdd", None, resource=x.handle,
                          indices=i, updates=v)
        with ops.control_dependencies([update]):
            return x.value()

    def _resource_apply_sparse(self, grad, var, indices):
        decay = self._decay_weights_sparse_op(var, indices,
                                              self._resource_scatter_add)
        with ops.control_dependencies([decay]):
            return super()._resource_apply_sparse(grad, var, indices)


def extend_with_decoupled_weight_decay(base_optimizer):
    """A class: `base_optimizer` with weight decay as its first argument."""
    class OptimizerWithDecoupledWeightDecay(DecoupledWeightDecayExtension,
                                            base_optimizer):

        def __init__(self, weight_decay, *args, **kwargs):
            self._decay_var_list = None
            self._weight_decay = weight_decay
            self._weight_decay_tensor = None
            base_optimizer.__init__(self, *args, **kwargs)

    return OptimizerWithDecoupledWeightDecay


class MomentumWOptimizer(DecoupledWeightDecayExtension,
                         momentum.MomentumOptimizer):
    """Momentum with weight decay."""

    def __init__(self, weight_decay, learning_rate, momentum,
                 use_locking=False, name="MomentumW", use_nesterov=False):
        super().__init__(weight_decay, learning_rate=learning_rate,
                         momentum=momentum, use_locking=use_locking, name=name,
                         use_nesterov=use_nesterov)


class AdamWOptimizer(DecoupledWeightDecayExtension, adam.AdamOptimizer):
    """Adam with weight decay."""

    def __init__(self, weight_decay, learning_rate=0.001, beta1=0.9,
                 beta2=0.999, epsilon=1e-8, use_locking=False, name="AdamW"):
        super().__init__(weight_decay, learning_rate=learning_rate,
                         beta1=beta1, beta2=beta2, epsilon=epsilon,
                         use_locking=use_locking, name=name)
