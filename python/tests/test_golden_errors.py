"""Mistakes with sessions, clusters and servers raise what TensorFlow 1.15.5
raised, by class, code and the first line of the text."""

import json
import os
import re
import socket

import pytest
import sluice as tf

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "../../tests/golden/errors/sessions.json")) as f:
    RECORDED = json.load(f)

# Where we say something else on purpose.
DIFFERENT = {
    # The module has another name.
    "ThreadPoolOptionProto": (AttributeError, "has no attribute "
                              "'ThreadPoolOptionProto'"),
    # TensorFlow aborts the process.
    "badaddress": (tf.errors.InvalidArgumentError,
                   'Could not interpret "badaddress" as a host-port pair.'),
    # TensorFlow takes some other port.
    "99999999": (tf.errors.InvalidArgumentError, "Could not parse port"),
    # The class has another module, the message another reason.
    "s1.__enter__(); s2.__enter__()": (AssertionError, "Nesting violated"),
    '{"x": "h:1"}': (TypeError, ""),
    "options=5": (AttributeError, "SerializeToString"),
    'run_metadata=tf.RunOptions()': (None, ""),
    # It says which master did not answer, and why.
    "operation_timeout_in_ms=500": (tf.errors.DeadlineExceededError,
                                    "The master at localhost:"),
    "carrier-pigeon": (tf.errors.NotFoundError, "No server factory registered "
                       "for the given ServerDef:"),
    "No session factory": (tf.errors.NotFoundError,
                           "No session factory registered for the given "
                           "session options: {target: "),
}


def expected(record):
    for part, (kind, text) in DIFFERENT.items():
        if part in record["program"] or part in record.get("message", ""):
            return kind, text
    name = record["exception"]
    kind = getattr(tf.errors, name, None) or getattr(
        __import__("builtins"), name)
    return kind, record["message"].split("\n")[0]


def port():
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


def shape(text):
    """Without what differs from run to run."""
    text = re.sub(r"localhost:\d+", "localhost:PORT", text)
    return re.sub(r"Session [0-9a-f]{16}", "Session HANDLE", text)


# Sessions that are left in the wrong order complain once more at their end.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("record", RECORDED,
                         ids=[r["program"][-60:] for r in RECORDED])
def test_a_mistake_is_the_error_of_tensorflow(record):
    kind, text = expected(record)
    scope = {"tf": tf, "port": port, "os": os}
    lines = record["program"].split("; ")
    with tf.Graph().as_default():
        try:
            try:
                exec("\n".join(lines), scope)
            finally:
                while tf.get_default_session() is not None:
                    tf.get_default_session().__exit__(None, None, None)
        except Exception as e:
            error = e
        else:
            error = None
        finally:
            for name in ("s", "a"):
                if isinstance(scope.get(name), tf.train.Server):
                    scope[name].stop()
    if kind is None:
        assert error is None
        return
    assert type(error) is kind, repr(error)
    if record.get("code") is not None:
        assert error.error_code == record["code"]
    message = getattr(error, "message", None) or str(error)
    assert shape(text) in shape(message)
