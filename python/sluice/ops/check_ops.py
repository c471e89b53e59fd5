"""tf.assert_*: conditions that are checked when the graph is built where they
are known then, and otherwise while a step runs.
"""

from sluice.framework import constant_op
from sluice.framework import dtypes
from sluice.framework import errors
from sluice.framework import ops
from sluice.framework import sparse_tensor
from sluice.ops import array_ops
from sluice.ops import control_flow_ops
from sluice.ops import math_ops


def _static_text(value):
    if not isinstance(value, ops.Tensor):
        return str(value)
    known = constant_op.constant_value(value)
    return str(value if known is None else known)


def _is_sparse(value):
    return isinstance(value, (sparse_tensor.SparseTensor,
                              sparse_tensor.SparseTensorValue))


def _binary_assert(symbol, default_name, function, x, y, data, summarize,
                   message, name):
    with ops.name_scope(name, default_name, [x, y, data]):
        x = ops.convert_to_tensor(x, name="x")
        y = ops.convert_to_tensor(y, name="y")
        if data is None:
            data = ["Condition x %s y did not hold element-wise:" % symbol,
                    "x (%s) = " % x.name, x, "y (%s) = " % y.name, y]
        if message is not None:
            data = [message] + list(data)
        condition = math_ops.reduce_all(function(x, y))
        if constant_op.constant_value(x) is not None and \
                constant_op.constant_value(y) is not None:
            holds = constant_op.constant_value(condition)
            if holds is not None and not holds:
                raise errors.InvalidArgumentError(
                    None, None, "\n".join(_static_text(d) for d in data))
        return control_flow_ops.Assert(condition, data, summarize=summarize)


def assert_equal(x, y, data=None, summarize=None, message=None, name=None):
    with ops.name_scope(name, "assert_equal", [x, y, data]):
        if x is y:
            return control_flow_ops.no_op()
    return _binary_assert("==", "assert_equal", math_ops.equal, x, y, data,
                          summarize, message, name)


def assert_none_equal(x, y, data=None, summarize=None, message=None,
                      name=None):
    return _binary_assert("!=", "assert_none_equal", math_ops.not_equal, x, y,
                          data, summarize, message, name)


def assert_less(x, y, data=None, summarize=None, message=None, name=None):
    return _binary_assert("<", "assert_less", math_ops.less, x, y, data,
                          summarize, message, name)


def assert_less_equal(x, y, data=None, summarize=None, message=None,
                      name=None):
    return _binary_assert("<=", "assert_less_equal", math_ops.less_equal, x, y,
                          data, summarize, message, name)


def assert_greater(x, y, data=None, summarize=None, message=None, name=None):
    return _binary_assert(">", "assert_greater", math_ops.greater, x, y, data,
                          summarize, message, name)


def assert_greater_equal(x, y, data=None, summarize=None, message=None,
                         name=None):
    return _binary_assert(">=", "assert_greater_equal",
                          math_ops.greater_equal, x, y, data, summarize,
                          message, name)


def _compared_with_zero(symbol, default_name, check, x, data, summarize,
                        message, name):
    """`check(zero, x, …)` of a zero of x's type."""
    message = message or ""
    with ops.name_scope(name, default_name, [x, data]):
        x = ops.convert_to_tensor(x, name="x")
        if data is None:
            texts = ["Condition x %s 0 did not hold element-wise:" % symbol,
                     "x (%s) = " % x.name]
            # TensorFlow joins these two by mistake; graphs show it.
            if symbol == "<=":
                texts = ["".join(texts)]
            data = [message] + texts + [x]
        zero = ops.convert_to_tensor(0, dtype=x.dtype)
        return check(zero, x, data, summarize)


def assert_negative(x, data=None, summarize=None, message=None, name=None):
    return _compared_with_zero(
        "<", "assert_negative",
        lambda zero, x, d, s: assert_less(x, zero, data=d, summarize=s),
        x, data, summarize, message, name)


def assert_positive(x, data=None, summarize=None, message=None, name=None):
    return _compared_with_zero(
        ">", "assert_positive",
        lambda zero, x, d, s: assert_less(zero, x, data=d, summarize=s),
        x, data, summarize, message, name)


def assert_non_negative(x, data=None, summarize=None, message=None,
                        name=None):
    return _compared_with_zero(
        ">=", "assert_non_negative",
        lambda zero, x, d, s: assert_less_equal(zero, x, data=d, summarize=s),
        x, data, summarize, message, name)


def assert_non_positive(x, data=None, summarize=None, message=None,
                        name=None):
    return _compared_with_zero(
        "<=", "assert_non_positive",
        lambda zero, x, d, s: assert_less_equal(x, zero, data=d, summarize=s),
        x, data, summarize, message, name)


