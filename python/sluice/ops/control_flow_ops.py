"""group, tuple, cond, case, while_loop and assertions."""

import contextlib
import functools

from sluice.framework import constant_op
from sluice.framework import control_flow_context
from sluice.framework import dtypes
from sluice.framework import errors
from sluice.framework import nest
from sluice.framework import ops
from sluice.framework import tensor_shape
from sluice.framework.op_builder import apply_op, build
from sluice.ops import array_ops
from sluice.ops import flow_values
from sluice.ops import math_ops

no_op = array_ops.no_op
_TUPLE = ().__class__  # `tuple` is a function of this module.


def _group_on(graph, dev, deps, name=None):
    with graph.control_dependencies(deps):
        if dev is None:
            return no_op(name=name)
        with graph.device(dev):
            return no_op(name=name)


def group(*inputs, **kwargs):
    name = kwargs.pop("name", None)
    if kwargs:
        raise ValueError("Unknown keyword arguments: " + ", ".join(kwargs))
    with ops.name_scope(name, "group_deps", list(ops._flat(inputs))) as scope:
        name = scope
        flat = [i for i in ops._flat(inputs) if i is not None]
        if not flat:
            return no_op(name=name)
        by_device = {}
        for inp in flat:
            if not hasattr(inp, "device"):
                raise TypeError(
                    "Expected tf.group() expected Tensor objects not None "
                    "with type '%s'" % type(inp))
            by_device.setdefault(inp.device, []).append(inp)
        graph = ops.get_default_graph()
        if len(by_device) == 1:
            (dev, deps), = by_device.items()
            return _group_on(graph, dev or None, deps, name=name)
        all_deps = []
        for dev in sorted(by_device, key=lambda d: "" if d is None else d):
            all_deps.append(_group_on(graph, dev or None, by_device[dev]))
        with graph.control_dependencies(all_deps):
            return no_op(name=name)


def with_dependencies(dependencies, output_tensor, name=None):
    with ops.name_scope(name, "control_dependency",
                        list(dependencies) + [output_tensor]) as scope:
        with ops.colocate_with(output_tensor):
            with ops.control_dependencies(dependencies):
                output_tensor = ops.convert_to_tensor_or_indexed_slices(
                    output_tensor)
                if isinstance(output_tensor, ops.IndexedSlices):
                    return ops.IndexedSlices(
                        array_ops.identity(output_tensor.values, name=scope),
                        output_tensor.indices, output_tensor.dense_shape)
                return array_ops.identity(output_tensor, name=scope)


def tuple(tensors, name=None, control_inputs=None):
    with ops.name_scope(name, "tuple", tensors):
        gating = [t.op for t in tensors if t is not None]
        for c in control_inputs or ():
            gating.append(c.op if isinstance(c, ops.Tensor) else c)
        if not gating:
            raise ValueError("Must have at least one Tensor: %s" % tensors)
        unique = sorted(set(gating), key=lambda op: op._id)
        gate = group(*unique)
        return [t if t is None else with_dependencies([gate], t)
                for t in tensors]


@contextlib.contextmanager
def _branch(graph, pred, pivot, index):
    core = graph._core
    core.push()
    try:
        core.enter_cond(core.unique_name("cond_text", True), pred._op._id,
                        pred._index, pivot._op._id, pivot._index, index)
        yield core.control_flow_context()
    finally:
        core.pop()


def _branch_result(graph, pivot, value):
    """A result as a tensor of the branch; an operation means "done"."""
    if isinstance(value, ops.Operation):
        return with_dependencies([value], pivot)
    tensor = ops.convert_to_tensor(value)
    return graph._tensor(graph._core.cond_value(*tensor._key))


def _branch_results(graph, pivot, fn, which):
    results = fn()
    if results is None:
        raise ValueError("%s must have a return value." % which)
    return results, [_branch_result(graph, pivot, r)
                     for r in flow_values.tensors_of(results)]


