"""Asserts on tensors: at once where the values are known, else in the step."""

from sluice.platform.lazy_numpy import np

from sluice.framework import dtypes
from sluice.framework import errors
from sluice.framework import ops
from sluice.framework import sparse_tensor
from sluice.framework.constant_op import constant_value
from sluice.ops import array_ops
from sluice.ops import control_flow_ops
from sluice.ops import math_ops


def _raise_if_known_false(condition, data):
    """Fails while the graph is built, with the data that are known."""
    if condition:
        return
    words = []
    for item in data:
        value = constant_value(item) if isinstance(item, ops.Tensor) else item
        words.append(str(item if value is None else value))
    raise errors.InvalidArgumentError(None, None, "\n".join(words))


def _binary(sign, name, opname, compare, compare_known, x, y, data, summarize,
            message):
    with ops.name_scope(name, opname, [x, y, data]):
        x = ops.convert_to_tensor(x, name="x")
        y = ops.convert_to_tensor(y, name="y")
        if data is None:
            data = ["Condition x %s y did not hold element-wise:" % sign,
                    "x (%s) = " % x.name, x, "y (%s) = " % y.name, y]
        if message is not None:
            data = [message] + list(data)
        condition = math_ops.reduce_all(compare(x, y))
        known = constant_value(x), constant_value(y)
        if known[0] is not None and known[1] is not None:
            _raise_if_known_false(np.all(compare_known(*known)), data)
        return control_flow_ops.Assert(condition, data, summarize=summarize)


def assert_equal(x, y, data=None, summarize=None, message=None, name=None):
    with ops.name_scope(name, "assert_equal", [x, y, data]):
        if x is y:
            return control_flow_ops.no_op()
    return _binary("==", name, "assert_equal", math_ops.equal, np.equal, x, y,
                   data, summarize, message)


def assert_none_equal(x, y, data=None, summarize=None, message=None,
                      name=None):
    return _binary("!=", name, "assert_none_equal", math_ops.not_equal,
                   np.not_equal, x, y, data, summarize, message)


def assert_less(x, y, data=None, summarize=None, message=None, name=None):
    return _binary("<", name, "assert_less", math_ops.less, np.less, x, y,
                   data, summarize, message)


def assert_less_equal(x, y, data=None, summarize=None, message=None,
                      name=None):
    return _binary("<=", name, "assert_less_equal", math_ops.less_equal,
                   np.less_equal, x, y, data, summarize, message)


def assert_greater(x, y, data=None, summarize=None, message=None, name=None):
    return _binary(">", name, "assert_greater", math_ops.greater, np.greater,
                   x, y, data, summarize, message)


def assert_greater_equal(x, y, data=None, summarize=None, message=None,
                         name=None):
    return _binary(">=", name, "assert_greater_equal", math_ops.greater_equal,
                   np.greater_equal, x, y, data, summarize, message)


def _against_zero(sign, name, opname, check, x, data, summarize, message):
    """`check` takes x and zero, in its order."""
    message = message or ""
    with ops.name_scope(name, opname, [x, data]):
        x = ops.convert_to_tensor(x, name="x")
        if data is None:
            data = [message,
                    "Condition x %s 0 did not hold element-wise:" % sign,
                    "x (%s) = " % x.name, x]
            if sign == "<=":
                data[1:3] = [data[1] + data[2]]
        zero = ops.convert_to_tensor(0, dtype=x.dtype.base_dtype)
        return check(x, zero, data, summarize)


def assert_negative(x, data=None, summarize=None, message=None, name=None):
    return _against_zero("<", name, "assert_negative",
                         lambda x, zero, *rest: assert_less(x, zero, *rest),
                         x, data, summarize, message)


def assert_positive(x, data=None, summarize=None, message=None, name=None):
    return _against_zero(">", name, "assert_positive",
                         lambda x, zero, *rest: assert_less(zero, x, *rest),
                         x, data, summarize, message)


def assert_non_negative(x, data=None, summarize=None, message=None, name=None):
    return _against_zero(
        ">=", name, "assert_non_negative",
        lambda x, zero, *rest: assert_less_equal(zero, x, *rest),
        x, data, summarize, message)


