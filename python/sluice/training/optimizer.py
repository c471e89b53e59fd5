"""Optimizer: what all optimizers share.

A subclass says which slots it needs (_create_slots), which constants
(_prepare), and how one variable is updated (_apply_dense, _apply_sparse and
their resource twins). Any of them may be overridden by a program.
"""

import numbers

from sluice import _sluice
from sluice.framework import dtypes
from sluice.framework import errors
from sluice.framework import ops
from sluice.framework.op_builder import apply_op
from sluice.ops import control_flow_ops
from sluice.ops import gradients
from sluice.ops import variables
from sluice.training import slot_creator


def _is_resource(variable):
    return getattr(variable, "_is_resource", False)


def _engine(graph, function, *arguments):
    """Lets the engine add to the graph what `function` is for."""
    if graph._core.finalized():
        raise RuntimeError("Graph is finalized and cannot be modified.")
    try:
        return function(graph._core, *arguments)
    except errors.InvalidArgumentError as e:
        raise ValueError(e.message) from None


def _deduplicate_indexed_slices(values, indices):
    """Sums the rows of equal indices: (sums, the indices, once each)."""
    values = ops.convert_to_tensor(values)
    indices = ops.convert_to_tensor(indices)
    graph = values.graph
    sums = _engine(graph, _sluice.sum_repeated_rows, values._key,
                   indices._key)
    return tuple(graph._tensor(key) for key in sums)


def _state(variable):
    """A variable as the engine takes it: (ref or handle, value)."""
    ref = variable.handle if _is_resource(variable) else variable._ref()
    return ref._key, variable._snapshot._key


def _var_key(var):
    return (var.op.graph, var.op.name)


class _VariableProcessor(object):
    """How to differentiate for a variable and how to update it."""

    def __init__(self, v):
        self._v = v

    def target(self):
        return self._v

    def _constrained(self, update_op):
        constraint = getattr(self._v, "constraint", None)
        if constraint is None:
            return update_op
        with ops.control_dependencies([update_op]):
            return self._v.assign(constraint(self._v))

    def _check_sparse(self):
        if getattr(self._v, "constraint", None) is not None:
            raise RuntimeError(
                "Cannot use a constraint function on a sparse variable.")


class _RefVariableProcessor(_VariableProcessor):

    def update_op(self, optimizer, g):
        if isinstance(g, ops.Tensor):
            return self._constrained(optimizer._apply_dense(g, self._v))
        self._check_sparse()
        return optimizer._apply_sparse_duplicate_indices(g, self._v)


class _ResourceVariableProcessor(_VariableProcessor):

    def update_op(self, optimizer, g):
        if isinstance(g, ops.IndexedSlices):
            self._check_sparse()
            return optimizer._resource_apply_sparse_duplicate_indices(
                g.values, self._v, g.indices)
        return self._constrained(optimizer._resource_apply_dense(g, self._v))


class _TensorProcessor(_VariableProcessor):

    def update_op(self, optimizer, g):
        raise NotImplementedError("Trying to update a Tensor ", self._v)


def _get_processor(v):
    if _is_resource(v):
        return _ResourceVariableProcessor(v)
    if isinstance(v, variables.Variable):
        return _RefVariableProcessor(v)
    if isinstance(v, ops.Tensor):
        return _TensorProcessor(v)
    raise NotImplementedError("Trying to optimize unsupported type ", v)


def _flatten(value):
    if isinstance(value, dict):
        return [v for key in sorted(value) for v in _flatten(value[key])]
    if isinstance(value, (list, tuple)) or type(value).__name__ == \
            "PartitionedVariable":
        return [v for item in value for v in _flatten(item)]
    return [value]


