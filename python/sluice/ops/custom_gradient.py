"""custom_gradient: a function that brings its own gradient."""

import functools
import inspect
import itertools

from sluice.framework import dtypes
from sluice.framework import nest
from sluice.framework import ops
from sluice.framework.op_builder import apply_op
from sluice.ops import array_ops

_numbers = itertools.count()

# What depends on their inputs has no gradient of them.
_BARRIERS = {"StopGradient", "ZerosLike", "OnesLike"}
_READS = {"ReadVariableOp", "ResourceGather"}


def custom_gradient(f):
    """`f(*args)` returns its result and a function of the result's gradient."""
    @functools.wraps(f)
    def decorated(*args, **kwargs):
        return _with_gradient(f, args, kwargs)
    return decorated


def _with_gradient(f, args, kwargs):
    if kwargs:
        raise ValueError("The custom_gradient decorator currently supports "
                         "keywords arguments only when eager execution is "
                         "enabled.")
    name = "CustomGradient-%d" % next(_numbers)
    args = [ops.convert_to_tensor(a) for a in args]
    graph = ops.get_default_graph()
    first, known = graph._core.num_nodes(), set(map(id, _all_variables()))
    result, grad_fn = f(*args)
    made = [v for v in _all_variables() if id(v) not in known]
    if not all(v._is_resource for v in made):
        raise TypeError(
            "All variables used by a function wrapped with @custom_gradient "
            "must be `ResourceVariable`s. Ensure that no `variable_scope` is "
            "created with `use_resource=False`.")
    read = _handles_read(graph, first, made)
    results = [ops.convert_to_tensor(r) for r in nest.flatten(result)]
    for r in results:
        array_ops.identity(r)  # TensorFlow makes one that nothing uses.
    variables = _variables_between(args, results + read)
    if variables and not _takes_variables(grad_fn):
        raise TypeError("If using @custom_gradient with a function that uses "
                        "variables, then grad_fn must accept a keyword "
                        "argument 'variables'.")

    @ops.RegisterGradient(name)
    def gradient(op, *grads):
        grads = grads[:len(results)]
        of_variables = []
        if variables:
            grads, of_variables = grad_fn(*grads, variables=variables)
            if len(of_variables) != len(variables):
                raise ValueError("Must return gradient for each variable from "
                                 "@custom_gradient grad_fn.")
        else:
            grads = grad_fn(*grads)
        grads = nest.flatten(grads)
        if len(grads) != len(args):
            raise ValueError(
                "custom_gradient function expected to return %d gradients but "
                "returned %d instead." % (len(args), len(grads)))
        return [None] * len(results) + grads + list(of_variables)

    # The gradients of variables go the way of a read of each.
    reads = [ops.convert_to_tensor(v) for v in variables]
    with graph.gradient_override_map({"IdentityN": name}):
        outputs = apply_op("IdentityN", None, input=results + args + reads)
    return nest.pack_sequence_as(result, list(outputs[:len(results)]))


def _all_variables():
    return [v for key in (ops.GraphKeys.GLOBAL_VARIABLES,
                          ops.GraphKeys.LOCAL_VARIABLES)
            for v in ops.get_collection(key)]


def _handles_read(graph, first, made):
    """The handles that were read since node `first`, whatever for; that of a
    variable which was `made` there is read once by making it."""
    by_making = {v._graph_element.op._id for v in made}
    nodes = [graph._op(i) for i in range(first, graph._core.num_nodes())
             if i not in by_making]
    return [op.inputs[0] for op in nodes if op.type in _READS]


def _variables_between(args, results):
    """The trainable variables on which `results` depend otherwise than by
    `args`, so that they have a gradient."""
    seen = {t._key for t in args}
    sources = set()
    pending = list(results)
    while pending:
        tensor = pending.pop()
        if tensor._key in seen:
            continue
        seen.add(tensor._key)
        sources.add(tensor._key)
        if tensor.op.type not in _BARRIERS:
            pending.extend(t for t in tensor.op.inputs if _has_gradients(t))
    return [v for v in ops.get_collection(ops.GraphKeys.GLOBAL_VARIABLES)
            if v.trainable and v._variable._key in sources]


def _has_gradients(tensor):
    dtype = tensor.dtype.base_dtype
    return dtype.is_floating or dtype.is_complex or dtype == dtypes.resource


def _takes_variables(function):
    parameters = inspect.signature(function).parameters
    return "variables" in parameters or any(
        p.kind is p.VAR_KEYWORD for p in parameters.values())
