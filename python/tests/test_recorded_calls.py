"""Calls add the nodes, or raise the errors, that they do in TensorFlow 1.15.5.

tests/golden/record_calls.py recorded calls.txt there.
"""

import importlib.util
import os

import pytest

import sluice as tf

_GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                       "tests", "golden")


def recorder():
    spec = importlib.util.spec_from_file_location(
        "record_calls", os.path.join(_GOLDEN, "record_calls.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def recorded():
    records = {}
    with open(os.path.join(_GOLDEN, "calls_recorded.txt")) as f:
        for line in f.read().splitlines():
            if line.startswith("== "):
                lines = records[line[3:]] = []
            lines.append(line)
    return records


RECORDED = recorded()


@pytest.mark.parametrize("call", recorder().calls())
def test_the_nodes_of(call):
    assert recorder().record(tf, call) == RECORDED[call]