def assert_near(x, y, rtol=None, atol=None, data=None, summarize=None,
                message=None, name=None):
    import numpy as np
    message = message or ""
    with ops.name_scope(name, "assert_near", [x, y, rtol, atol, data]):
        x = ops.convert_to_tensor(x, name="x")
        y = ops.convert_to_tensor(y, name="y", dtype=x.dtype)
        epsilon = np.finfo(x.dtype.as_numpy_dtype).eps
        rtol = ops.convert_to_tensor(10 * epsilon if rtol is None else rtol,
                                     name="rtol", dtype=x.dtype)
        atol = ops.convert_to_tensor(10 * epsilon if atol is None else atol,
                                     name="atol", dtype=x.dtype)
        if data is None:
            data = [message,
                    "x and y not equal to tolerance rtol = %s, atol = %s" % (
                        rtol, atol),
                    "x (%s) = " % x.name, x, "y (%s) = " % y.name, y]
        tolerance = atol + rtol * math_ops.abs(y)
        difference = math_ops.abs(x - y)
        condition = math_ops.reduce_all(math_ops.less(difference, tolerance))
        return control_flow_ops.Assert(condition, data, summarize=summarize)


class _StaticRankError(Exception):

    def __init__(self, actual, wanted):
        super().__init__(actual, wanted)
        self.actual = actual
        self.wanted = wanted


def _rank_argument(x):
    return x if _is_sparse(x) else ops.convert_to_tensor(x, name="x")


def _assert_rank_condition(x, rank, holds, function, data, summarize):
    assert_type(rank, dtypes.int32)
    known = constant_op.constant_value(rank)
    if known is not None:
        if known.ndim != 0:
            raise ValueError("Rank must be a scalar.")
        if x.get_shape().ndims is not None:
            if not holds(x.get_shape().ndims, known):
                raise _StaticRankError(x.get_shape().ndims, known)
            return control_flow_ops.no_op(
                name="static_checks_determined_all_ok")
    condition = function(array_ops.rank(x), rank)
    if known is None:
        scalar = assert_rank(
            rank, 0, data=["Rank must be a scalar. Received rank: ", rank])
        condition = control_flow_ops.with_dependencies([scalar], condition)
    return control_flow_ops.Assert(condition, data, summarize=summarize)


def assert_rank(x, rank, data=None, summarize=None, message=None, name=None):
    with ops.name_scope(name, "assert_rank",
                        (x, rank) + tuple(data or [])):
        x = _rank_argument(x)
        rank = ops.convert_to_tensor(rank, name="rank")
        message = message or ""
        if data is None:
            data = [message, "Tensor %s must have rank" % x.name, rank,
                    "Received shape: ", array_ops.shape(x)]
        try:
            return _assert_rank_condition(
                x, rank, lambda actual, wanted: actual == wanted,
                math_ops.equal, data, summarize)
        except _StaticRankError as e:
            raise ValueError(
                "%s.  Tensor %s must have rank %d.  Received rank %d, shape "
                "%s" % (message, x.name, e.wanted, e.actual,
                        x.get_shape())) from None


def assert_rank_at_least(x, rank, data=None, summarize=None, message=None,
                         name=None):
    with ops.name_scope(name, "assert_rank_at_least",
                        (x, rank) + tuple(data or [])):
        x = _rank_argument(x)
        rank = ops.convert_to_tensor(rank, name="rank")
        message = message or ""
        if data is None:
            data = [message, "Tensor %s must have rank at least" % x.name,
                    rank, "Received shape: ", array_ops.shape(x)]
        try:
            return _assert_rank_condition(
                x, rank, lambda actual, wanted: actual >= wanted,
                math_ops.greater_equal, data, summarize)
        except _StaticRankError as e:
            raise ValueError(
                "%s.  Tensor %s must have rank at least %d.  Received rank "
                "%d, shape %s" % (message, x.name, e.wanted, e.actual,
                                  x.get_shape())) from None


def _assert_ranks_condition(x, ranks, data, summarize):
    for rank in ranks:
        assert_type(rank, dtypes.int32)
    known = [constant_op.constant_value(r) for r in ranks]
    if all(r is not None for r in known):
        if any(r.ndim != 0 for r in known):
            raise ValueError("Rank must be a scalar.")
        if x.get_shape().ndims is not None:
            if x.get_shape().ndims not in known:
                raise _StaticRankError(x.get_shape().ndims, known)
            return control_flow_ops.no_op(
                name="static_checks_determined_all_ok")
    actual = array_ops.rank(x)
    condition = math_ops.equal(ranks[0], actual)
    for rank in ranks[1:]:
        condition = math_ops.logical_or(condition,
                                        math_ops.equal(rank, actual))
    scalars = [
        assert_rank(r, 0, data=["Rank must be a scalar. Received rank: ", r])
        for r, static in zip(ranks, known) if static is None]
    if scalars:
        condition = control_flow_ops.with_dependencies(scalars, condition)
    return control_flow_ops.Assert(condition, data, summarize=summarize)