def assert_non_positive(x, data=None, summarize=None, message=None, name=None):
    return _against_zero(
        "<=", name, "assert_non_positive",
        lambda x, zero, *rest: assert_less_equal(x, zero, *rest),
        x, data, summarize, message)


def assert_near(x, y, rtol=None, atol=None, data=None, summarize=None,
                message=None, name=None):
    """|x - y| < atol + rtol * |y|."""
    message = message or ""
    with ops.name_scope(name, "assert_near", [x, y, rtol, atol, data]):
        x = ops.convert_to_tensor(x, name="x")
        y = ops.convert_to_tensor(y, name="y", dtype=x.dtype.base_dtype)
        dtype = x.dtype.base_dtype
        least = 10 * np.finfo(dtype.as_numpy_dtype).eps
        rtol = ops.convert_to_tensor(least if rtol is None else rtol,
                                     name="rtol", dtype=dtype)
        atol = ops.convert_to_tensor(least if atol is None else atol,
                                     name="atol", dtype=dtype)
        if data is None:
            data = [message, "x and y not equal to tolerance rtol = %s, "
                    "atol = %s" % (rtol, atol),
                    "x (%s) = " % x.name, x, "y (%s) = " % y.name, y]
        tolerance = atol + rtol * math_ops.abs(y)
        distance = math_ops.abs(x - y)
        condition = math_ops.reduce_all(math_ops.less(distance, tolerance))
        return control_flow_ops.Assert(condition, data, summarize=summarize)


# ---- Types ----

def assert_type(tensor, tf_type, message=None, name=None):
    message = message or ""
    with ops.name_scope(name, "assert_type", [tensor]):
        if not isinstance(tensor, sparse_tensor.SparseTensor):
            tensor = ops.convert_to_tensor(tensor, name="tensor")
        if tensor.dtype.base_dtype != tf_type:
            raise TypeError("%s  %s must be of type %s" % (
                message, getattr(tensor, "name", tensor),
                dtypes.as_dtype(tf_type)))
        return control_flow_ops.no_op("statically_determined_correct_type")


def assert_integer(x, message=None, name=None):
    message = message or ""
    with ops.name_scope(name, "assert_integer", [x]):
        x = ops.convert_to_tensor(x, name="x")
        if not x.dtype.is_integer:
            raise TypeError(
                "%s  Expected \"x\" to be integer type.  Found: %s of dtype "
                "%s" % (message, x.name, x.dtype))
        return control_flow_ops.no_op("statically_determined_was_integer")


def assert_proper_iterable(values):
    """Fails for tensors, arrays and text, over which one may iterate, too."""
    forbidden = (ops.Tensor, sparse_tensor.SparseTensor, np.ndarray, str,
                 bytes)
    if isinstance(values, forbidden):
        raise TypeError("Expected argument \"values\" to be a \"proper\" "
                        "iterable.  Found: %s" % type(values))
    if not hasattr(values, "__iter__"):
        raise TypeError("Expected argument \"values\" to be iterable.  Found: "
                        "%s" % type(values))


def _same_type(items, expected):
    first = None
    for item in items:
        if item is None:
            continue
        if not isinstance(item, (ops.Tensor, sparse_tensor.SparseTensor)) and \
                not hasattr(item, "dtype"):
            item = ops.convert_to_tensor(item)
        found = item.dtype.base_dtype
        if expected is None:
            expected, first = found, getattr(item, "name", item)
        elif found != expected:
            raise ValueError(
                "%s, type=%s, must be of the same type (%s)%s." % (
                    getattr(item, "name", item), found, expected,
                    " as %s" % first if first is not None else ""))
    return expected


def assert_same_float_dtype(tensors=None, dtype=None):
    """The type that all have, which must be one of floating point."""
    if dtype is not None:
        dtype = dtypes.as_dtype(dtype).base_dtype
    if tensors:
        dtype = _same_type(tensors, dtype)
    if not dtype:
        return dtypes.float32
    if not dtype.is_floating:
        raise ValueError("Expected floating point type, got %s." % dtype)
    return dtype


def is_numeric_tensor(tensor):
    return isinstance(tensor, ops.Tensor) and (
        tensor.dtype.is_floating or tensor.dtype.is_integer or
        tensor.dtype.is_complex)


