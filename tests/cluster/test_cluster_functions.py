"""Functions in graphs that run on a cluster of processes."""

import os

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..",
                      "golden", "functions")

# A graph that TensorFlow built; calls run on the ps, all else on the worker.
RECORDED = '''
import json
import sys
import numpy as np
import tensorflow as tf
from google.protobuf import text_format

for path in sys.argv[2:]:
    with open(path) as f:
        record = json.load(f)
    graph_def = text_format.Parse(record["graph"], tf.GraphDef())
    functions = {f.signature.name for f in graph_def.library.function} | {
        "PartitionedCall", "StatefulPartitionedCall", "SymbolicGradient"}
    for node in graph_def.node:
        # Variables are where those who change them are.
        on_ps = node.op in functions or "Var" in node.op or \\
            node.op.startswith("Assign") or "/read" in node.name
        if on_ps:
            node.device = "/job:ps/task:0"
        elif "_class" not in node.attr:
            node.device = "/job:worker/task:0"
    with tf.Graph().as_default():
        tf.import_graph_def(graph_def, name="")
        with tf.Session(sys.argv[1]) as session:
            session.run(record["init"])
            values = session.run([name for name, _ in record["fetches"]],
                                 record["feeds"])
    for value, (name, expected) in zip(values, record["fetches"]):
        np.testing.assert_allclose(value, expected, rtol=2e-6, err_msg=name)
    print("as recorded")
'''

DEFINED = '''
import sys
import tensorflow as tf
from tensorflow.python.framework import function

with tf.device("/job:ps/task:0"):
    w = tf.Variable([1., 2.])
    table = tf.Variable([[1.], [2.], [3.]])


@function.Defun(tf.float32, tf.float32)
def model(x, w):
    return tf.reduce_sum(x * w * w)


@function.Defun(tf.float32, tf.int32)
def rows(table, ids):
    return tf.reduce_sum(tf.gather(table, ids))


with tf.device("/job:worker/task:0"):
    loss = model(tf.constant([3., 4.]), w) + rows(table, [2, 0, 2])
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
with tf.Session(sys.argv[1]) as session:
    session.run(tf.global_variables_initializer())
    assert abs(session.run(loss) - 26) < 1e-5
    session.run(train)
    assert abs(session.run(w) - [0.4, 0.4]).max() < 1e-6
    assert abs(session.run(table)[:, 0] - [0.9, 2.0, 2.8]).max() < 1e-6
    # Functions that come later are sent, too.
    more = function.Defun(tf.float32)(lambda a: a + 1.)
    with tf.device("/job:ps/task:0"):
        y = more(loss)
    session.run(y)
    bad = function.Declare("Missing", [("a", tf.float32)], [("b", tf.float32)])
    try:
        bad(loss)
    except tf.errors.NotFoundError as e:
        print(e.message)
'''


def start(processes, addresses):
    ps, worker = addresses(2)
    spec = {"ps": [ps], "worker": [worker]}
    return "grpc://" + worker, [processes.server(spec, job) for job in spec]


def test_graphs_of_tensorflow_on_a_cluster(processes, addresses):
    target, servers = start(processes, addresses)
    client = processes.sluice(
        "run", processes.program(RECORDED), target,
        os.path.join(GOLDEN, "defuns.json"),
        os.path.join(GOLDEN, "calls_of_2x.json"))
    assert client.wait() == 0, client.output
    assert len(client.lines("as recorded")) == 2
    assert not any(server.exited() for server in servers)


def test_functions_of_a_program_on_a_cluster(processes, addresses):
    target, servers = start(processes, addresses)
    client = processes.sluice("run", processes.program(DEFINED), target)
    assert client.wait() == 0, client.output
    assert "Op type not registered 'Missing'" in client.output
    assert not any(server.exited() for server in servers)