def cond(pred, true_fn=None, false_fn=None, strict=False, name=None, fn1=None,
         fn2=None):
    true_fn = fn1 if true_fn is None else true_fn
    false_fn = fn2 if false_fn is None else false_fn
    if true_fn is None:
        raise TypeError("cond(): true_fn argument required")
    if false_fn is None:
        raise TypeError("cond(): false_fn argument required")
    if not callable(true_fn):
        raise TypeError("true_fn must be callable.")
    if not callable(false_fn):
        raise TypeError("false_fn must be callable.")
    if isinstance(pred, bool):
        raise TypeError("pred must not be a Python bool")
    graph = ops.get_default_graph()
    with ops.name_scope(name, "cond", [pred]):
        switched = apply_op("Switch", "Switch", data=pred, pred=pred)
        pivot_true = array_ops.identity(switched[1], name="switch_t")
        pivot_false = array_ops.identity(switched[0], name="switch_f")
        pred = array_ops.identity(pred, name="pred_id")
        for t in list(switched) + [pivot_true, pivot_false, pred]:
            graph.prevent_fetching(t.op)
        with _branch(graph, pred, pivot_true, 1) as context_true:
            true_results, on_true = _branch_results(graph, pivot_true,
                                                    true_fn, "true_fn")
        with _branch(graph, pred, pivot_false, 0) as context_false:
            false_results, on_false = _branch_results(graph, pivot_false,
                                                      false_fn, "false_fn")
        try:
            flow_values.assert_same_structure(true_results, false_results)
        except (TypeError, ValueError) as e:
            raise type(e)("Incompatible return types of true_fn and "
                          "false_fn: %s" % e) from None
        for a, b in zip(on_true, on_false):
            if a.dtype.base_dtype != b.dtype.base_dtype:
                raise ValueError(
                    "Outputs of true_fn and false_fn must have the same "
                    "type: %s, %s" % (a.dtype.name, b.dtype.name))
        merged = flow_values.with_tensors(
            true_results, [apply_op("Merge", "Merge", inputs=[f, t])[0]
                           for f, t in zip(on_false, on_true)])
        for context in (context_true, context_false):
            if context.outer is None:
                graph.add_to_collection(
                    ops.GraphKeys.COND_CONTEXT,
                    control_flow_context.ControlFlowContext(context))
        if not strict and isinstance(merged, (list, _TUPLE)) and \
                len(merged) == 1:
            return merged[0]
        return merged


def _assert_at_most(count, predicates, message):
    preds = array_ops.stack(predicates, name="preds_c")
    true = math_ops.reduce_sum(math_ops.cast(preds, dtypes.int32),
                               name="num_true_conds")
    condition = math_ops.less_equal(
        true, constant_op.constant(count, name="n_true_conds"))
    names = ", ".join(getattr(p, "name", "?") for p in predicates)
    return Assert(condition, data=[
        "%s: more than %d conditions (%s) evaluated as True:" %
        (message, count, names), preds], summarize=len(predicates))


def _last_as_default(predicates, actions):
    """Without a default, the last case runs if no other does."""
    last = len(predicates) - 1
    predicate, action = predicates[last], actions[last]

    def default():
        others = ("Implementation error: selected default action #%d was "
                  "called, but some of other predicates are True: " % last)
        message = ("Input error: None of conditions evaluated as True:",
                   array_ops.stack(predicates, name="preds_c"))
        with ops.control_dependencies([
                _assert_at_most(0, predicates[:last], others),
                Assert(predicate, data=message)]):
            return action()

    return default, predicates[:last], actions[:last]


def case(pred_fn_pairs, default=None, exclusive=False, strict=False,
         name="case"):
    """The result of the first function whose predicate is true."""
    if isinstance(pred_fn_pairs, dict):
        pred_fn_pairs = sorted(pred_fn_pairs.items(),
                               key=lambda item: item[0].name)
    if not isinstance(pred_fn_pairs, (list, _TUPLE)):
        raise TypeError("fns must be a list, tuple, or dict")
    for pair in pred_fn_pairs:
        if not isinstance(pair, _TUPLE) or len(pair) != 2:
            raise TypeError("Each entry in pred_fn_pairs must be a 2-tuple. "
                            "Received {}.".format(pair))
        if not isinstance(pair[0], ops.Tensor):
            raise TypeError("pred must be Tensor, got {}".format(pair[0]))
        if not callable(pair[1]):
            raise TypeError("fn for pred {} must be callable.".format(
                pair[0].name))
    if default is not None and not callable(default):
        raise TypeError("default must be callable.")
    predicates = [p for p, _ in pred_fn_pairs]
    actions = [fn for _, fn in pred_fn_pairs]
    with ops.name_scope(name, "case", [predicates]):
        if default is None:
            default, predicates, actions = _last_as_default(predicates,
                                                            actions)
        function = default
        for predicate, action in reversed(list(zip(predicates, actions))):
            function = functools.partial(cond, predicate, true_fn=action,
                                         false_fn=function, strict=strict)
        if not exclusive:
            return function()
        with ops.control_dependencies([_assert_at_most(
                1, predicates, "Input error: exclusive=True")]):
            return function()


def Assert(condition, data, summarize=None, name=None):
    summarize = 3 if summarize is None else summarize
    data = list(data)
    with ops.name_scope(name, "Assert", [condition] + data):
        tensors = ops.convert_n_to_tensor(data)
        if all(t.dtype in (dtypes.string, dtypes.int32) for t in tensors):
            return build("Assert", "Assert", condition=condition, data=data,
                         summarize=summarize)
        # Other data may lie on another device, and is fetched from there
        # only if it is needed.
        condition = ops.convert_to_tensor(condition, name="Condition")

        def failed():
            return build("Assert", "Assert", condition=condition, data=data,
                         summarize=summarize)
        return cond(condition, no_op, failed, name="AssertGuard").op


