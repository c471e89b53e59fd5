"""Constants, and what is known of a tensor before a run."""

from sluice.platform.lazy_numpy import np

from sluice import _sluice
from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework import tensor_shape


def _is_tensor_in(value):
    if isinstance(value, (list, tuple)):
        return any(_is_tensor_in(v) for v in value)
    return isinstance(value, ops.Tensor) or hasattr(value,
                                                    "_as_graph_element")


def _all_text(value):
    if isinstance(value, (list, tuple)):
        return all(_all_text(v) for v in value)
    return isinstance(value, (str, bytes, np.ndarray, np.generic))


def _python_type_ok(value, dtype):
    """Whether Python values may become `dtype`, as strict as TensorFlow."""
    if isinstance(value, (list, tuple)):
        return all(_python_type_ok(v, dtype) for v in value)
    if isinstance(value, (np.ndarray, np.generic)):
        return True
    if dtype.is_floating or dtype.is_complex:
        return isinstance(value, (int, float, complex)) and not isinstance(
            value, bool) or isinstance(value, tensor_shape.Dimension)
    if dtype.is_integer or dtype.is_quantized:
        return isinstance(value, (int, tensor_shape.Dimension)) and \
            not isinstance(value, bool)
    if dtype is dtypes.string:
        return isinstance(value, (str, bytes))
    if dtype is dtypes.bool_:
        return isinstance(value, (bool, np.bool_))
    return True


def _bad_leaf(value, dtype):
    """The first value that cannot become `dtype`."""
    while isinstance(value, (list, tuple)) and value:
        value = next(v for v in value if not _python_type_ok(v, dtype))
    return value


def _check_dense(value):
    """Lists must be as deep and as long everywhere."""
    wanted = []
    level = value
    while isinstance(level, (list, tuple)):
        wanted.append(len(level))
        level = level[0] if level else None
    def check(part, shape):
        if not isinstance(part, (list, tuple)) or not shape:
            return not isinstance(part, (list, tuple)) and not shape
        return len(part) == shape[0] and all(check(p, shape[1:])
                                             for p in part)
    if not check(value, wanted):
        raise ValueError(
            "Argument must be a dense tensor: %s - got shape %s, but wanted "
            "%s." % (value, wanted[:1], wanted))


def _not_convertible(value):
    return TypeError(
        "Failed to convert object of type %s to Tensor. Contents: %s. "
        "Consider casting elements to a supported type." %
        (type(value), value))


def _plain(value):
    if isinstance(value, tensor_shape.TensorShape):
        return [_plain(d) for d in value.as_list()]
    if isinstance(value, tensor_shape.Dimension):
        return value.value
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value


def _bfloat16_bits(value):
    """NumPy has no bfloat16: its bits, rounded to the nearest even."""
    bits = np.asarray(value, dtype=np.float32).view(np.uint32)
    rounded = (bits + (0x7fff + ((bits >> 16) & 1))) >> 16
    return np.where(np.isnan(bits.view(np.float32)), 0x7fc0,
                    rounded).astype(np.uint16)


def to_array(value, dtype=None):
    """`value` as an array of the type a constant of it would have."""
    value = _plain(value)
    if dtype is dtypes.bfloat16 and not (
            isinstance(value, np.ndarray) and value.dtype == np.uint16):
        return _bfloat16_bits(value)
    if isinstance(value, np.ndarray) or isinstance(value, np.generic):
        array = np.asarray(value)
        if dtype is not None and dtype is not dtypes.string:
            array = array.astype(dtype.as_numpy_dtype, copy=False)
    else:
        if value is None:
            raise ValueError("None values not supported.")
        if dtype is not None and not _python_type_ok(value, dtype):
            leaf = _bad_leaf(value, dtype)
            raise TypeError(
                "Expected %s, got %r of type '%s' instead." %
                (dtype.name, leaf, type(leaf).__name__))
        if isinstance(value, (list, tuple)):
            _check_dense(value)
        if dtype is None or dtype is dtypes.string:
            array = np.array(value)
            if array.dtype.kind in "US" and not _all_text(value):
                raise _not_convertible(value)
        else:
            try:
                array = np.array(value, dtype=dtype.as_numpy_dtype)
            except OverflowError as e:
                raise ValueError(str(e)) from None
        if dtype is None:
            if array.dtype == np.float64:
                array = array.astype(np.float32)
            elif array.dtype == np.int64 and array.size and \
                    np.iinfo(np.int32).min <= array.min() and \
                    array.max() <= np.iinfo(np.int32).max:
                array = array.astype(np.int32)
            elif array.dtype == np.int64 and not array.size:
                array = array.astype(np.int32)
    if array.dtype.kind in "US" or (dtype is dtypes.string and
                                    array.dtype.kind != "O"):
        flat = np.empty(array.shape, dtype=object)
        source = np.array(value, dtype=object) if not isinstance(
            value, np.ndarray) else array
        for index in np.ndindex(array.shape):
            item = source[index] if source.shape == array.shape else \
                array[index]
            flat[index] = item.encode() if isinstance(item, str) else bytes(
                item)
        array = flat
    elif array.dtype.kind == "O":
        if array.size and not all(isinstance(v, (str, bytes))
                                  for v in array.ravel()):
            raise _not_convertible(value)
    return np.require(array, requirements="C") if array.ndim else array


