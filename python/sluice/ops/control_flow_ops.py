"""group, tuple, cond and assertions."""

import contextlib

from sluice.framework import ops
from sluice.framework.op_builder import apply_op, build
from sluice.ops import array_ops

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
def _branch(graph, name, pred, pivot, index):
    core = graph._core
    core.push()
    try:
        core.enter_cond(name, pred._op._id, pred._index, pivot._op._id,
                        pivot._index, index)
        yield
    finally:
        core.pop()


def _branch_outputs(graph, fn):
    result = fn()
    if result is None:
        raise ValueError("true_fn and false_fn must return a value.")
    single = not isinstance(result, (list, _TUPLE))
    items = [result] if single else list(result)
    outputs = []
    for item in items:
        if isinstance(item, ops.Operation):
            # An operation stands for "done": a constant that waits for it.
            item = _done_value(item)
        item = ops.convert_to_tensor(item)
        node, index = graph._core.cond_value(item._op._id, item._index)
        outputs.append(graph._tensor((node, index)))
    return single, outputs, isinstance(result, ops.Operation)


def _done_value(op):
    with ops.control_dependencies([op]):
        return ops.convert_to_tensor(True)


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
    with ops.name_scope(name, "cond", [pred]) as scope:
        switched = apply_op("Switch", "Switch", data=pred, pred=pred)
        pivot_true = array_ops.identity(switched[1], name="switch_t")
        pivot_false = array_ops.identity(switched[0], name="switch_f")
        pred = array_ops.identity(pred, name="pred_id")
        for t in list(switched) + [pivot_true, pivot_false, pred]:
            graph.prevent_fetching(t.op)
        context = scope + "cond_text"
        with _branch(graph, context, pred, pivot_true, 1):
            single, on_true, is_op = _branch_outputs(graph, true_fn)
        with _branch(graph, context, pred, pivot_false, 0):
            single2, on_false, is_op2 = _branch_outputs(graph, false_fn)
        if len(on_true) != len(on_false) or single != single2:
            raise ValueError("true_fn and false_fn must return the same "
                             "number of values")
        for a, b in zip(on_true, on_false):
            if a.dtype.base_dtype != b.dtype.base_dtype:
                raise ValueError(
                    "Outputs of true_fn and false_fn must have the same "
                    "type: %s, %s" % (a.dtype.name, b.dtype.name))
        merged = [apply_op("Merge", "Merge", inputs=[f, t])[0]
                  for f, t in zip(on_false, on_true)]
        if is_op and is_op2:
            return merged[0].op
        return merged[0] if single else merged


def Assert(condition, data, summarize=None, name=None):
    with ops.name_scope(name, "Assert", [condition] + list(data)) as scope:
        return build("Assert", scope, condition=condition, data=list(data),
                     summarize=3 if summarize is None else summarize)


def while_loop(*args, **kwargs):
    raise NotImplementedError(
        "tf.while_loop is not provided yet; the engine runs imported loops")


