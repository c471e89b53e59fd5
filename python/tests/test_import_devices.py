"""What imported nodes ask for, as TensorFlow 1.15.5 gives it."""

import pytest

import sluice as tf
from sluice.framework import protos


def graph_def():
    made = protos.GraphDef()
    for name, device, beside in (("a", "/cpu:0", None), ("b", "", None),
                                 ("c", "/job:ps", None),
                                 ("e", "/job:worker/task:1", "c"),
                                 ("f", "/device:CPU:0", "b")):
        node = made.node.add()
        node.name, node.op, node.device = name, "NoOp", device
        if beside:
            node.attr["_class"].list.s.append(b"loc:@" + beside.encode())
    return made


@pytest.mark.parametrize("around, devices", [
    ([], ["/device:CPU:0", "", "/job:ps", "/job:ps", ""]),
    (["/job:w/cpu:3"], ["/job:w/device:CPU:0", "/job:w/device:CPU:3",
                        "/job:ps/device:CPU:3", "/job:ps/device:CPU:3",
                        "/job:w/device:CPU:3"]),
    (["/job:w", "/task:2"], ["/job:w/task:2/device:CPU:0", "/job:w/task:2",
                             "/job:ps/task:2", "/job:ps/task:2",
                             "/job:w/task:2"]),
    (["/job:w", None], ["/device:CPU:0", "", "/job:ps", "/job:ps", ""]),
    ([lambda op: "/job:q/task:%d" % len(op.name)], ["/job:q/task:8"] * 5),
])
def test_the_blocks_around_an_import_hold_for_it(around, devices):
    with tf.Graph().as_default() as graph:
        def inside(rest):
            if not rest:
                return tf.import_graph_def(graph_def())
            with tf.device(rest[0]):
                return inside(rest[1:])
        inside(around)
        assert [op.device for op in graph.get_operations()] == devices