class _Loop(object):
    """The callbacks of one loop: structures outside, flat values inside."""

    def __init__(self, graph, cond, body, loop_vars):
        self._graph = graph
        self._cond = cond
        self._body = body
        self._vars = loop_vars
        self.result = None

    def _packed(self, keys):
        return flow_values.with_tensors(
            self._vars, [self._graph._tensor(key) for key in keys])

    def condition(self, keys):
        tensor = ops.convert_to_tensor(self._cond(*self._packed(keys)))
        if tensor.dtype.base_dtype != dtypes.bool_:
            raise TypeError(
                "Input 'input' of 'LoopCond' Op has type %s that does not "
                "match expected type of bool." % tensor.dtype.name)
        return list(tensor._key)

    def body(self, keys):
        packed = self._packed(keys)
        result = self._body(*packed)
        if not nest.is_sequence(result):
            result = [result]
        # Variables often come as a list and results as a tuple.
        flow_values.assert_same_structure(list(packed), list(result))
        self.result = result
        flat = [ops.convert_to_tensor(v)
                for v in flow_values.tensors_of(result)]
        return [part for tensor in flat for part in tensor._key]


def _counted(cond, body, loop_vars, maximum):
    """The loop with one more variable that counts its iterations."""
    counter = constant_op.constant(0, dtype=maximum.dtype,
                                   name="iteration_counter")
    if len(loop_vars) == 1:
        return (lambda i, lv: math_ops.logical_and(i < maximum, cond(lv)),
                lambda i, lv: (i + 1, body(lv)), (counter, loop_vars[0]))
    return (lambda i, lv: math_ops.logical_and(i < maximum, cond(*lv)),
            lambda i, lv: (i + 1, body(*lv)), (counter, loop_vars))


def while_loop(cond, body, loop_vars, shape_invariants=None,
               parallel_iterations=10, back_prop=True, swap_memory=False,
               name=None, maximum_iterations=None,
               return_same_structure=False):
    if not loop_vars:
        raise ValueError("No loop variables provided")
    if not callable(cond):
        raise TypeError("cond must be callable.")
    if not callable(body):
        raise TypeError("body must be callable.")
    if parallel_iterations < 1:
        raise TypeError("parallel_iterations must be a positive integer.")
    with ops.name_scope(name, "while", list(nest.flatten(loop_vars))):
        if maximum_iterations is not None:
            maximum_iterations = ops.convert_to_tensor(
                maximum_iterations, name="maximum_iterations")
            if maximum_iterations.shape.ndims != 0:
                raise ValueError(
                    "maximum_iterations must be a scalar, saw shape: %s" %
                    maximum_iterations.shape)
            if shape_invariants is not None:
                shape_invariants = (
                    tensor_shape.TensorShape([]),
                    shape_invariants[0] if len(loop_vars) == 1 else
                    shape_invariants)
            cond, body, loop_vars = _counted(cond, body, loop_vars,
                                             maximum_iterations)
        result = _build_loop(cond, body, loop_vars, shape_invariants,
                             parallel_iterations, back_prop, swap_memory,
                             maximum_iterations)
        if maximum_iterations is not None:
            result = result[1]
            single = not nest.is_sequence(result)
            return [result] if single and return_same_structure else result
        if not return_same_structure and len(nest.flatten(result)) == 1:
            return result[0]
        return result


def _build_loop(cond, body, loop_vars, shape_invariants, parallel_iterations,
                back_prop, swap_memory, maximum_iterations):
    graph = ops.get_default_graph()
    if shape_invariants is not None:
        nest.assert_same_structure(list(loop_vars), list(shape_invariants),
                                   check_types=False)
    flat = [ops.convert_to_tensor(v)
            for v in flow_values.tensors_of(loop_vars)]
    shapes = flow_values.shapes_of(loop_vars, flat, shape_invariants)
    loop = _Loop(graph, cond, body, loop_vars)
    maximum = [] if maximum_iterations is None else list(
        maximum_iterations._key)
    try:
        context, exits = graph._core.while_loop(
            [part for t in flat for part in t._key],
            [s._core() for s in shapes], loop.condition, loop.body,
            parallel_iterations, back_prop, swap_memory, maximum)
    except errors.InvalidArgumentError as e:
        raise ValueError(e.message) from None
    if context.outer is None:
        graph.add_to_collection(
            ops.GraphKeys.WHILE_CONTEXT,
            control_flow_context.ControlFlowContext(context))
    return flow_values.with_tensors(
        loop.result, [graph._tensor(key) for key in exits])
