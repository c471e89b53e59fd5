"""Functions on the shape and layout of tensors."""

import operator

from sluice.platform.lazy_numpy import np

from sluice.framework import constant_op
from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework import sparse_tensor
from sluice.framework import tensor_shape
from sluice.framework.op_builder import apply_op, build

newaxis = None


def identity(input, name=None):
    return apply_op("Identity", name, input=input)


def stop_gradient(input, name=None):
    return apply_op("StopGradient", name, input=input)


def placeholder(dtype, shape=None, name=None):
    try:
        dtype = dtypes.as_dtype(dtype)
    except TypeError:
        raise TypeError("Expected DataType for argument 'dtype' not %r." %
                        (dtype,)) from None
    op = ops.get_default_graph()._add_op(
        "Placeholder", name or "Placeholder", [],
        {"dtype": int(dtype),
         "shape": tensor_shape.as_shape(shape)._core()})
    return op.outputs[0]


def sparse_placeholder(dtype, shape=None, name=None):
    def named(part):
        return None if name is None else name + "/" + part
    if shape is None:
        shape = placeholder(dtypes.int64, shape=[None], name=named("shape"))
    else:
        shape = ops.convert_to_tensor(
            tensor_shape.as_shape(shape).as_list() if not isinstance(
                shape, ops.Tensor) else shape,
            dtype=dtypes.int64, name=named("shape"))
    return sparse_tensor.SparseTensor(
        values=placeholder(dtype, shape=[None], name=named("values")),
        indices=placeholder(dtypes.int64, shape=[None, None],
                            name=named("indices")),
        dense_shape=shape)


def placeholder_with_default(input, shape, name=None):
    return apply_op("PlaceholderWithDefault", name, input=input,
                    shape=tensor_shape.as_shape(shape))


def shape(input, name=None, out_type=dtypes.int32):
    with ops.name_scope(name, "Shape", [input]) as scope:
        input = ops.convert_to_tensor(input)
        static = input.shape
        if static.is_fully_defined():
            return constant_op.constant(static.as_list(), out_type,
                                        name=scope)
        return apply_op("Shape", scope, input=input, out_type=out_type)


def shape_n(input, out_type=dtypes.int32, name=None):
    return apply_op("ShapeN", name, input=input, out_type=out_type)


def size(input, name=None, out_type=dtypes.int32):
    with ops.name_scope(name, "Size", [input]) as scope:
        input = ops.convert_to_tensor(input)
        static = input.shape
        if static.is_fully_defined():
            return constant_op.constant(static.num_elements(), out_type,
                                        name=scope)
        return apply_op("Size", scope, input=input, out_type=out_type)


def rank(input, name=None):
    with ops.name_scope(name, "Rank", [input]) as scope:
        input = ops.convert_to_tensor(input)
        if input.shape.ndims is not None:
            return constant_op.constant(input.shape.ndims, dtypes.int32,
                                        name=scope)
        return apply_op("Rank", scope, input=input)


def reshape(tensor, shape, name=None):
    return apply_op("Reshape", name, tensor=tensor, shape=shape)


def expand_dims(input, axis=None, name=None, dim=None):
    axis = dim if axis is None else axis
    if axis is None:
        raise ValueError("Must specify an axis argument to tf.expand_dims()")
    return apply_op("ExpandDims", name, input=input, dim=axis)


def squeeze(input, axis=None, name=None, squeeze_dims=None):
    axis = squeeze_dims if axis is None else axis
    if axis is not None and not isinstance(axis, (list, tuple)):
        axis = [axis]
    return apply_op("Squeeze", name, input=input,
                    squeeze_dims=axis if axis is not None else [])


def fill(dims, value, name=None):
    return apply_op("Fill", name, dims=dims, value=value)


def _dims_known(shape):
    if isinstance(shape, ops.Tensor):
        return None
    try:
        dims = tensor_shape.as_shape(shape)
    except (TypeError, ValueError):
        return None
    return dims.as_list() if dims.is_fully_defined() else None


