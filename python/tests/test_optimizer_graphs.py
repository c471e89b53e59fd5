"""Optimizers add the nodes that TensorFlow 1.15 adds, in the same order.

tests/golden/optimizer_graphs.txt was printed by record_optimizer_graphs.py
under TensorFlow; here the same functions run on Sluice.
"""

import importlib.util
import json
import os
import sys

import pytest

import sluice as tf

_GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                       "tests", "golden")

with open(os.path.join(_GOLDEN, "optimizers", "index.json")) as _f:
    INDEX = json.load(_f)


def _records():
    records = {}
    with open(os.path.join(_GOLDEN, "optimizer_graphs.txt")) as f:
        for line in f:
            if line.startswith("=="):
                current = records.setdefault(tuple(line.split()[1:]), [])
            else:
                current.append(line.rstrip("\n"))
    return records


RECORDS = _records()


@pytest.fixture
def recorder(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", tf)
    spec = importlib.util.spec_from_file_location(
        "record_optimizer_graphs",
        os.path.join(_GOLDEN, "record_optimizer_graphs.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name,variant", sorted(RECORDS))
def test_the_nodes_of(recorder, name, variant):
    with tf.Graph().as_default() as graph:
        train = recorder.build(INDEX[name], variant)
        ours = list(recorder.lines(graph.as_graph_def(), train.name))
    assert ours == RECORDS[name, variant]
