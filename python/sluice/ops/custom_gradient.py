"""custom_gradient: a function that brings its own gradient."""

import functools
import itertools

from sluice.framework import nest
from sluice.framework import ops
from sluice.framework.op_builder import apply_op
from sluice.ops import array_ops

_numbers = itertools.count()


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
    result, grad_fn = f(*args)
    results = [ops.convert_to_tensor(r) for r in nest.flatten(result)]
    for r in results:
        array_ops.identity(r)  # TensorFlow makes one that nothing uses.

    @ops.RegisterGradient(name)
    def gradient(op, *grads):
        grads = nest.flatten(grad_fn(*grads[:len(results)]))
        if len(grads) != len(args):
            raise ValueError(
                "custom_gradient function expected to return %d gradients but "
                "returned %d instead." % (len(args), len(grads)))
        return [None] * len(results) + grads

    with ops.get_default_graph().gradient_override_map({"IdentityN": name}):
        outputs = apply_op("IdentityN", None, input=results + args)
    return nest.pack_sequence_as(result, list(outputs[:len(results)]))