def _filled(value, shape, dtype, name):
    if not isinstance(shape, ops.Tensor):
        dims = _dims_known(shape)
        # Small ones are constants, as in TensorFlow.
        if dims is not None and int(np.prod(dims, dtype=np.int64)) < 1000:
            return constant_op.constant(value, shape=dims, dtype=dtype,
                                        name=name)
        if dims is not None:
            shape = constant_op.constant(dims, dtypes.int32,
                                         name="shape_as_tensor")
        else:
            shape = ops.convert_to_tensor(shape, dtype=dtypes.int32)
    if not shape.shape._dims:
        shape = reshape(shape, [-1])
    return fill(shape, constant_op.constant(value, dtype=dtype), name=name)


def zeros(shape, dtype=dtypes.float32, name=None):
    dtype = dtypes.as_dtype(dtype).base_dtype
    zero = False if dtype == dtypes.bool_ else (
        "" if dtype == dtypes.string else 0)
    with ops.name_scope(name, "zeros", [shape]) as scope:
        return _filled(zero, shape, dtype, scope)


def ones(shape, dtype=dtypes.float32, name=None):
    dtype = dtypes.as_dtype(dtype).base_dtype
    one = True if dtype == dtypes.bool_ else 1
    with ops.name_scope(name, "ones", [shape]) as scope:
        return _filled(one, shape, dtype, scope)


def zeros_like(tensor, dtype=None, name=None, optimize=True):
    with ops.name_scope(name, "zeros_like", [tensor]) as scope:
        tensor = ops.convert_to_tensor(tensor, name="tensor")
        wanted = tensor.dtype.base_dtype if dtype is None else \
            dtypes.as_dtype(dtype)
        if optimize and tensor.shape.is_fully_defined() and \
                tensor.dtype != dtypes.variant:
            return zeros(tensor.shape, dtype=wanted, name=scope)
        if wanted != tensor.dtype.base_dtype:
            return zeros(shape(tensor), dtype=wanted, name=scope)
        return apply_op("ZerosLike", scope, x=tensor)


def ones_like(tensor, dtype=None, name=None, optimize=True):
    with ops.name_scope(name, "ones_like", [tensor]) as scope:
        tensor = ops.convert_to_tensor(tensor, name="tensor")
        wanted = tensor.dtype.base_dtype if dtype is None else \
            dtypes.as_dtype(dtype)
        return ones(shape(tensor), dtype=wanted, name=scope)


def concat(values, axis, name="concat"):
    # Before 1.0 the axis came first.
    if isinstance(values, int) or (
            isinstance(values, ops.Tensor) and values.shape.ndims == 0 and
            values.dtype.is_integer):
        values, axis = axis, values
    if not isinstance(values, (list, tuple)):
        values = [values]
    if len(values) == 1:
        with ops.name_scope(name) as scope:
            ops.convert_to_tensor(axis, name="concat_dim",
                                  dtype=dtypes.int32)
            return identity(values[0], name=name)
    return apply_op("ConcatV2", name, values=list(values), axis=axis)


def stack(values, axis=0, name="stack"):
    if axis == 0:
        try:
            return ops.convert_to_tensor(values, name=name)
        except (TypeError, ValueError):
            pass
    return apply_op("Pack", name, values=list(values), axis=axis)


def _pack_mixed(value, dtype, name):
    """A list that holds tensors: packed, level by level."""
    if dtype is None:
        dtype = _find_dtype(value)
    with ops.name_scope(name) as scope:
        return _pack_level(value, dtype, scope)


def _find_dtype(value):
    for v in ops._flat(value):
        if isinstance(v, ops.Tensor):
            return v.dtype.base_dtype
        if hasattr(v, "_as_graph_element"):
            return v.dtype.base_dtype
    return None


