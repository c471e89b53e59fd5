"""Programs build the graphs that TensorFlow 1.15 builds, node for node.

tests/golden/graphs has the programs and what TensorFlow made of them.
"""

import json
import os
import re
import sys

import numpy as np
import pytest
from google.protobuf import text_format

import sluice as tf
from sluice.framework import dtypes

_HERE = os.path.dirname(os.path.abspath(__file__))
_GOLDEN = os.path.join(_HERE, "..", "..", "tests", "golden", "graphs")
_ALIAS = os.path.join(os.path.dirname(os.path.dirname(
    os.path.abspath(tf.__file__))), "alias")

PROGRAMS = [
    "batches", "broadcast_grads", "colocation", "cond_grad", "constants",
    "control_deps", "device_scopes", "embedding_sparse_grad",
    "functions_pyfunc", "gradient_options", "input_queues",
    "linreg_adagrad_ps2", "metrics_losses", "mlp_adam", "monitored_session",
    "moving_average_schedules", "naming", "parsing",
    "partitioned_variables", "random_seeds", "resource_variables",
    "saver_plain",
    "saver_sharded", "scaffold_default", "summaries", "sync_replicas",
    "tables", "variable_scopes", "while_grad", "while_nested",
]


# TensorFlow says that only one row is updated, which the feeds decide.
WRONG_SHAPES = {"Momentum/update_e/UnsortedSegmentSum:0"}


def tensor_value(proto):
    """(dtype, shape, flat values) of a TensorProto, however it is written."""
    shape = tuple(d.size for d in proto.tensor_shape.dim)
    count = int(np.prod(shape, dtype=np.int64))
    dtype = dtypes.as_dtype(proto.dtype)
    if dtype == dtypes.string:
        values = list(proto.string_val)
    elif proto.tensor_content:
        values = np.frombuffer(proto.tensor_content,
                               dtype.as_numpy_dtype).tolist()
    else:
        values = []
        for field in ("float_val", "double_val", "int_val", "int64_val",
                      "bool_val", "half_val", "uint32_val", "uint64_val"):
            values += list(getattr(proto, field))
    if values and len(values) < count:
        values += values[-1:] * (count - len(values))
    values = [re.sub(rb"_temp_[0-9a-f]{32}", b"_temp_", v)
              if isinstance(v, bytes) else repr(v) for v in values]
    return dtype.name, shape, values


def attr_value(attr):
    if attr.WhichOneof("value") == "tensor":
        return tensor_value(attr.tensor)
    # Names of gradients that a program defines hold a counter, shared names of
    # static tables a random number.
    text = re.sub(r"CustomGradient-\d+", "CustomGradient-", str(attr))
    # Tokens of py_func hold a counter, and the process.
    text = re.sub(r"pyfunc_\d+(@[0-9a-f]+)?", "pyfunc_", text)
    return re.sub(r"hash_table_[0-9a-f-]{36}", "hash_table_", text)


def describe(node):
    return [("name", node.name), ("op", node.op), ("input", list(node.input)),
            ("device", node.device)] + sorted(
                (key, attr_value(value)) for key, value in node.attr.items()
                if key != "_output_shapes")


def item_name(item):
    if isinstance(item, tf.train.Saver):
        return "Saver:" + item.saver_def.save_tensor_name
    return getattr(item, "name", str(item))


def known_shape(tensor):
    """None for an unknown rank, -1 for an unknown size."""
    if tensor.shape.ndims is None:
        return None
    return [-1 if d is None else d for d in tensor.shape.as_list()]


@pytest.fixture
def fresh_graph(monkeypatch):
    monkeypatch.syspath_prepend(_ALIAS)
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()
    tf.disable_resource_variables()
    for name in [n for n in sys.modules if n.split(".")[0] == "tensorflow"]:
        del sys.modules[name]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_graph_of(program, fresh_graph):
    base = os.path.join(_GOLDEN, program)
    with open(base + ".py") as f:
        exec(compile(f.read(), program + ".py", "exec"),
             {"__name__": "__main__"})
    graph = tf.get_default_graph()
    expected = tf.GraphDef()
    with open(base + ".pbtxt") as f:
        text_format.Parse(f.read(), expected)
    made = graph.as_graph_def()
    for ours, theirs in zip(made.node, expected.node):
        assert describe(ours) == describe(theirs)
    assert len(made.node) == len(expected.node)
    for ours, theirs in zip(made.library.function, expected.library.function):
        assert ours == theirs
    assert len(made.library.function) == len(expected.library.function)
    assert list(made.library.gradient) == list(expected.library.gradient)
    assert made.versions.min_consumer == expected.versions.min_consumer
    with open(base + ".json") as f:
        golden = json.load(f)
    assert golden["collections"] == {
        key: [item_name(i) for i in graph.get_collection(key)]
        for key in golden["collections"]}
    shapes = {name: known_shape(graph.get_tensor_by_name(name))
              for name in golden["tensors"] if name not in WRONG_SHAPES}
    assert shapes == {name: shape
                      for name, (_, shape) in golden["tensors"].items()
                      if name in shapes}


def test_divisions_have_the_names_of_tensorflow():
    with tf.Graph().as_default() as graph:
        tf.floordiv(3, 2)
        x = tf.constant(1.)
        x // 2
        tf.floordiv(x, 2., name="n/")
        tf.div(3, 2)
        3 // tf.constant(2)
        tf.floor_div(x, x)
    assert [op.name for op in graph.get_operations()] == [
        "floordiv/x", "floordiv/y", "floordiv", "Const", "floordiv_1/y",
        "floordiv_1", "n/y", "n", "div/x", "div/y", "div", "Const_1",
        "floordiv_2/x", "floordiv_2", "FloorDiv_3"]
