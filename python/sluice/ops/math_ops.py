"""Arithmetic, comparisons, reductions; and the operators of tensors."""

from sluice.platform.lazy_numpy import np

from sluice.framework import constant_op
from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework.op_builder import apply_op
from sluice.ops import array_ops


def _unary(op_type):
    def function(x, name=None):
        return apply_op(op_type, name, x=x)
    function.__name__ = op_type.lower()
    return function


def _binary(op_type):
    def function(x, y, name=None):
        return apply_op(op_type, name, x=x, y=y)
    function.__name__ = op_type.lower()
    return function


negative = neg = _unary("Neg")
sign = _unary("Sign")
square = _unary("Square")
sqrt = _unary("Sqrt")
rsqrt = _unary("Rsqrt")
exp = _unary("Exp")
expm1 = _unary("Expm1")
log = _unary("Log")
log1p = _unary("Log1p")
sin = _unary("Sin")
cos = _unary("Cos")
tanh = _unary("Tanh")
sigmoid = _unary("Sigmoid")
reciprocal = inv = _unary("Reciprocal")
floor = _unary("Floor")
ceil = _unary("Ceil")
round = _unary("Round")
rint = _unary("Rint")
erf = _unary("Erf")
is_nan = _unary("IsNan")
is_inf = _unary("IsInf")
is_finite = _unary("IsFinite")
logical_not = _unary("LogicalNot")

_add_v2 = _binary("AddV2")
add = _binary("Add")
multiply = mul = _binary("Mul")
floor_div = _binary("FloorDiv")
floormod = mod = _binary("FloorMod")
maximum = _binary("Maximum")
minimum = _binary("Minimum")
squared_difference = _binary("SquaredDifference")
equal = _binary("Equal")
not_equal = _binary("NotEqual")
less = _binary("Less")
less_equal = _binary("LessEqual")
greater = _binary("Greater")
greater_equal = _binary("GreaterEqual")
logical_and = _binary("LogicalAnd")
logical_or = _binary("LogicalOr")
truncatediv = _binary("TruncateDiv")
truncatemod = _binary("TruncateMod")
real_div = _binary("RealDiv")


def div_no_nan(x, y, name=None):
    """x / y, and 0 where y is 0."""
    with ops.name_scope(name, "div_no_nan", [x, y]) as scope:
        x = ops.convert_to_tensor(x, name="x")
        y = ops.convert_to_tensor(y, name="y", dtype=x.dtype.base_dtype)
        return apply_op("DivNoNan", scope, x=x, y=y)


def abs(x, name=None):
    with ops.name_scope(name, "Abs", [x]) as scope:
        return apply_op("Abs", scope, x=ops.convert_to_tensor(x, name="x"))


def subtract(x, y, name=None):
    return apply_op("Sub", name, x=x, y=y)


sub = subtract


def pow(x, y, name=None):
    with ops.name_scope(name, "Pow", [x]) as scope:
        return apply_op("Pow", scope, x=x, y=y)


def logical_xor(x, y, name="LogicalXor"):
    return logical_and(logical_or(x, y), logical_not(logical_and(x, y)),
                       name=name)


def _truediv(x, y, name=None):
    with ops.name_scope(name, "truediv", [x, y]) as scope:
        x = ops.convert_to_tensor(x, name="x")
        y = ops.convert_to_tensor(y, name="y",
                                  dtype=x.dtype.base_dtype)
        wider = {dtypes.uint8: dtypes.float32, dtypes.int8: dtypes.float32,
                 dtypes.uint16: dtypes.float32, dtypes.int16: dtypes.float32,
                 dtypes.int32: dtypes.float64, dtypes.int64: dtypes.float64}
        to = wider.get(x.dtype.base_dtype)
        if to is not None:
            x = cast(x, to)
            y = cast(y, to)
        return real_div(x, y, name=scope)


truediv = _truediv


def divide(x, y, name=None):
    if name is not None:
        return _truediv(x, y, name)
    return x / y


