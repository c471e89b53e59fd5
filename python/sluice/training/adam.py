"""AdamOptimizer."""

from sluice import _sluice
from sluice.framework import ops
from sluice.ops import control_flow_ops
from sluice.training import optimizer


class AdamOptimizer(optimizer.EngineOptimizer):
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

    def _update(self, grad, var):
        return self._apply_adam("Adam", grad, var)

    def _apply_adam(self, kind, grad, var):
        """An update of Adam's family."""
        powers = self._get_beta_accumulators()
        return self._apply_update(
            kind, var, ["m", "v"],
            [self._lr_t, self._beta1_t, self._beta2_t, self._epsilon_t], grad,
            read=powers if isinstance(powers, tuple) else [powers])

    def _finish(self, update_ops, name_scope):
        powers = self._get_beta_accumulators()
        powers = powers if isinstance(powers, tuple) else (powers,)
        graph = powers[0].graph
        betas = (self._beta1_t, self._beta2_t)
        updates = [getattr(u, "op", u) for u in update_ops]
        advances = optimizer._engine(
            graph, _sluice.advance_powers, [u._id for u in updates],
            [optimizer._state(p) for p in powers],
            [b._key for b in betas[:len(powers)]], bool(self._use_locking))
        return control_flow_ops.group(
            *updates + [graph._op(a) for a in advances], name=name_scope)
