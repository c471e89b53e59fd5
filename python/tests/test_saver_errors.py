"""Mistakes with savers, checkpoints and summaries raise what TensorFlow 1.15.5
raised, by class, code and the first line of the text."""

import json
import os

import numpy as np
import pytest
import sluice as tf

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "../../tests/golden/errors/saver.json")) as f:
    RECORDED = json.load(f)

# Where we say something else on purpose.
DIFFERENT = {
    # Messages of protobuf and of Python, which differ by release.
    "max_to_keep=\"a\"": (TypeError, ""),
    "add_session_log(5)": (TypeError, ""),
    "get_checkpoint_state(D)); raise": (RuntimeError, ""),
    # A file that is neither is no text error of its own.
    "bad.meta": (OSError, "Cannot parse file "),
    "tf.summary.scalar(5, 1.0)": (TypeError, "expected string"),
}


def expected(record):
    for part, (kind, text) in DIFFERENT.items():
        if part in record["program"]:
            return kind, text
    if "exception" not in record:
        return None, ""
    name = record["exception"]
    kind = getattr(tf.errors, name, None) or getattr(
        __import__("builtins"), name)
    return kind, record["message"].split("\n")[0]


@pytest.mark.filterwarnings("ignore:Attempting to use a closed FileWriter")
@pytest.mark.parametrize("record", RECORDED,
                         ids=[r["program"][-60:] for r in RECORDED])
def test_a_mistake_is_the_error_of_tensorflow(record, tmp_path):
    kind, text = expected(record)
    scope = {"tf": tf, "os": os, "np": np, "D": str(tmp_path)}
    error = None
    with tf.Graph().as_default():
        try:
            exec("\n".join(record["program"].split("; ")), scope)
        except Exception as e:
            error = e
    if kind is None:
        assert error is None
        return
    assert type(error) is kind, repr(error)
    if record.get("code") is not None:
        assert error.error_code == record["code"]
    message = getattr(error, "message", None) or str(error)
    assert text.replace("/dir", str(tmp_path)) in message