def _div_python2(x, y, name=None):
    with ops.name_scope(name, "div", [x, y]) as scope:
        x = ops.convert_to_tensor(x, name="x")
        y = ops.convert_to_tensor(y, name="y", dtype=x.dtype.base_dtype)
        if x.dtype.is_floating or x.dtype.is_complex:
            return real_div(x, y, name=scope)
        return floor_div(x, y, name=scope)


div = _div_python2


def floordiv(x, y, name=None):
    with ops.name_scope(name, "floordiv", [x, y]) as scope:
        return floor_div(x, y, name=scope)


def _binary_operator(func, op_name):
    def left(x, y):
        with ops.name_scope(None, op_name, [x, y]) as name:
            if not isinstance(y, ops.Tensor):
                try:
                    y = ops.convert_to_tensor(
                        y, dtype_hint=x.dtype.base_dtype, name="y")
                except TypeError:
                    if hasattr(type(y), "__r%s__" % op_name):
                        return NotImplemented
                    raise
            return func(x, y, name=name)

    def right(y, x):
        with ops.name_scope(None, op_name, [x, y]) as name:
            x = ops.convert_to_tensor(x, dtype=y.dtype.base_dtype, name="x")
            return func(x, y, name=name)

    ops.Tensor._override_operator("__%s__" % op_name, left)
    ops.Tensor._override_operator("__r%s__" % op_name, right)


def _add_dispatch(x, y, name=None):
    if x.dtype == dtypes.string:
        return add(x, y, name=name)
    return _add_v2(x, y, name=name)


_binary_operator(_add_dispatch, "add")
_binary_operator(subtract, "sub")
_binary_operator(multiply, "mul")
_binary_operator(_div_python2, "div")
_binary_operator(_truediv, "truediv")
_binary_operator(floordiv, "floordiv")
_binary_operator(floormod, "mod")
_binary_operator(pow, "pow")
_binary_operator(logical_and, "and")
_binary_operator(logical_or, "or")
_binary_operator(logical_xor, "xor")
ops.Tensor._override_operator("__lt__", less)
ops.Tensor._override_operator("__le__", less_equal)
ops.Tensor._override_operator("__gt__", greater)
ops.Tensor._override_operator("__ge__", greater_equal)
ops.Tensor._override_operator("__invert__", logical_not)
ops.Tensor._override_operator("__neg__", negative)
ops.Tensor._override_operator("__abs__", abs)


def cast(x, dtype, name=None):
    base = dtypes.as_dtype(dtype).base_dtype
    if isinstance(x, ops.Tensor) and base == x.dtype:
        return x
    with ops.name_scope(name, "Cast", [x]) as scope:
        if isinstance(x, ops.IndexedSlices):
            return ops.IndexedSlices(cast(x.values, base, name=scope),
                                     x.indices, x.dense_shape)
        x = ops.convert_to_tensor(x, name="x")
        if x.dtype.base_dtype == base:
            return x
        return apply_op("Cast", scope, x=x, DstT=base)


def to_float(x, name="ToFloat"):
    return cast(x, dtypes.float32, name=name)


def to_double(x, name="ToDouble"):
    return cast(x, dtypes.float64, name=name)


def to_int32(x, name="ToInt32"):
    return cast(x, dtypes.int32, name=name)


def to_int64(x, name="ToInt64"):
    return cast(x, dtypes.int64, name=name)


def saturate_cast(value, dtype, name=None):
    return cast(value, dtype, name)


def range(start, limit=None, delta=1, dtype=None, name="range"):
    if limit is None:
        start, limit = 0, start
    with ops.name_scope(name, "Range", [start, limit, delta]) as scope:
        parts = [ops.convert_to_tensor(v, dtype=dtype, name=n) for v, n in
                 ((start, "start"), (limit, "limit"), (delta, "delta"))]
        if dtype is None:
            order = [dtypes.int32, dtypes.int64, dtypes.float32,
                     dtypes.float64]
            widest = max((p.dtype.base_dtype for p in parts),
                         key=order.index)
            parts = [cast(p, widest) for p in parts]
        return apply_op("Range", scope, start=parts[0], limit=parts[1],
                        delta=parts[2])