def _pack_level(values, dtype, scope):
    items = []
    mixed = False
    for i, v in enumerate(values):
        if isinstance(v, ops.Tensor):
            mixed = True
            items.append(v)
        elif isinstance(v, (list, tuple)) and constant_op._is_tensor_in(v):
            mixed = True
            items.append(_pack_level(v, dtype, str(i)))
        elif hasattr(v, "_as_graph_element"):
            mixed = True
            items.append(ops.convert_to_tensor(v))
        else:
            items.append(v)
    if not mixed:
        return constant_op.constant(values, dtype=dtype, name=scope)
    tensors = [v if isinstance(v, ops.Tensor) else constant_op.constant(
        v, dtype=dtype, name=str(i)) for i, v in enumerate(items)]
    return apply_op("Pack", scope, values=tensors)


def unstack(value, num=None, axis=0, name="unstack"):
    if num is None:
        value = ops.convert_to_tensor(value)
        dims = value.shape
        if dims.ndims is not None:
            num = dims.as_list()[axis]
        if num is None:
            raise ValueError("Cannot infer num from shape %s" % dims)
    return apply_op("Unpack", name, value=value, num=num, axis=axis)


def split(value, num_or_size_splits, axis=0, num=None, name="split"):
    # Before 1.0: split(split_dim, num_split, value).
    if isinstance(value, int) and isinstance(num_or_size_splits, int):
        value, axis = axis, value
    # A number becomes a constant, too, which nothing uses.
    sizes = ops.convert_to_tensor(num_or_size_splits)
    if isinstance(num_or_size_splits, int):
        return apply_op("Split", name, split_dim=axis, value=value,
                        num_split=num_or_size_splits)
    if num is None:
        num = sizes.shape.as_list()[0]
        if num is None:
            raise ValueError("Cannot infer num from shape %s" %
                             num_or_size_splits)
    return apply_op("SplitV", name, value=value, size_splits=sizes,
                    split_dim=axis, num_split=num)


def transpose(a, perm=None, name="transpose", conjugate=False):
    with ops.name_scope(name, "transpose", [a]) as scope:
        a = ops.convert_to_tensor(a)
        if perm is None:
            if a.shape.ndims is not None:
                perm = np.arange(a.shape.ndims - 1, -1, -1, dtype=np.int32)
            else:
                from sluice.ops import math_ops
                r = rank(a)
                perm = (r - 1) - math_ops.range(0, r, 1)
        op_type = "ConjugateTranspose" if conjugate and a.dtype.is_complex \
            else "Transpose"
        return apply_op(op_type, scope, x=a, perm=perm)


def slice(input_, begin, size, name=None):
    return apply_op("Slice", name, input=input_, begin=begin, size=size)


def strided_slice(input_, begin, end, strides=None, begin_mask=0, end_mask=0,
                  ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0,
                  var=None, name=None):
    if strides is None:
        strides = ones_like(begin)
    arguments = dict(begin=begin, end=end, strides=strides,
                     begin_mask=begin_mask, end_mask=end_mask,
                     ellipsis_mask=ellipsis_mask, new_axis_mask=new_axis_mask,
                     shrink_axis_mask=shrink_axis_mask)
    result = apply_op("StridedSlice", name, input=input_, **arguments)

    def assign(value, name=None):
        if var is None:
            raise ValueError(
                "Sliced assignment is only supported for variables")
        return var._assign_slice(value, name or scope + "_assign",
                                 **arguments)

    scope = name or result.op.name
    result.assign = assign
    return result