class Optimizer(object):
    """Base class of optimizers."""

    GATE_NONE = 0
    GATE_OP = 1
    GATE_GRAPH = 2

    def __init__(self, use_locking, name):
        if not name:
            raise ValueError("Must specify the optimizer name")
        self._use_locking = use_locking
        self._name = name
        self._slots = {}
        self._non_slot_dict = {}

    def get_name(self):
        return self._name

    def minimize(self, loss, global_step=None, var_list=None,
                 gate_gradients=GATE_OP, aggregation_method=None,
                 colocate_gradients_with_ops=False, name=None,
                 grad_loss=None):
        """An operation that takes one step down the gradient of `loss`."""
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
        return self.apply_gradients(grads_and_vars, global_step=global_step,
                                    name=name)

    def compute_gradients(self, loss, var_list=None, gate_gradients=GATE_OP,
                          aggregation_method=None,
                          colocate_gradients_with_ops=False, grad_loss=None):
        """[(gradient or None, variable), …]"""
        if callable(loss):
            loss = loss()
        if gate_gradients not in (Optimizer.GATE_NONE, Optimizer.GATE_OP,
                                  Optimizer.GATE_GRAPH):
            raise ValueError(
                "gate_gradients must be one of: Optimizer.GATE_NONE, "
                "Optimizer.GATE_OP, Optimizer.GATE_GRAPH.  Not %s" %
                gate_gradients)
        self._assert_valid_dtypes([loss])
        if grad_loss is not None:
            self._assert_valid_dtypes([grad_loss])
        if var_list is None:
            var_list = variables.trainable_variables() + ops.get_collection(
                ops.GraphKeys.TRAINABLE_RESOURCE_VARIABLES)
        else:
            var_list = _flatten(var_list)
        if not var_list:
            raise ValueError("No variables to optimize.")
        processors = [_get_processor(v) for v in var_list]
        grads = gradients.gradients(
            loss, [p.target() for p in processors], grad_ys=grad_loss,
            gate_gradients=(gate_gradients == Optimizer.GATE_OP),
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops)
        if gate_gradients == Optimizer.GATE_GRAPH:
            grads = control_flow_ops.tuple(grads)
        grads_and_vars = list(zip(grads, var_list))
        self._assert_valid_dtypes(
            [v for g, v in grads_and_vars
             if g is not None and v.dtype != dtypes.resource])
        return grads_and_vars

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """An operation that applies the gradients, then counts the step."""
        grads_and_vars = tuple(grads_and_vars)
        if not grads_and_vars:
            raise ValueError("No variables provided.")
        converted = []
        for g, v in grads_and_vars:
            if g is not None:
                try:
                    g = ops.convert_to_tensor_or_indexed_slices(g)
                except TypeError:
                    raise TypeError(
                        "Gradient must be convertible to a Tensor or "
                        "IndexedSlices, or None: %s" % g) from None
                if not isinstance(g, (ops.Tensor, ops.IndexedSlices)):
                    raise TypeError("Gradient must be a Tensor, "
                                    "IndexedSlices, or None: %s" % g)
            converted.append((g, v, _get_processor(v)))
        var_list = [v for g, v, _ in converted if g is not None]
        if not var_list:
            raise ValueError("No gradients provided for any variable: %s." %
                             ([str(v) for _, v, _ in converted],))
        with ops.init_scope():
            self._create_slots(var_list)
        update_ops = []
        with ops.name_scope(name, self._name) as name:
            self._prepare()
            for grad, var, processor in converted:
                if grad is None:
                    continue
                with ops.name_scope("update_" + var.op.name), \
                        ops.colocate_with(var.op):
                    update_ops.append(processor.update_op(self, grad))
            if global_step is None:
                apply_updates = self._finish(update_ops, name)
            else:
                with ops.control_dependencies([self._finish(update_ops,
                                                            "update")]):
                    with ops.colocate_with(global_step.op):
                        apply_updates = self._count_step(global_step, name)
            if isinstance(apply_updates, ops.Tensor):
                apply_updates = apply_updates.op
            train_op = ops.get_collection_ref(ops.GraphKeys.TRAIN_OP)
            if apply_updates not in train_op:
                train_op.append(apply_updates)
            return apply_updates

    @staticmethod
    def _count_step(global_step, name):
        if _is_resource(global_step):
            return apply_op("AssignAddVariableOp", name,
                            resource=global_step.handle,
                            value=ops.convert_to_tensor(
                                1, dtype=global_step.dtype.base_dtype))
        return apply_op("AssignAdd", name, ref=_ref(global_step), value=1,
                        use_locking=False)

    # ---- Slots ----

    def get_slot(self, var, name):
        return self._slots.get(name, {}).get(_var_key(var))

    def get_slot_names(self):
        return sorted(self._slots)

    def variables(self):
        """All slots and other state of the current graph, by name."""
        graph = ops.get_default_graph()
        found = [v for v in self._non_slot_variables() if v.graph is graph]
        for slots in self._slots.values():
            found.extend(v for v in slots.values() if v.graph is graph)
        return sorted(found, key=lambda v: v.name)

    def _slot_dict(self, slot_name):
        return self._slots.setdefault(slot_name, {})

    def _get_or_make_slot(self, var, val, slot_name, op_name):
        slots = self._slot_dict(slot_name)
        if _var_key(var) not in slots:
            slots[_var_key(var)] = slot_creator.create_slot(var, val, op_name)
        return slots[_var_key(var)]

    def _get_or_make_slot_with_initializer(self, var, initializer, shape,
                                           dtype, slot_name, op_name):
        slots = self._slot_dict(slot_name)
        if _var_key(var) not in slots:
            slots[_var_key(var)] = slot_creator.create_slot_with_initializer(
                var, initializer, shape, dtype, op_name)
        return slots[_var_key(var)]

    def _zeros_slot(self, var, slot_name, op_name):
        slots = self._slot_dict(slot_name)
        if _var_key(var) not in slots:
            slots[_var_key(var)] = slot_creator.create_zeros_slot(var, op_name)
        return slots[_var_key(var)]

    def _create_non_slot_variable(self, initial_value, name, colocate_with):
        graph = colocate_with.graph
        key = (name, graph)
        if key not in self._non_slot_dict:
            with ops.colocate_with(colocate_with.op):
                self._non_slot_dict[key] = variables.Variable(
                    initial_value, name=name, trainable=False,
                    use_resource=_is_resource(colocate_with))
        return self._non_slot_dict[key]

    def _get_non_slot_variable(self, name, graph=None):
        return self._non_slot_dict.get((name, graph))

    def _non_slot_variables(self):
        return self._non_slot_dict.values()

    # ---- For subclasses ----

    def _valid_dtypes(self):
        return {dtypes.float16, dtypes.bfloat16, dtypes.float32,
                dtypes.float64}

    def _assert_valid_dtypes(self, tensors):
        valid = self._valid_dtypes()
        for t in tensors:
            dtype = t.dtype.base_dtype
            if dtype not in valid:
                raise ValueError("Invalid type %r for %s, expected: %s." % (
                    dtype, t.name, list(valid)))

    def _create_slots(self, var_list):
        pass

    def _prepare(self):
        pass

    def _apply_dense(self, grad, var):
        raise NotImplementedError()

    def _apply_sparse(self, grad, var):
        raise NotImplementedError()

    def _resource_apply_dense(self, grad, handle):
        raise NotImplementedError()

    def _resource_apply_sparse(self, grad, handle, indices):
        raise NotImplementedError()

    def _apply_sparse_duplicate_indices(self, grad, var):
        summed, unique = _deduplicate_indexed_slices(grad.values, grad.indices)
        return self._apply_sparse(
            ops.IndexedSlices(summed, unique, grad.dense_shape), var)

    def _resource_apply_sparse_duplicate_indices(self, grad, handle, indices):
        summed, unique = _deduplicate_indexed_slices(grad, indices)
        return self._resource_apply_sparse(summed, handle, unique)

    def _finish(self, update_ops, name_scope):
        return control_flow_ops.group(*update_ops, name=name_scope)

    def _call_if_callable(self, param):
        return param() if callable(param) else param