def lin_space(start, stop, num, name=None):
    return apply_op("LinSpace", name, start=start, stop=stop, num=num)


linspace = lin_space


def _axes(x, axis):
    if axis is not None:
        return axis
    x_rank = x.shape.ndims
    if x_rank is not None:
        return constant_op.constant(np.arange(x_rank, dtype=np.int32))
    return range(0, array_ops.rank(x))


def _reduction(op_type):
    def function(input_tensor, axis=None, keepdims=None, name=None,
                 reduction_indices=None, keep_dims=None):
        if axis is not None and reduction_indices is not None:
            raise ValueError("Cannot specify both 'axis' and "
                             "'reduction_indices'")
        if keepdims is not None and keep_dims is not None:
            raise ValueError("Cannot specify both 'keepdims' and 'keep_dims'")
        axis = reduction_indices if axis is None else axis
        keep = bool(keep_dims if keepdims is None else keepdims)
        x = ops.convert_to_tensor(input_tensor, name="input_tensor") \
            if not isinstance(input_tensor, ops.Tensor) else input_tensor
        result = apply_op(op_type, name, input=x,
                          reduction_indices=_axes(x, axis), keep_dims=keep)
        if axis is None and not keep:
            result.set_shape(())
        return result
    function.__name__ = "reduce_" + op_type.lower()
    return function


reduce_sum = _reduction("Sum")
reduce_mean = _reduction("Mean")
reduce_max = _reduction("Max")
reduce_min = _reduction("Min")
reduce_prod = _reduction("Prod")
reduce_all = _reduction("All")
reduce_any = _reduction("Any")


def argmax(input, axis=None, name=None, dimension=None,
           output_type=dtypes.int64):
    axis = dimension if axis is None else axis
    return apply_op("ArgMax", name, input=input,
                    dimension=0 if axis is None else axis,
                    output_type=output_type)


def argmin(input, axis=None, name=None, dimension=None,
           output_type=dtypes.int64):
    axis = dimension if axis is None else axis
    return apply_op("ArgMin", name, input=input,
                    dimension=0 if axis is None else axis,
                    output_type=output_type)


arg_max, arg_min = argmax, argmin


def add_n(inputs, name=None):
    if not inputs or not isinstance(inputs, (list, tuple)):
        raise ValueError("inputs must be a list of at least one "
                         "Tensor/IndexedSlices with the same dtype and shape")
    tensors = ops.convert_n_to_tensor(inputs)
    types = [t.dtype.base_dtype for t in tensors]
    if any(t != types[0] for t in types):
        raise TypeError(
            "Tensors in list passed to 'inputs' of 'AddN' Op have types [%s] "
            "that don't all match." % ", ".join(t.name for t in types))
    if len(tensors) == 1:
        if name:
            return array_ops.identity(tensors[0], name=name)
        return tensors[0]
    return apply_op("AddN", name, inputs=tensors)


def accumulate_n(inputs, shape=None, tensor_dtype=None, name=None):
    return add_n(inputs, name)


def matmul(a, b, transpose_a=False, transpose_b=False, adjoint_a=False,
           adjoint_b=False, a_is_sparse=False, b_is_sparse=False, name=None):
    with ops.name_scope(name, "MatMul", [a, b]) as scope:
        a = ops.convert_to_tensor(a, name="a")
        b = ops.convert_to_tensor(b, dtype=a.dtype.base_dtype, name="b")
        transpose_a = transpose_a or adjoint_a
        transpose_b = transpose_b or adjoint_b
        if a.shape.ndims is not None and a.shape.ndims > 2 or \
                b.shape.ndims is not None and b.shape.ndims > 2:
            return apply_op("BatchMatMulV2", scope, x=a, y=b,
                            adj_x=transpose_a, adj_y=transpose_b)
        return apply_op("MatMul", scope, a=a, b=b, transpose_a=transpose_a,
                        transpose_b=transpose_b)


_binary_operator(matmul, "matmul")


def batch_matmul(x, y, adj_x=False, adj_y=False, name=None):
    return matmul(x, y, adjoint_a=adj_x, adjoint_b=adj_y, name=name)