# ---- Ranks ----

def assert_scalar(tensor, name=None, message=None):
    with ops.name_scope(name, "assert_scalar", [tensor]) as scope:
        tensor = ops.convert_to_tensor(tensor, name=scope)
        shape = tensor.get_shape()
        if shape.ndims != 0:
            raise ValueError("%sExpected scalar shape for %s, saw shape: %s." %
                             (message or "", tensor.name, shape))
        return tensor


def _checked_rank(rank):
    """The known value of a rank, or None; what is wrong with it is raised."""
    assert_type(rank, dtypes.int32)
    known = constant_value(rank)
    if known is not None and known.ndim != 0:
        raise ValueError("Rank must be a scalar.")
    if rank.shape.ndims not in (0, None):
        raise ValueError("Rank must be a scalar.")
    return known


def _dynamic_scalars(ranks, condition, data):
    """The condition, after checks that ranks whose value is unknown are
    scalars."""
    checks = [assert_rank(r, 0, data=data) for r in ranks]
    return control_flow_ops.with_dependencies(checks, condition)


def _with_rank(x, ranks, name, opname, data, message, summarize, right,
               compare, words):
    """`right(rank of x, known ranks)` decides, else `compare` in the step."""
    message = message or ""
    with ops.name_scope(name, opname, [x] + list(ranks)):
        if not isinstance(x, sparse_tensor.SparseTensor):
            x = ops.convert_to_tensor(x, name="x")
        ranks = [ops.convert_to_tensor(r, name="rank") for r in ranks]
        if data is None:
            data = [message, "Tensor %s must have %s" % (
                getattr(x, "name", x), words)] + ranks + \
                ["Received shape: ", array_ops.shape(x)]
        known = [_checked_rank(r) for r in ranks]
        found = x.get_shape().ndims
        if found is not None and all(k is not None for k in known):
            if not right(found, [int(k) for k in known]):
                shown = known[0] if len(known) == 1 else tuple(known)
                raise ValueError(
                    "%s.  Tensor %s must have %s %s.  Received rank %d, shape "
                    "%s" % (message, getattr(x, "name", x), words, shown,
                            found, x.get_shape()))
            return control_flow_ops.no_op("static_checks_determined_all_ok")
        condition = compare(array_ops.rank(x), ranks)
        unknown = [r for r, k in zip(ranks, known) if k is None]
        if unknown:
            condition = _dynamic_scalars(unknown, condition, data)
        return control_flow_ops.Assert(condition, data, summarize=summarize)


def assert_rank(x, rank, data=None, summarize=None, message=None, name=None):
    return _with_rank(
        x, [rank], name, "assert_rank", data, message, summarize,
        lambda found, ranks: found == ranks[0],
        lambda found, ranks: math_ops.equal(found, ranks[0]), "rank")


def assert_rank_at_least(x, rank, data=None, summarize=None, message=None,
                         name=None):
    return _with_rank(
        x, [rank], name, "assert_rank_at_least", data, message, summarize,
        lambda found, ranks: found >= ranks[0],
        lambda found, ranks: math_ops.greater_equal(found, ranks[0]),
        "rank at least")


def assert_rank_in(x, ranks, data=None, summarize=None, message=None,
                   name=None):
    def compare(found, ranks):
        condition = math_ops.equal(ranks[0], found)
        for rank in ranks[1:]:
            condition = math_ops.logical_or(condition,
                                            math_ops.equal(rank, found))
        return condition
    return _with_rank(
        x, list(ranks), name, "assert_rank_in", data, message, summarize,
        lambda found, ranks: found in ranks, compare, "rank in")


# ---- Order ----

def _differences(x):
    """x[1:] - x[:-1], or nothing for less than two elements."""
    x = array_ops.reshape(x, [-1])
    short = math_ops.less(array_ops.size(x), 2)
    end = array_ops.shape(x) - 1
    return control_flow_ops.cond(
        short, lambda: ops.convert_to_tensor([], dtype=x.dtype),
        lambda: array_ops.strided_slice(x, [1], [1] + end) -
        array_ops.strided_slice(x, [0], end))


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
