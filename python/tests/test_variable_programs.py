"""Programs with variables, scopes, initializers and optimizers end as in
TensorFlow 1.15.5: with the same values, names and error texts.

tests/golden/variable_programs.py has them, variable_programs.json what came of
them there.
"""

import importlib.util
import json
import os
import re
import sys

import pytest

import sluice as tf

_GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                       "tests", "golden")
_ALIAS = os.path.join(os.path.dirname(os.path.dirname(
    os.path.abspath(tf.__file__))), "alias")

with open(os.path.join(_GOLDEN, "variable_programs.json")) as _f:
    RECORDED = json.load(_f)

# Where TensorFlow's answer is its own, and what Sluice answers.
OTHERWISE = {
    # The class is Variable for both kinds.
    "Variable use_resource": {
        "out": ["ResourceVariable", "Variable", "Variable"]},
    "partitioner of scope": {
        "out": [[[2, 2], [2, 2], [1, 2]], "Variable"]},
    # A bug of TensorFlow's: it asserts.
    "partitioned assign": {"out": [1.0, 2.0, 3.0, 4.0]},
    # A str is no variable; TensorFlow fails to see it.
    "optimizer of string": {
        "error": "NotImplementedError",
        "message": "('Trying to optimize unsupported type ', 'v')"},
    # gather_nd is missing for ref variables there.
    "Variable gathers": {"out": [[[3.0, 4.0]], [3.0]] * 2},
}
OTHERWISE.update({
    # Says which argument is missing.
    call + " none": {"error": "ValueError",
                     "message": "global_step is required for "}
    for call in ("cosine_decay", "cosine_decay_restarts", "exponential_decay",
                 "inverse_time_decay", "linear_cosine_decay",
                 "natural_exp_decay", "noisy_linear_cosine_decay",
                 "polynomial_decay")})


@pytest.fixture
def recorder(monkeypatch):
    monkeypatch.syspath_prepend(_ALIAS)
    before = {name for name in sys.modules if name.startswith("tensorflow")}
    spec = importlib.util.spec_from_file_location(
        "record_variable_programs",
        os.path.join(_GOLDEN, "record_variable_programs.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    for name in [n for n in sys.modules if n.startswith("tensorflow")]:
        if name not in before:
            del sys.modules[name]


def close(ours, theirs):
    """Whether both are the same, numbers within rounding."""
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(
            close(a, b) for a, b in zip(ours, theirs))
    if isinstance(theirs, float) and isinstance(ours, (int, float)):
        return ours == pytest.approx(theirs, rel=2e-5, abs=2e-4)
    return ours == theirs


def text(outcome):
    """The message, without the modules of classes."""
    return re.sub(r"<class '[\w.]*\.(\w+)'>", r"<class '\1'>",
                  outcome["message"])


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_the_program(recorder, name):
    expected = OTHERWISE.get(name, RECORDED[name])
    ours = recorder.outcome(recorder.programs()[name])
    assert sorted(ours) == sorted(expected), (ours, expected)
    if "error" in expected:
        assert ours["error"] == expected["error"], ours
        assert text(ours).startswith(text(expected)), (ours, expected)
    else:
        assert close(ours["out"], expected["out"]), (ours, expected)