def assert_rank_in(x, ranks, data=None, summarize=None, message=None,
                   name=None):
    with ops.name_scope(name, "assert_rank_in",
                        (x,) + tuple(ranks) + tuple(data or [])):
        x = _rank_argument(x)
        ranks = tuple(ops.convert_to_tensor(r, name="rank") for r in ranks)
        message = message or ""
        if data is None:
            data = [message, "Tensor %s must have rank in" % x.name] + list(
                ranks) + ["Received shape: ", array_ops.shape(x)]
        try:
            return _assert_ranks_condition(x, ranks, data, summarize)
        except _StaticRankError as e:
            raise ValueError(
                "%s.  Tensor %s must have rank in %s.  Received rank %d, "
                "shape %s" % (message, x.name, tuple(e.wanted), e.actual,
                              x.get_shape())) from None


def assert_type(tensor, tf_type, message=None, name=None):
    message = message or ""
    tf_type = dtypes.as_dtype(tf_type)
    with ops.name_scope(name, "assert_type", [tensor]):
        if not _is_sparse(tensor):
            tensor = ops.convert_to_tensor(tensor, name="tensor")
        if tensor.dtype != tf_type:
            raise TypeError("%s  %s must be of type %s" %
                            (message, tensor.name, tf_type))
        return control_flow_ops.no_op("statically_determined_correct_type")


def assert_integer(x, message=None, name=None):
    message = message or ""
    with ops.name_scope(name, "assert_integer", [x]):
        x = ops.convert_to_tensor(x, name="x")
        if not x.dtype.is_integer:
            raise TypeError('%s  Expected "x" to be integer type.  Found: %s '
                            "of dtype %s" % (message, x.name, x.dtype))
        return control_flow_ops.no_op("statically_determined_was_integer")


def assert_scalar(tensor, name=None, message=None):
    with ops.name_scope(name, "assert_scalar", [tensor]) as scope:
        tensor = ops.convert_to_tensor(tensor, name=scope)
        shape = tensor.get_shape()
        if shape.ndims != 0:
            raise ValueError(
                "%sExpected scalar shape for %s, saw shape: %s." %
                (message or "", tensor.name, shape))
        return tensor


def assert_proper_iterable(values):
    unintentional = (ops.Tensor, sparse_tensor.SparseTensor, bytes, str)
    try:
        import numpy as np
        unintentional += (np.ndarray,)
    except ImportError:
        pass
    if isinstance(values, unintentional):
        raise TypeError(
            'Expected argument "values" to be a "proper" iterable.  Found: '
            "%s" % type(values))
    if not hasattr(values, "__iter__"):
        raise TypeError('Expected argument "values" to be iterable.  Found: '
                        "%s" % type(values))


def is_numeric_tensor(tensor):
    return isinstance(tensor, ops.Tensor) and (
        tensor.dtype.is_floating or tensor.dtype.is_integer or
        tensor.dtype.is_complex)


def assert_same_float_dtype(tensors=None, dtype=None):
    """The float type that all tensors have; float32 if there is none."""
    wanted, first = dtype, None
    for tensor in [t for t in tensors or () if t is not None]:
        found = tensor.dtype.base_dtype
        if not wanted:
            wanted, first = found, tensor
        elif wanted != found:
            raise ValueError(
                "%s, type=%s, must be of the same type (%s)%s." %
                (tensor.name, found, wanted,
                 " as %s" % first.name if first is not None else ""))
    if not wanted:
        return dtypes.float32
    wanted = dtypes.as_dtype(wanted)
    if not wanted.is_floating:
        raise ValueError("Expected floating point type, got %s." % wanted)
    return wanted


def _differences(x):
    """x[1:] - x[:-1] of all elements in a row; [] if there are fewer than 2."""
    x = array_ops.reshape(x, [-1])
    short = math_ops.less(array_ops.size(x), 2)
    length = array_ops.shape(x) - 1
    return control_flow_ops.cond(
        short, lambda: ops.convert_to_tensor([], dtype=x.dtype),
        lambda: array_ops.strided_slice(x, [1], [1] + length) -
        array_ops.strided_slice(x, [0], length))


def is_non_decreasing(x, name=None):
    with ops.name_scope(name, "is_non_decreasing", [x]):
        difference = _differences(x)
        zero = ops.convert_to_tensor(0, dtype=difference.dtype)
        return math_ops.reduce_all(math_ops.less_equal(zero, difference))


def is_strictly_increasing(x, name=None):
    with ops.name_scope(name, "is_strictly_increasing", [x]):
        difference = _differences(x)
        zero = ops.convert_to_tensor(0, dtype=difference.dtype)
        return math_ops.reduce_all(math_ops.less(zero, difference))


def verify_tensor_all_finite(t=None, msg=None, name=None, x=None,
                             message=None):
    """`t` itself; an error while running if it has what is not finite."""
    x = t if x is None else x
    message = msg if message is None else message
    with ops.name_scope(name, "VerifyFinite", [x]):
        x = ops.convert_to_tensor(x, name="x")
        with ops.colocate_with(x):
            check = array_ops.check_numerics(x, message=message)
            return control_flow_ops.with_dependencies([check], x)
