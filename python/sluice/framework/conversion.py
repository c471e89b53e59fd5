"""What a tensor can be made of."""

from sluice.framework import dtypes
from sluice.framework.indexed_slices import IndexedSlices
from sluice.framework.operation import Tensor

_converters = []  # (type, function, priority), sorted by priority.


def register_tensor_conversion_function(base_type, conversion_func,
                                        priority=100):
    types = base_type if isinstance(base_type, tuple) else (base_type,)
    if not all(isinstance(t, type) for t in types):
        raise TypeError("base_type must be a type or a tuple of types.")
    if not callable(conversion_func):
        raise TypeError("conversion_func must be callable.")
    _converters.append((base_type, conversion_func, priority))
    _converters.sort(key=lambda entry: entry[2])


def internal_convert_to_tensor(value, dtype=None, name=None, as_ref=False,
                               preferred_dtype=None):
    if isinstance(value, Tensor):
        if dtype is not None:
            wanted = dtypes.as_dtype(dtype)
            if not wanted.is_compatible_with(value.dtype) and \
                    not wanted.base_dtype.is_compatible_with(
                        value.dtype.base_dtype):
                raise ValueError(
                    "Tensor conversion requested dtype %s for Tensor with "
                    "dtype %s: %r" % (wanted.name, value.dtype.name, value))
        return value
    if dtype is not None:
        dtype = dtypes.as_dtype(dtype)
    for base_type, function, _ in _converters:
        if isinstance(value, base_type):
            result = NotImplemented
            if dtype is None and preferred_dtype is not None:
                try:
                    result = function(
                        value, dtype=dtypes.as_dtype(preferred_dtype),
                        name=name, as_ref=as_ref)
                except (TypeError, ValueError):
                    result = NotImplemented
            if result is NotImplemented:
                result = function(value, dtype=dtype, name=name, as_ref=as_ref)
            if result is not NotImplemented:
                return result
    from sluice.framework import constant_op
    if dtype is None and preferred_dtype is not None:
        try:
            return constant_op.constant(value, dtype=preferred_dtype,
                                        name=name)
        except (TypeError, ValueError):
            pass
    return constant_op.constant(value, dtype=dtype, name=name or "Const")


def convert_to_tensor(value, dtype=None, name=None, preferred_dtype=None,
                      dtype_hint=None):
    return internal_convert_to_tensor(value, dtype, name, False,
                                      dtype_hint or preferred_dtype)


def convert_n_to_tensor(values, dtype=None, name=None, as_ref=False,
                        preferred_dtype=None):
    return [internal_convert_to_tensor(
        v, dtype, None if name is None else "%s_%d" % (name, i), as_ref,
        preferred_dtype) for i, v in enumerate(values)]


def convert_to_tensor_or_indexed_slices(value, dtype=None, name=None):
    if isinstance(value, IndexedSlices) or value is None:
        return value
    return convert_to_tensor(value, dtype, name)


def is_dense_tensor_like(value):
    return isinstance(value, Tensor) or hasattr(value, "_as_graph_element")
