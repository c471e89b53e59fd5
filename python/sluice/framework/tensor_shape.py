"""Shapes that may be known only in part."""


class Dimension(object):
    """One size of a shape; its value is None when unknown."""

    __slots__ = ("_value",)

    def __init__(self, value):
        if isinstance(value, Dimension):
            value = value.value
        if value is None:
            self._value = None
            return
        self._value = int(value)
        if self._value < 0:
            raise ValueError("Dimension %d must be >= 0" % self._value)

    @property
    def value(self):
        return self._value

    def __repr__(self):
        return "Dimension(%s)" % self._value

    def __str__(self):
        return "?" if self._value is None else str(self._value)

    def __int__(self):
        return self._value

    def __index__(self):
        return self._value

    def __hash__(self):
        return hash(self._value)

    def __eq__(self, other):
        other = as_dimension_or_none(other)
        if other is None:
            return NotImplemented
        if self._value is None or other.value is None:
            return None
        return self._value == other.value

    def __ne__(self, other):
        equal = self == other
        return equal if equal in (None, NotImplemented) else not equal

    def is_compatible_with(self, other):
        other = as_dimension(other)
        return (self._value is None or other.value is None or
                self._value == other.value)

    def assert_is_compatible_with(self, other):
        if not self.is_compatible_with(other):
            raise ValueError("Dimensions %s and %s are not compatible" %
                             (self, other))

    def merge_with(self, other):
        other = as_dimension(other)
        self.assert_is_compatible_with(other)
        return Dimension(other.value if self._value is None else self._value)

    def _combine(self, other, f):
        try:
            other = as_dimension(other)
        except (TypeError, ValueError):
            return NotImplemented
        if self._value is None or other.value is None:
            return Dimension(None)
        return Dimension(f(self._value, other.value))

    def __add__(self, other):
        return self._combine(other, lambda a, b: a + b)

    def __radd__(self, other):
        return self._combine(other, lambda a, b: b + a)

    def __sub__(self, other):
        return self._combine(other, lambda a, b: a - b)

    def __rsub__(self, other):
        return self._combine(other, lambda a, b: b - a)

    def __mul__(self, other):
        return self._combine(other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __floordiv__(self, other):
        return self._combine(other, lambda a, b: a // b)

    def __rfloordiv__(self, other):
        return self._combine(other, lambda a, b: b // a)

    __div__ = __floordiv__

    def __mod__(self, other):
        return self._combine(other, lambda a, b: a % b)

    def _compare(self, other, f):
        other = as_dimension(other)
        if self._value is None or other.value is None:
            return None
        return f(self._value, other.value)

    def __lt__(self, other):
        return self._compare(other, lambda a, b: a < b)

    def __le__(self, other):
        return self._compare(other, lambda a, b: a <= b)

    def __gt__(self, other):
        return self._compare(other, lambda a, b: a > b)

    def __ge__(self, other):
        return self._compare(other, lambda a, b: a >= b)


def as_dimension(value):
    return value if isinstance(value, Dimension) else Dimension(value)


def as_dimension_or_none(value):
    try:
        return as_dimension(value)
    except (TypeError, ValueError):
        return None


class TensorShape(object):
    """The sizes of a tensor; rank and sizes may be unknown."""

    __slots__ = ("_dims",)

    def __init__(self, dims=None):
        if dims is None:
            self._dims = None
        elif isinstance(dims, TensorShape):
            self._dims = dims._dims
        elif hasattr(dims, "dim") and hasattr(dims, "unknown_rank"):
            self._dims = None if dims.unknown_rank else tuple(
                None if d.size < 0 else d.size for d in dims.dim)
        else:
            try:
                items = tuple(dims)
            except TypeError:
                items = (dims,)
            self._dims = tuple(as_dimension(d).value for d in items)

    @classmethod
    def _of(cls, dims):
        """From the engine's form: None, or a tuple with -1 for unknown."""
        shape = cls.__new__(cls)
        shape._dims = dims if dims is None else tuple(
            None if d < 0 else d for d in dims)
        return shape

    def _core(self):
        return None if self._dims is None else tuple(
            -1 if d is None else d for d in self._dims)

    @property
    def dims(self):
        if self._dims is None:
            return None
        return [Dimension(d) for d in self._dims]

    @property
    def ndims(self):
        return None if self._dims is None else len(self._dims)

    rank = ndims

    def __len__(self):
        if self._dims is None:
            raise ValueError(
                "Cannot take the length of shape with unknown rank.")
        return len(self._dims)

    def __bool__(self):
        return self._dims is not None

    __nonzero__ = __bool__

    def __iter__(self):
        if self._dims is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return iter([Dimension(d) for d in self._dims])

    def __getitem__(self, key):
        if self._dims is None:
            if isinstance(key, slice):
                return unknown_shape()
            return Dimension(None)
        if isinstance(key, slice):
            return TensorShape(self._dims[key])
        return Dimension(self._dims[key])

    def num_elements(self):
        if not self.is_fully_defined():
            return None
        total = 1
        for d in self._dims:
            total *= d
        return total

    def is_fully_defined(self):
        return self._dims is not None and None not in self._dims

    def assert_is_fully_defined(self):
        if not self.is_fully_defined():
            raise ValueError("Shape %s is not fully defined" % self)

    def is_compatible_with(self, other):
        other = as_shape(other)
        if self._dims is None or other._dims is None:
            return True
        return len(self._dims) == len(other._dims) and all(
            a is None or b is None or a == b
            for a, b in zip(self._dims, other._dims))

    def assert_is_compatible_with(self, other):
        if not self.is_compatible_with(other):
            raise ValueError("Shapes %s and %s are incompatible" %
                             (self, other))

    def merge_with(self, other):
        other = as_shape(other)
        if self._dims is None:
            return other
        if other._dims is None:
            return self
        if not self.is_compatible_with(other):
            raise ValueError("Shapes %s and %s are not compatible" %
                             (self, other))
        return TensorShape([b if a is None else a
                            for a, b in zip(self._dims, other._dims)])

    def concatenate(self, other):
        other = as_shape(other)
        if self._dims is None or other._dims is None:
            return unknown_shape()
        return TensorShape(self._dims + other._dims)

    def assert_same_rank(self, other):
        other = as_shape(other)
        if (self.ndims is not None and other.ndims is not None and
                self.ndims != other.ndims):
            raise ValueError("Shapes %s and %s must have the same rank" %
                             (self, other))

    def assert_has_rank(self, rank):
        if self.ndims not in (None, rank):
            raise ValueError("Shape %s must have rank %d" % (self, rank))

    def with_rank(self, rank):
        try:
            return self.merge_with(unknown_shape(ndims=rank))
        except ValueError:
            raise ValueError("Shape %s must have rank %d" %
                             (self, rank)) from None

    def with_rank_at_least(self, rank):
        if self.ndims is not None and self.ndims < rank:
            raise ValueError("Shape %s must have rank at least %d" %
                             (self, rank))
        return self

    def with_rank_at_most(self, rank):
        if self.ndims is not None and self.ndims > rank:
            raise ValueError("Shape %s must have rank at most %d" %
                             (self, rank))
        return self

    def as_list(self):
        if self._dims is None:
            raise ValueError("as_list() is not defined on an unknown "
                             "TensorShape.")
        return list(self._dims)

    def as_proto(self):
        from sluice.framework import protos
        if self._dims is None:
            return protos.TensorShapeProto(unknown_rank=True)
        return protos.TensorShapeProto(dim=[
            protos.TensorShapeProto.Dim(size=-1 if d is None else d)
            for d in self._dims])

    def __str__(self):
        if self._dims is None:
            return "<unknown>"
        if len(self._dims) == 1:
            return "(%s,)" % ("?" if self._dims[0] is None else self._dims[0])
        return "(%s)" % ", ".join("?" if d is None else str(d)
                                  for d in self._dims)

    def __repr__(self):
        if self._dims is None:
            return "TensorShape(None)"
        return "TensorShape(%r)" % ([Dimension(d) for d in self._dims],)

    def __hash__(self):
        return hash(self._dims)

    def __eq__(self, other):
        try:
            other = as_shape(other)
        except TypeError:
            return NotImplemented
        return self._dims == other._dims

    def __ne__(self, other):
        other = as_shape(other)
        if self.ndims is None or other.ndims is None:
            raise ValueError("The inequality of unknown TensorShapes is "
                             "undefined.")
        return self._dims != other._dims

    def __reduce__(self):
        return TensorShape, (self._dims,)


def as_shape(value):
    return value if isinstance(value, TensorShape) else TensorShape(value)


def unknown_shape(ndims=None, rank=None):
    ndims = rank if ndims is None else ndims
    if ndims is None:
        return TensorShape(None)
    return TensorShape([None] * ndims)


def scalar():
    return TensorShape([])


def vector(length):
    return TensorShape([length])


def matrix(rows, cols):
    return TensorShape([rows, cols])
