"""Types of tensors."""

from sluice.platform.lazy_numpy import np

_NAMES = {
    1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8",
    7: "string", 8: "complex64", 9: "int64", 10: "bool", 11: "qint8",
    12: "quint8", 13: "qint32", 14: "bfloat16", 15: "qint16", 16: "quint16",
    17: "uint16", 18: "complex128", 19: "float16", 20: "resource",
    21: "variant", 22: "uint32", 23: "uint64",
}
# The names NumPy has for them where they differ, or for the nearest it has.
_NUMPY = {
    7: "object_", 10: "bool_", 11: "int8", 12: "uint8", 13: "int32",
    14: "uint16", 15: "int16", 16: "uint16", 20: "object_", 21: "object_",
}


class DType(object):
    """The type of a tensor's elements. There is one object per type."""

    __slots__ = ("_type", "_name")

    def __init__(self, type_enum):
        self._type = type_enum
        base = type_enum - 100 if type_enum > 100 else type_enum
        self._name = _NAMES[base] + ("_ref" if type_enum > 100 else "")

    @property
    def _numpy(self):
        base = self.base_dtype
        return getattr(np, _NUMPY.get(base._type, base._name))

    @property
    def _is_ref_dtype(self):
        return self._type > 100

    @property
    def _as_ref(self):
        return self if self._is_ref_dtype else _ALL[self._type + 100]

    @property
    def base_dtype(self):
        return _ALL[self._type - 100] if self._type > 100 else self

    @property
    def real_dtype(self):
        base = self.base_dtype
        return {complex64: float32, complex128: float64}.get(base, self)

    @property
    def is_numpy_compatible(self):
        return self.base_dtype._type not in (20, 21)

    @property
    def as_numpy_dtype(self):
        return self._numpy

    @property
    def as_datatype_enum(self):
        return self._type

    @property
    def is_bool(self):
        return self.base_dtype is bool_

    @property
    def is_integer(self):
        return (self.is_numpy_compatible and not self.is_quantized and
                self.base_dtype is not bfloat16 and
                np.issubdtype(self._numpy, np.integer))

    @property
    def is_floating(self):
        return self.base_dtype in (float16, float32, float64, bfloat16)

    @property
    def is_complex(self):
        return self.base_dtype in (complex64, complex128)

    @property
    def is_quantized(self):
        return self.base_dtype._type in (11, 12, 13, 15, 16)

    @property
    def is_unsigned(self):
        return self.base_dtype._type in (4, 17, 22, 23)

    @property
    def min(self):
        if self.is_floating:
            return np.finfo(self._numpy).min
        return np.iinfo(self._numpy).min

    @property
    def max(self):
        if self.is_floating:
            return np.finfo(self._numpy).max
        return np.iinfo(self._numpy).max

    @property
    def limits(self):
        if self.is_integer:
            return self.min, self.max
        return 0, 1

    @property
    def size(self):
        if self.base_dtype._type in (7, 20, 21):
            return 1
        return np.dtype(self._numpy).itemsize

    def is_compatible_with(self, other):
        other = as_dtype(other)
        return self._type in (other._type, other.base_dtype._type)

    @property
    def name(self):
        return self._name

    def __int__(self):
        return self._type

    def __str__(self):
        return "<dtype: %r>" % self._name

    def __repr__(self):
        return "tf." + self._name

    def __hash__(self):
        return self._type

    def __eq__(self, other):
        if other is self:
            return True
        if other is None:
            return False
        try:
            return self._type == as_dtype(other)._type
        except TypeError:
            return False

    def __ne__(self, other):
        return not self == other

    def __reduce__(self):
        return as_dtype, (self._name,)


_ALL = {}
for _number in _NAMES:
    _ALL[_number] = DType(_number)
    _ALL[_number + 100] = DType(_number + 100)

float32 = _ALL[1]
float64 = double = _ALL[2]
int32 = _ALL[3]
uint8 = _ALL[4]
int16 = _ALL[5]
int8 = _ALL[6]
string = _ALL[7]
complex64 = _ALL[8]
int64 = _ALL[9]
bool_ = _ALL[10]
qint8 = _ALL[11]
quint8 = _ALL[12]
qint32 = _ALL[13]
bfloat16 = _ALL[14]
qint16 = _ALL[15]
quint16 = _ALL[16]
uint16 = _ALL[17]
complex128 = _ALL[18]
float16 = half = _ALL[19]
resource = _ALL[20]
variant = _ALL[21]
uint32 = _ALL[22]
uint64 = _ALL[23]
float32_ref = _ALL[101]

_BY_NAME = {t.name: t for t in _ALL.values()}
_BY_NAME.update({"float": float32, "double": float64, "half": float16,
                 "float_ref": _ALL[101]})
_BY_PYTHON = {float: float32, bool: bool_, int: int64, str: string,
              bytes: string}


def as_dtype(value):
    """The DType for a DType, its number or name, or a NumPy or Python type."""
    if isinstance(value, DType):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        found = _ALL.get(value)
        if found is not None:
            return found
    elif isinstance(value, str):
        found = _BY_NAME.get(value)
        if found is not None:
            return found
    try:
        python = _BY_PYTHON.get(value)
    except TypeError:
        python = None
    if python is not None:
        return python
    try:
        array_type = np.dtype(value)
    except TypeError:
        raise TypeError("Cannot convert value %r to a TensorFlow DType." %
                        (value,)) from None
    if array_type.kind in "SUO":
        return string
    found = _BY_NAME.get(array_type.name)
    if found is None:
        raise TypeError("Cannot convert value %r to a TensorFlow DType." %
                        (value,))
    return found
