"""AdamOptimizer."""

from sluice.framework import ops
from sluice.framework.op_builder import apply_op
from sluice.ops import control_flow_ops
from sluice.ops import math_ops
from sluice.training import optimizer


class AdamOptimizer(optimizer.Optimizer):
    """Steps by running means of the gradient and of its square."""

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999,
                 epsilon=1e-8, use_locking=False, name="Adam"):
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._beta1 = beta1
        self._beta2 = beta2
        self._epsilon = epsilon
        self._lr_t = self._beta1_t = self._beta2_t = self._epsilon_t = None

    def _get_beta_accumulators(self):
        graph = ops.get_default_graph()
        return (self._get_non_slot_variable("beta1_power", graph=graph),
                self._get_non_slot_variable("beta2_power", graph=graph))

    def _create_slots(self, var_list):
        # The same one on all workers, whatever order they build in.
        first = min(var_list, key=lambda v: v.name)
        self._create_non_slot_variable(self._beta1, "beta1_power", first)
        self._create_non_slot_variable(self._beta2, "beta2_power", first)
        for v in var_list:
            self._zeros_slot(v, "m", self._name)
            self._zeros_slot(v, "v", self._name)

    def _prepare(self):
        self._lr_t = ops.convert_to_tensor(
            self._call_if_callable(self._lr), name="learning_rate")
        self._beta1_t = ops.convert_to_tensor(
            self._call_if_callable(self._beta1), name="beta1")
        self._beta2_t = ops.convert_to_tensor(
            self._call_if_callable(self._beta2), name="beta2")
        self._epsilon_t = ops.convert_to_tensor(
            self._call_if_callable(self._epsilon), name="epsilon")

    def _apply_dense(self, grad, var):
        dtype = var.dtype.base_dtype
        power1, power2 = self._scalars(dtype, *self._get_beta_accumulators())
        lr, beta1, beta2, epsilon = self._scalars(
            dtype, self._lr_t, self._beta1_t, self._beta2_t, self._epsilon_t)
        return self._run_update(
            "ApplyAdam", var, [("m", "m"), ("v", "v")], beta1_power=power1,
            beta2_power=power2, lr=lr, beta1=beta1, beta2=beta2,
            epsilon=epsilon, grad=grad)

    def _resource_apply_dense(self, grad, var):
        return self._apply_dense(grad, var)

    def _apply_sparse_shared(self, grad, var, indices, scatter_add):
        dtype = var.dtype.base_dtype
        power1, power2 = self._scalars(dtype, *self._get_beta_accumulators())
        lr, beta1, beta2, epsilon = self._scalars(
            dtype, self._lr_t, self._beta1_t, self._beta2_t, self._epsilon_t)
        lr = lr * math_ops.sqrt(1 - power2) / (1 - power1)
        # Not lazy: the means of all rows decay, the given rows are added to.
        m = self.get_slot(var, "m")
        scaled = grad * (1 - beta1)
        m_t = m.assign(m * beta1, use_locking=self._use_locking)
        with ops.control_dependencies([m_t]):
            m_t = scatter_add(m, indices, scaled)
        v = self.get_slot(var, "v")
        scaled = (grad * grad) * (1 - beta2)
        v_t = v.assign(v * beta2, use_locking=self._use_locking)
        with ops.control_dependencies([v_t]):
            v_t = scatter_add(v, indices, scaled)
        v_sqrt = math_ops.sqrt(v_t)
        update = var.assign_sub(lr * m_t / (v_sqrt + epsilon),
                                use_locking=self._use_locking)
        return control_flow_ops.group(*[update, m_t, v_t])

    def _apply_sparse(self, grad, var):
        return self._apply_sparse_shared(
            grad.values, var, grad.indices,
            lambda x, i, v: apply_op("ScatterAdd", None, ref=x._ref(),
                                     indices=i, updates=v,
                                     use_locking=self._use_locking))

    def _resource_apply_sparse(self, grad, var, indices):
        return self._apply_sparse_shared(grad, var, indices,
                                         self._resource_scatter_add)

    def _resource_scatter_add(self, x, i, v):
        with ops.control_dependencies([apply_op(
                "ResourceScatterAdd", None, resource=x.handle, indices=i,
                updates=v)]):
            return x.value()

    def _finish(self, update_ops, name_scope):
        with ops.control_dependencies(update_ops):
            power1, power2 = self._get_beta_accumulators()
            with ops.colocate_with(power1.op):
                update1 = power1.assign(power1 * self._beta1_t,
                                        use_locking=self._use_locking)
                update2 = power2.assign(power2 * self._beta2_t,
                                        use_locking=self._use_locking)
        return control_flow_ops.group(*update_ops + [update1, update2],
                                      name=name_scope)
