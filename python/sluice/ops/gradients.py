"""tf.gradients, over the engine's gradients and those Python registers."""

import enum

from sluice import _sluice
from sluice.framework import errors
from sluice.framework import gradient_registry
from sluice.framework import ops


class UnconnectedGradients(enum.Enum):
    """What gradients gives for an x that no y depends on."""
    NONE = "none"
    ZERO = "zero"


class AggregationMethod(object):
    ADD_N = DEFAULT = 0
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


def _to_core(grad):
    if grad is None:
        return None
    if isinstance(grad, ops.IndexedSlices):
        shape = grad.dense_shape
        return (grad.values._key, grad.indices._key,
                None if shape is None else shape._key)
    return ops.convert_to_tensor(grad)._key


def _from_core(graph, grad):
    if grad is None:
        return None
    if len(grad) == 2:
        return graph._tensor(grad)
    values, indices, shape = grad
    return ops.IndexedSlices(
        graph._tensor(values), graph._tensor(indices),
        None if shape is None else graph._tensor(shape))


def _as_list(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _x_tensor(x):
    """What the gradient is taken for: a variable's own output."""
    if hasattr(x, "_gradient_source"):
        return x._gradient_source()
    # One that is made for this, of the parts of a variable say, depends on
    # nothing: its conversion has to refuse.
    return ops.internal_convert_to_tensor(x, as_ref=True)


def gradients(ys, xs, grad_ys=None, name="gradients",
              colocate_gradients_with_ops=False, gate_gradients=False,
              aggregation_method=None, stop_gradients=None,
              unconnected_gradients=UnconnectedGradients.NONE):
    ys, xs = _as_list(ys), _as_list(xs)
    stops = _as_list(stop_gradients) if stop_gradients is not None else []
    if grad_ys is None:
        grad_ys = [None] * len(ys)
    else:
        grad_ys = _as_list(grad_ys)
    if len(grad_ys) != len(ys):
        raise ValueError("Passed %d grad_ys for %d ys" %
                         (len(grad_ys), len(ys)))
    zero = getattr(unconnected_gradients, "value", unconnected_gradients)
    if zero not in ("none", "zero"):
        raise ValueError("Unknown value for unconnected_gradients: %r" %
                         unconnected_gradients)
    graph = ops._graph_of(ys) or ops.get_default_graph()
    ys = [ops.convert_to_tensor(y) for y in ys]
    xs = [_x_tensor(x) for x in xs]
    stops = [_x_tensor(s) for s in stops]
    method = 0 if aggregation_method is None else aggregation_method
    if method not in (0, 1, 2):
        raise ValueError("Invalid aggregation_method specified %s." % method)

    first = graph._core.num_nodes()
    origins = []

    def callback(node_id, grads):
        origins.append((graph._core.num_nodes(), node_id))
        op = graph._op(node_id)
        key = op.type
        if graph._core.node_has_attr(node_id, "_gradient_op_type"):
            key = op.get_attr("_gradient_op_type").decode()
        function = gradient_registry.gradients.get(key)
        if function is None and op.type in graph._functions:
            function = graph._functions[op.type].python_grad_func
        if function is None:
            if key != op.type:
                raise LookupError("No gradient defined for operation '%s' "
                                  "(op type: %s)" % (op.name, key))
            return None
        result = function(op, *[_from_core(graph, g) for g in grads])
        result = _as_list(result)
        if len(result) != len(op.inputs):
            raise ValueError(
                "Num gradients %d generated for op %s do not match num "
                "inputs %d" % (len(result), op.node_def, len(op.inputs)))
        return [_to_core(g) for g in result]

    def not_differentiable(node_id):
        kind = graph._op(node_id).type
        return kind in gradient_registry.gradients and gradient_registry.gradients[kind] is None

    def flat(tensors):
        return [part for t in tensors for part in t._key]

    try:
        with graph.as_default():
            result = _sluice.add_gradients(
                graph._core, flat(ys), flat(xs),
                [_to_core(g) for g in grad_ys], name or "gradients",
                bool(colocate_gradients_with_ops), bool(gate_gradients),
                method, flat(stops), zero == "zero",
                callback, not_differentiable)
    except errors.NotFoundError as e:
        raise LookupError(e.message) from None
    except errors.InvalidArgumentError as e:
        raise ValueError(e.message) from None
    graph._gradient_calls.append((first, graph._core.num_nodes(), origins))
    return [_from_core(graph, g) for g in result]


def hessians(ys, xs, name="hessians", colocate_gradients_with_ops=False,
             gate_gradients=False, aggregation_method=None):
    """The second derivatives of the sum of ys, a tensor for each x."""
    from sluice.framework import constant_op
    from sluice.ops import array_ops
    from sluice.ops import control_flow_ops
    from sluice.ops import tensor_array_ops
    xs = _as_list(xs)
    options = {"colocate_gradients_with_ops": colocate_gradients_with_ops,
               "gate_gradients": gate_gradients,
               "aggregation_method": aggregation_method}
    result = []
    for gradient, x in zip(gradients(ys, xs, **options), xs):
        gradient = array_ops.reshape(gradient, [-1])
        count = array_ops.size(x)
        rows = control_flow_ops.while_loop(
            lambda j, _: j < count,
            lambda j, rows: (j + 1, rows.write(j, gradients(
                gradient[j], x)[0])),
            [constant_op.constant(0),
             tensor_array_ops.TensorArray(x.dtype, count)])[1]
        shape = array_ops.shape(x)
        result.append(array_ops.reshape(
            rows.stack(), array_ops.concat((shape, shape), 0)))
    return result
