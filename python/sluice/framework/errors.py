"""Exceptions of failed operations, one class per status code."""

import re

from sluice import _sluice

OK = 0
CANCELLED = 1
UNKNOWN = 2
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
DATA_LOSS = 15
UNAUTHENTICATED = 16


class OpError(Exception):
    """A step or a call of the runtime failed."""

    def __init__(self, node_def, op, message, error_code):
        super().__init__()
        self._node_def = node_def
        self._op = op
        self._message = message
        self._error_code = error_code

    def __reduce__(self):
        # Graphs do not pickle; what the error says does.
        if type(self) is OpError:
            return OpError, (self._node_def, None, self._message,
                             self._error_code)
        return type(self), (self._node_def, None, self._message)

    @property
    def message(self):
        return self._message

    @property
    def op(self):
        """The operation that failed, if this program built it."""
        return self._op

    @property
    def node_def(self):
        return self._node_def

    @property
    def error_code(self):
        return self._error_code

    def __str__(self):
        if self._op is None:
            return self._message
        where = "".join(self._op.traceback_text())
        return "%s\n\nOriginal stack trace for %r:\n%s" % (
            self._message, self._op.name, where)


def _define(name, code):
    def init(self, node_def, op, message):
        OpError.__init__(self, node_def, op, message, code)

    return type(name, (OpError,), {"__init__": init, "__module__": __name__})


CancelledError = _define("CancelledError", CANCELLED)
UnknownError = _define("UnknownError", UNKNOWN)
InvalidArgumentError = _define("InvalidArgumentError", INVALID_ARGUMENT)
DeadlineExceededError = _define("DeadlineExceededError", DEADLINE_EXCEEDED)
NotFoundError = _define("NotFoundError", NOT_FOUND)
AlreadyExistsError = _define("AlreadyExistsError", ALREADY_EXISTS)
PermissionDeniedError = _define("PermissionDeniedError", PERMISSION_DENIED)
ResourceExhaustedError = _define("ResourceExhaustedError", RESOURCE_EXHAUSTED)
FailedPreconditionError = _define("FailedPreconditionError",
                                  FAILED_PRECONDITION)
AbortedError = _define("AbortedError", ABORTED)
OutOfRangeError = _define("OutOfRangeError", OUT_OF_RANGE)
UnimplementedError = _define("UnimplementedError", UNIMPLEMENTED)
InternalError = _define("InternalError", INTERNAL)
UnavailableError = _define("UnavailableError", UNAVAILABLE)
DataLossError = _define("DataLossError", DATA_LOSS)
UnauthenticatedError = _define("UnauthenticatedError", UNAUTHENTICATED)


class OperatorNotAllowedInGraphError(TypeError):
    """A tensor is used where Python needs its value."""


class InaccessibleTensorError(ValueError):
    """A tensor is used outside of the loop or branch it belongs to."""


_CLASSES = {
    CANCELLED: CancelledError,
    UNKNOWN: UnknownError,
    INVALID_ARGUMENT: InvalidArgumentError,
    DEADLINE_EXCEEDED: DeadlineExceededError,
    NOT_FOUND: NotFoundError,
    ALREADY_EXISTS: AlreadyExistsError,
    PERMISSION_DENIED: PermissionDeniedError,
    RESOURCE_EXHAUSTED: ResourceExhaustedError,
    FAILED_PRECONDITION: FailedPreconditionError,
    ABORTED: AbortedError,
    OUT_OF_RANGE: OutOfRangeError,
    UNIMPLEMENTED: UnimplementedError,
    INTERNAL: InternalError,
    UNAVAILABLE: UnavailableError,
    DATA_LOSS: DataLossError,
    UNAUTHENTICATED: UnauthenticatedError,
}
_CODES = {cls: code for code, cls in _CLASSES.items()}


def exception_type_from_error_code(code):
    return _CLASSES[code]


def error_code_from_exception_type(cls):
    return _CODES[cls]


def _make(code, message):
    cls = _CLASSES.get(code)
    if cls is None:
        return OpError(None, None, message, code)
    return cls(None, None, message)


_sluice.set_error_factory(_make)

_NODE = re.compile(r"\[\[(?:Node: )?(?:\{\{node )?([^\}\] ]*)(?:\}\})?\s*=*")
_TAG = re.compile(r"\{\{(node|colocation_node|function_node) ([^}]*)\}\}")


def locate(error, graph):
    """The same error with the operation of `graph` that it names."""
    message = error.message
    match = _NODE.search(message)
    op = None
    if match:
        op = graph._operation_or_none(match.group(1))

    def describe(tag):
        kind, name = tag.groups()
        if kind == "function_node":
            return ""
        known = graph._operation_or_none(name)
        if known is None:
            return tag.group(0)
        return "node %s (defined at %s) " % (name, known.defined_at())

    message = _TAG.sub(describe, message)
    node_def = op.node_def if op is not None else None
    if type(error) is OpError:
        return OpError(node_def, op, message, error.error_code)
    return type(error)(node_def, op, message)
