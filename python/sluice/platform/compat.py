"""Bytes and text."""

import numbers

from sluice.platform.lazy_numpy import np


def as_bytes(bytes_or_text, encoding="utf-8"):
    if isinstance(bytes_or_text, bytearray):
        return bytes(bytes_or_text)
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text
    raise TypeError("Expected binary or unicode string, got %r" %
                    (bytes_or_text,))


def as_text(bytes_or_text, encoding="utf-8"):
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    raise TypeError("Expected binary or unicode string, got %r" %
                    bytes_or_text)


as_str = as_text


def as_str_any(value):
    return as_str(value) if isinstance(value, bytes) else str(value)


def path_to_str(path):
    if hasattr(path, "__fspath__"):
        path = as_str_any(path.__fspath__())
    return path


bytes_or_text_types = (bytes, str)


def __getattr__(name):  # Those that need NumPy, when they are asked for.
    if name == "complex_types":
        return numbers.Complex, np.number
    if name == "integral_types":
        return numbers.Integral, np.integer
    if name == "real_types":
        return numbers.Real, np.integer, np.floating
    raise AttributeError("module %r has no attribute %r" % (__name__, name))