class EngineOptimizer(Optimizer):
    """An optimizer whose updates the engine builds (sluice/train/apply.h).

    A subclass has `_update(grad, var)`, of a Tensor or of IndexedSlices whose
    rows do not repeat, for ref and resource variables alike. It calls
    `_apply_update`.
    """

    def _update(self, grad, var):
        raise NotImplementedError()

    def _apply_dense(self, grad, var):
        return self._update(grad, var)

    def _resource_apply_dense(self, grad, handle):
        return self._update(grad, handle)

    def _apply_sparse(self, grad, var):
        return self._update(grad, var)

    def _resource_apply_sparse(self, grad, handle, indices):
        return self._update(ops.IndexedSlices(grad, indices), handle)

    def _apply_update(self, kind, var, slots, parameters, grad, read=(),
                      nesterov=False):
        """Adds the update `kind` of `var`.

        `slots` are names, `parameters` tensors or numbers, `read` further
        variables that the update reads.
        """
        sparse = isinstance(grad, ops.IndexedSlices)
        values = grad.values if sparse else grad
        if values.dtype.base_dtype != var.dtype.base_dtype:
            raise TypeError(
                "Input '%s' of 'Apply%s' Op has type %s that does not match "
                "type %s of argument 'var'." % (
                    "delta" if kind.endswith("Descent") else "grad", kind,
                    values.dtype.base_dtype.name, var.dtype.base_dtype.name))
        shape = grad.dense_shape if sparse else None
        graph = var.graph
        node = _engine(
            graph, _sluice.apply_update, kind,
            [_state(v) for v in [var] + [self.get_slot(var, s)
                                         for s in slots] + list(read)],
            [float(p) if isinstance(p, numbers.Real) else
             ops.convert_to_tensor(p)._key for p in parameters],
            (values._key, grad.indices._key if sparse else None,
             None if shape is None else shape._key),
            bool(self._use_locking), bool(nesterov))
        return graph._op(node)


def _ref(variable):
    return variable._ref() if hasattr(variable, "_ref") else variable
