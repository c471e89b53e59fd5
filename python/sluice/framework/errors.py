"""Exceptions of failed operations, one class per status code."""

import contextlib
import re
import warnings

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
        if self._error_code != _CODES.get(type(self), self._error_code):
            return type(self), (self._node_def, None, self._message,
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
        lines = self._op.traceback_text()
        text = "%s\n\nOriginal stack trace for %r:\n%s" % (
            self._message, self._op.name, "".join(lines))
        op = self._op._original_op
        while op is not None:
            before, lines = lines, op.traceback_text()
            text += ("\n...which was originally created as op %r, defined "
                     "at:\n%s" % (op.name, "".join(_elide(lines, before))))
            op = op._original_op
        return text


def _elide(lines, before):
    """A traceback without most of what it begins with as the one before."""
    same = 0
    for line, other in zip(lines, before):
        if line != other:
            break
        same += 1
    if same < 3:
        return lines
    return [lines[0], "[elided %d identical lines from previous traceback]\n" %
            (same - 2)] + lines[same - 1:]


def _define(name, code):
    def init(self, node_def, op, message):
        OpError.__init__(self, node_def, op, message, code)

    return type(name, (OpError,), {"__init__": init, "__module__": __name__})


CancelledError = _define("CancelledError", CANCELLED)


class UnknownError(OpError):
    def __init__(self, node_def, op, message, error_code=UNKNOWN):
        super().__init__(node_def, op, message, error_code)


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
        warnings.warn("Unknown error code: %d" % code)
        return UnknownError(None, None, message, code)
    return cls(None, None, message)


class _Status(object):
    def __init__(self):
        self.code = OK
        self.message = ""


@contextlib.contextmanager
def raise_exception_on_not_ok_status():
    """Gives a status; raises its error if it is not OK at the end."""
    status = _Status()
    yield status
    if status.code != OK:
        raise _make(status.code, status.message)


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

    sources, colocations = [], []

    def describe(tag):
        kind, name = tag.groups()
        if kind == "function_node":
            return ""
        known = graph._operation_or_none(name)
        if known is None:
            return tag.group(0)
        text = "node %s (defined at %s) " % (name, known.defined_at())
        if kind == "node":
            sources.extend(_input_sources(known))
            return text
        devices = known.device_summary()
        colocations.extend([known.colocation_summary(), devices])
        return "%splaced on device %s " % (text, devices)

    message = _TAG.sub(describe, message)
    if sources:
        message += "\n\nErrors may have originated from an input operation."
        message += "".join(sources)
    if colocations:
        message += "Additional information about colocations:"
        message += "\n".join(colocations)
    node_def = op.node_def if op is not None else None
    if type(error) in (OpError, UnknownError):
        return type(error)(node_def, op, message, error.error_code)
    return type(error)(node_def, op, message)


def _input_sources(op):
    """Where the inputs of `op` come from, if not from where it does."""
    told = {op.defined_at()}
    lines = []
    for source in [t.op for t in op.inputs] + op.control_inputs:
        where = source.defined_at()
        if where not in told:
            told.add(where)
            lines.append(" %s (defined at %s)" % (source.name, where))
    if not lines:
        return []
    return ["\nInput Source operations connected to node %s:\n%s" %
            (op.name, "\t\n".join(lines))]