def tensordot(a, b, axes, name=None):
    raise NotImplementedError("tf.tensordot is not provided yet")


def cumsum(x, axis=0, exclusive=False, reverse=False, name=None):
    with ops.name_scope(name, "Cumsum", [x]) as scope:
        x = ops.convert_to_tensor(x, name="x")
        return apply_op("Cumsum", scope, x=x, axis=axis, exclusive=exclusive,
                        reverse=reverse)


def unsorted_segment_sum(data, segment_ids, num_segments, name=None):
    return apply_op("UnsortedSegmentSum", name, data=data,
                    segment_ids=segment_ids, num_segments=num_segments)


def segment_sum(data, segment_ids, name=None):
    return apply_op("SegmentSum", name, data=data, segment_ids=segment_ids)


def _sparse_segment(op_type):
    def function(data, indices, segment_ids, name=None, num_segments=None):
        if num_segments is not None:
            return apply_op(op_type + "WithNumSegments", name, data=data,
                            indices=indices, segment_ids=segment_ids,
                            num_segments=num_segments)
        return apply_op(op_type, name, data=data, indices=indices,
                        segment_ids=segment_ids)
    return function


sparse_segment_sum = _sparse_segment("SparseSegmentSum")
sparse_segment_mean = _sparse_segment("SparseSegmentMean")
sparse_segment_sqrt_n = _sparse_segment("SparseSegmentSqrtN")


def l2_loss(t, name=None):
    return apply_op("L2Loss", name, t=t)


def _one_of(old, new, old_name, new_name):
    """What was given under the new or the old name of an argument."""
    if old is not None and new is not None:
        raise ValueError("Cannot specify both '%s' and '%s'" % (new_name,
                                                                old_name))
    return old if new is None else new


def reduce_logsumexp(input_tensor, axis=None, keepdims=None, name=None,
                     reduction_indices=None, keep_dims=None):
    axis = _one_of(reduction_indices, axis, "reduction_indices", "axis")
    keepdims = bool(_one_of(keep_dims, keepdims, "keep_dims", "keepdims"))
    with ops.name_scope(name, "ReduceLogSumExp", [input_tensor]):
        highest = reduce_max(input_tensor, axis=axis, keepdims=True)
        shift = array_ops.stop_gradient(array_ops.where(
            is_finite(highest), highest, array_ops.zeros_like(highest)))
        result = log(reduce_sum(exp(subtract(input_tensor, shift)), axis,
                                keepdims=keepdims))
        if not keepdims:
            shift = array_ops.reshape(shift, array_ops.shape(result))
        return add(result, shift)


def count_nonzero(input_tensor=None, axis=None, keepdims=None,
                  dtype=dtypes.int64, name=None, reduction_indices=None,
                  keep_dims=None, input=None):
    x = _one_of(input_tensor, input, "input_tensor", "input")
    axis = _one_of(reduction_indices, axis, "reduction_indices", "axis")
    keepdims = _one_of(keep_dims, keepdims, "keep_dims", "keepdims")
    with ops.name_scope(name, "count_nonzero", [x]):
        x = ops.convert_to_tensor(x, name="input")
        zero = array_ops.zeros([], dtype=x.dtype.base_dtype)
        return cast(reduce_sum(cast(not_equal(x, zero), dtypes.int64),
                               axis=axis, keepdims=keepdims), dtype)


def _slices_to_tensor(value, dtype=None, name=None, as_ref=False):
    """The rows of slices, summed into a tensor of their dense shape."""
    if dtype is not None and not dtype.is_compatible_with(value.dtype):
        raise ValueError(
            "Tensor conversion requested dtype %s for IndexedSlices with "
            "dtype %s" % (dtype.name, value.dtype.name))
    if value.dense_shape is None:
        raise ValueError(
            "Tensor conversion requested for IndexedSlices without "
            "dense_shape: %s" % value)
    return unsorted_segment_sum(value.values, value.indices,
                                value.dense_shape[0], name=name)


ops.register_tensor_conversion_function(ops.IndexedSlices, _slices_to_tensor)