def _getitem(tensor, key, var=None):
    keys = key if isinstance(key, (list, tuple)) else [key]
    begin, end, strides = [], [], []
    begin_mask = end_mask = ellipsis = new_axis = shrink = 0
    for i, s in enumerate(keys):
        if isinstance(s, type(np.s_[:])):
            begin.append(0 if s.start is None else s.start)
            end.append(0 if s.stop is None else s.stop)
            strides.append(1 if s.step is None else s.step)
            begin_mask |= (s.start is None) << i
            end_mask |= (s.stop is None) << i
        elif s is Ellipsis:
            begin.append(0)
            end.append(0)
            strides.append(1)
            ellipsis |= 1 << i
        elif s is None:
            begin.append(0)
            end.append(0)
            strides.append(1)
            new_axis |= 1 << i
        else:
            if isinstance(s, tensor_shape.Dimension):
                s = s.value
            if not isinstance(s, (int, np.integer, ops.Tensor)) or \
                    isinstance(s, bool):
                raise TypeError(
                    "Only integers, slices (`:`), ellipsis (`...`), "
                    "tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors "
                    "are valid indices, got %r" % (s,))
            begin.append(s)
            end.append(s + 1)
            strides.append(1)
            shrink |= 1 << i
    with ops.name_scope(None, "strided_slice", [tensor] + begin + end) as name:
        if begin:
            parts = [stack(begin, name="stack"), stack(end, name="stack_1"),
                     stack(strides, name="stack_2")]
        else:
            parts = [constant_op.constant([], dtypes.int32)] * 3
        return strided_slice(tensor, parts[0], parts[1], parts[2],
                             begin_mask, end_mask, ellipsis, new_axis, shrink,
                             var=var, name=name)


ops.Tensor._override_operator("__getitem__", _getitem)


def tile(input, multiples, name=None):
    return apply_op("Tile", name, input=input, multiples=multiples)


def pad(tensor, paddings, mode="CONSTANT", name=None, constant_values=0):
    if mode.upper() != "CONSTANT":
        return apply_op("MirrorPad", name, input=tensor, paddings=paddings,
                        mode=mode.upper())
    if not isinstance(constant_values, ops.Tensor) and constant_values == 0:
        return apply_op("Pad", name, input=tensor, paddings=paddings)
    return apply_op("PadV2", name, input=tensor, paddings=paddings,
                    constant_values=constant_values)


def gather(params, indices, validate_indices=None, name=None, axis=None,
           batch_dims=0):
    if axis is None:
        axis = batch_dims
    if hasattr(params, "sparse_read") and not batch_dims and axis == 0:
        return params.sparse_read(indices, name=name)
    return apply_op("GatherV2", name, params=params, indices=indices,
                    axis=axis, batch_dims=batch_dims)


def gather_nd(params, indices, name=None, batch_dims=0):
    batch_dims = operator.index(batch_dims)
    if batch_dims:
        return _batch_gather_nd(params, indices, batch_dims, name)
    return apply_op("GatherNd", name, params=params, indices=indices)


def _batch_gather_nd(params, indices, batch_dims, name):
    """Each index is preceded by the place in the batch where it stands."""
    from sluice.ops import math_ops
    with ops.name_scope(name, "BatchGatherND", [params, indices]) as scope:
        params = ops.convert_to_tensor(params, name="params")
        indices = ops.convert_to_tensor(indices, name="indices")
        _check_batch_dims(batch_dims, params.shape.ndims, indices.shape.ndims)
        index_type = indices.dtype.base_dtype
        sizes = shape(indices, out_type=index_type)
        depth = rank(indices)
        # What stands in one entry of the batch has the same place in it.
        inner = ones([depth - batch_dims - 1], index_type)
        places = []
        for i in range(batch_dims):
            outer = [1] * i + [-1] + [1] * (batch_dims - i - 1)
            place = reshape(math_ops.range(sizes[i]), concat(
                [constant_op.constant(outer, index_type), inner, [1]], 0))
            places.append(tile(place, concat(
                [sizes[:i], [1], sizes[i + 1:-1], [1]], 0)))
        return apply_op("GatherNd", scope, params=params,
                        indices=concat(places + [indices], -1))


def _check_batch_dims(batch_dims, params_rank, indices_rank):
    if batch_dims < 0:
        raise ValueError("batch_dims = %d must not be negative" % batch_dims)
    if indices_rank is not None and batch_dims >= indices_rank:
        raise ValueError("batch_dims = %d must be less than rank(indices) = "
                         "%d" % (batch_dims, indices_rank))
    if params_rank is not None and batch_dims >= params_rank:
        raise ValueError("batch_dims = %d must be less than rank(params) = "
                         "%d" % (batch_dims, params_rank))


