"""tf.py_func: functions of the program in its graph.

They run on one thread of this process, and only in this process: a token names
the process that gave it out.
"""

import atexit
import os
import threading
import traceback
import weakref

from sluice import _sluice
from sluice.framework import errors
from sluice.framework import ops
from sluice.framework.op_builder import build

# Which status an exception becomes; the first that fits.
_CODES = [
    ((ValueError, TypeError), errors.INVALID_ARGUMENT),
    (StopIteration, errors.OUT_OF_RANGE),
    (MemoryError, errors.RESOURCE_EXHAUSTED),
    (NotImplementedError, errors.UNIMPLEMENTED),
]


class _Function(object):
    """A function of the program; its graph keeps it alive."""

    def __init__(self, function):
        self.function = function


class _Registry(object):
    """The functions of this process by token. Thread-safe."""

    def __init__(self):
        self._lock = threading.Lock()
        self._functions = weakref.WeakValueDictionary()
        self._count = 0
        self._process = None

    def add(self, function):
        with self._lock:
            if self._process is None or self._process[0] != os.getpid():
                # A child of fork has the functions of its parent, but those
                # that come now are its own.
                self._process = (os.getpid(), os.urandom(8).hex())
                if self._count == 0:
                    _sluice.set_py_func_caller(call)
                    atexit.register(_sluice.end_py_funcs)
            token = "pyfunc_%d@%s" % (self._count, self._process[1])
            self._count += 1
            self._functions[token] = function
            return token

    def find(self, token):
        with self._lock:
            return self._functions.get(token)


_registry = _Registry()


def _as_array(value):
    import numpy as np
    array = np.asarray(value, order="C")
    if array.dtype.char in "SU":
        # Through objects, or zeros at the end of strings would be lost.
        array = np.asarray(value, dtype=object, order="C")
    return np.ascontiguousarray(array).reshape(array.shape)


def _values(result):
    if result is None:
        return []
    if isinstance(result, (list, tuple)):
        return [_as_array(value) for value in result]
    return [_as_array(result)]


def _exception_text(exc):
    # The frame of call() below is none of the program's.
    frames = exc.__traceback__.tb_next if exc.__traceback__ else None
    return "%s: %s\n%s" % (type(exc).__name__, exc, "\n".join(
        traceback.format_exception(type(exc), exc, frames)))


def call(token, arguments):
    """(code, message, values) of a function; called by the engine's thread."""
    found = _registry.find(token)
    if found is None:
        return errors.NOT_FOUND, "it has no function of that token", []
    try:
        return errors.OK, "", _values(found.function(*arguments))
    except BaseException as exc:  # It must not end the engine's thread.
        code = next((code for types, code in _CODES if isinstance(exc, types)),
                    errors.UNKNOWN)
        return code, _exception_text(exc), []


def py_func(func, inp, Tout, stateful=True, name=None):
    """Operations that call `func` with the values of `inp` as NumPy arrays."""
    if not callable(func):
        raise ValueError("Expected func to be callable, got func of type {}"
                         .format(type(func)))
    is_list = isinstance(Tout, (list, tuple))
    function = _Function(func)
    token = _registry.add(function)
    graph = ops.get_default_graph()
    while getattr(graph, "_outer_graph", None) is not None:
        graph = graph._outer_graph
    graph._py_funcs_used_in_graph.append(function)
    op = build("PyFunc" if stateful else "PyFuncStateless", name,
               input=list(inp), token=token,
               Tout=list(Tout) if is_list else [Tout])
    if not is_list:
        return op.outputs[0]
    return list(op.outputs) if Tout else op


def numpy_function(func, inp, Tout, name=None):
    return py_func(func, inp, Tout, stateful=True, name=name)