def _filling(array, wanted):
    """`array` in shape `wanted`; its last value stands for missing ones."""
    count = int(np.prod(wanted, dtype=np.int64))
    if count == 0 and array.size == 1:
        return array.ravel()[:0].reshape(wanted)
    if array.size > count:
        raise ValueError(
            "Too many elements provided. Needed at most %d, but received %d" %
            (count, array.size))
    flat = array.ravel()
    if array.size < count:
        flat = np.concatenate([flat, np.repeat(flat[-1:],
                                               count - array.size)])
    return flat.reshape(wanted)


def tensor_value(value, dtype=None, shape=None, verify_shape=False):
    """(engine tensor, dtype, how many values it was made of or 0 for all)."""
    dtype = None if dtype is None else dtypes.as_dtype(dtype).base_dtype
    array = to_array(value, dtype)
    found = dtype or dtypes.as_dtype(array.dtype)
    given = 0
    if shape is not None:
        wanted = tuple(int(d) for d in tensor_shape.as_shape(shape).as_list())
        if array.shape != wanted:
            if verify_shape:
                raise TypeError("Expected Tensor's shape: %s, got %s." %
                                (wanted, array.shape))
            full = _filling(array, wanted)
            given = array.size if array.size < full.size else 0
            array = full
    return _sluice.tensor_from_array(array, int(found)), found, given


def constant(value, dtype=None, shape=None, name="Const", verify_shape=False):
    graph = ops.get_default_graph()
    tensor, found, given = tensor_value(value, dtype, shape, verify_shape)
    op = graph._add_op("Const", name, [], {
        "value": (tensor, given) if given else tensor, "dtype": int(found)})
    return op.outputs[0]


def constant_value(tensor, partial=False):
    """The value of `tensor` as an array if it is known, else None."""
    if not isinstance(tensor, ops.Tensor):
        return tensor
    return tensor.graph._core.constant_value(tensor.op._id, tensor._index)


def constant_value_as_shape(tensor):
    if not isinstance(tensor, ops.Tensor):
        return tensor_shape.TensorShape(
            [None if d == -1 else d for d in tensor])
    return tensor_shape.TensorShape._of(
        tensor.graph._core.constant_value_as_shape(tensor.op._id,
                                                   tensor._index))


def _from_list(value, dtype=None, name=None, as_ref=False):
    if _is_tensor_in(value):
        from sluice.ops import array_ops
        return array_ops._pack_mixed(value, dtype, name or "packed")
    return constant(value, dtype=dtype, name=name or "Const")


def _from_shape(value, dtype=None, name=None, as_ref=False):
    if not value.is_fully_defined():
        raise ValueError("Cannot convert a partially known TensorShape to a "
                         "Tensor: %s" % value)
    dims = value.as_list()
    if dtype is None:
        dtype = dtypes.int64 if any(d > 2**31 - 1 for d in dims) else \
            dtypes.int32
    return constant(dims, dtype=dtype, name=name or "shape_as_tensor")


def _from_dimension(value, dtype=None, name=None, as_ref=False):
    if value.value is None:
        raise ValueError("Cannot convert an unknown Dimension to a Tensor: "
                         "%s" % value)
    return constant(value.value, dtype=dtype or dtypes.int32,
                    name=name or "shape_as_tensor")


ops.register_tensor_conversion_function((list, tuple), _from_list, 100)
ops.register_tensor_conversion_function(tensor_shape.TensorShape,
                                        _from_shape, 90)
ops.register_tensor_conversion_function(tensor_shape.Dimension,
                                        _from_dimension, 90)