def one_hot(indices, depth, on_value=None, off_value=None, axis=None,
            dtype=None, name=None):
    with ops.name_scope(name, "one_hot", [indices, depth]) as scope:
        if dtype is None:
            found = [ops.convert_to_tensor(v).dtype.base_dtype
                     for v in (on_value, off_value) if v is not None]
            if len(found) == 2 and found[0] != found[1]:
                raise TypeError(
                    "dtype %s of on_value does not match dtype %s of "
                    "off_value" % tuple(found))
            dtype = found[0] if found else None
        dtype = dtypes.as_dtype(dtype or dtypes.float32)
        if on_value is None:
            on_value = ops.convert_to_tensor(1, dtype, name="on_value")
        if off_value is None:
            off_value = ops.convert_to_tensor(0, dtype, name="off_value")
        return apply_op("OneHot", scope, indices=indices, depth=depth,
                        on_value=on_value, off_value=off_value,
                        axis=-1 if axis is None else axis)


def where(condition, x=None, y=None, name=None):
    if x is None and y is None:
        condition = ops.convert_to_tensor(condition, dtype=dtypes.bool_,
                                          name="condition")
        return apply_op("Where", name, input=condition)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return apply_op("Select", name, condition=condition, t=x, e=y)


select = where


def where_v2(condition, x=None, y=None, name=None):
    """As `where`, but condition, x and y are broadcast."""
    if x is None and y is None:
        return where(condition, name=name)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return apply_op("SelectV2", name, condition=condition, t=x, e=y)


def boolean_mask(tensor, mask, name="boolean_mask", axis=None):
    with ops.name_scope(name, values=[tensor, mask]):
        tensor = ops.convert_to_tensor(tensor, name="tensor")
        mask = ops.convert_to_tensor(mask, name="mask")
        rank = mask.shape.ndims
        axis = 0 if axis is None else axis
        if rank is None:
            raise ValueError(
                "Number of mask dimensions must be specified, even if some "
                "dimensions are None.  E.g. shape=[None] is ok, but "
                "shape=None is not.")
        if rank == 0:
            raise ValueError("mask cannot be scalar.")
        from sluice.ops import math_ops
        leading = math_ops.reduce_prod(shape(tensor)[axis:axis + rank], [0])
        tensor = reshape(tensor, concat(
            [shape(tensor)[:axis], [leading], shape(tensor)[axis + rank:]],
            0))
        flat = reshape(mask, [-1])
        return gather(tensor, squeeze(where(flat), axis=[1]), axis=axis)


def unique(x, out_idx=dtypes.int32, name=None):
    return apply_op("Unique", name, x=x, out_idx=out_idx)


def setdiff1d(x, y, index_dtype=dtypes.int32, name=None):
    return apply_op("ListDiff", name, x=x, y=y, out_idx=index_dtype)


listdiff = setdiff1d


def reverse(tensor, axis, name=None):
    if isinstance(axis, (list, tuple)) and axis and all(
            isinstance(a, bool) for a in axis):
        axis = [i for i, flip in enumerate(axis) if flip]
    return apply_op("ReverseV2", name, tensor=tensor, axis=axis)


def broadcast_to(input, shape, name=None):
    return apply_op("BroadcastTo", name, input=input, shape=shape)


def invert_permutation(x, name=None):
    return apply_op("InvertPermutation", name, x=x)


def dynamic_partition(data, partitions, num_partitions, name=None):
    return apply_op("DynamicPartition", name, data=data,
                    partitions=partitions, num_partitions=num_partitions)


def dynamic_stitch(indices, data, name=None):
    return apply_op("DynamicStitch", name, indices=indices, data=data)


def parallel_stack(values, name="parallel_stack"):
    return stack(values, name=name)


def check_numerics(tensor, message, name=None):
    return apply_op("CheckNumerics", name, tensor=tensor, message=message)


def no_op(name=None):
    return build("NoOp", name)


def meshgrid(*args, **kwargs):
    raise NotImplementedError("tf.meshgrid is not provided yet")


pack = stack
unpack = unstack
