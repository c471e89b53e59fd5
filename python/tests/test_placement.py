"""Where ops go on a cluster, against recordings of TensorFlow 1.15.5."""

import json
import os
import socket

import numpy as np
import pytest

import sluice as tf

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                      "tests", "golden", "placement", "placement.json")
with open(GOLDEN) as _file:
    RECORDS = json.load(_file)


@pytest.fixture(scope="module")
def servers():
    """The cluster of the recordings: its tasks' targets by name."""
    sockets = [socket.socket() for _ in range(4)]
    for s in sockets:
        s.bind(("localhost", 0))
    ports = ["localhost:%d" % s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    spec = tf.train.ClusterSpec({"ps": ports[:2], "worker": ports[2:]})
    started = {}
    for job in ["ps", "worker"]:
        for task in range(2):
            # worker:1 has two CPUs.
            cpus = 2 if (job, task) == ("worker", 1) else 1
            started["/job:%s/task:%d" % (job, task)] = tf.train.Server(
                spec, job, task,
                config=tf.ConfigProto(device_count={"CPU": cpus}))
    yield started, spec
    for server in started.values():
        server.stop()


def build(program, spec):
    graph = tf.Graph()
    names = {"tf": tf, "spec": spec, "PS0": "/job:ps/task:0",
             "PS1": "/job:ps/task:1", "W0": "/job:worker/task:0",
             "W1": "/job:worker/task:1"}
    with graph.as_default():
        exec(program, names)
    return graph


def placements(session, graph, skip):
    """The device of each node, as the steps' partitions show it."""
    placed = {}
    options = tf.RunOptions(output_partition_graphs=True)
    feeds = {op.outputs[0]: np.zeros(op.outputs[0].shape.as_list(),
                                     op.outputs[0].dtype.as_numpy_dtype)
             for op in graph.get_operations() if op.type == "Placeholder"}
    for op in graph.get_operations():
        if (op.name in skip or op.name in placed or
                not graph.is_fetchable(op)):
            continue
        metadata = tf.RunMetadata()
        try:
            session.run(op, feeds, options=options, run_metadata=metadata)
        except tf.errors.FailedPreconditionError:
            continue  # A table or variable before its initializer's turn.
        for part in metadata.partition_graphs:
            for node in part.node:
                placed[node.name] = node.device
    return placed


def name(record):
    return "%s%s" % (record["note"],
                     ", soft" if record["allow_soft_placement"] else "")


def supported(record):
    """Whether the program uses only modules that there are."""
    return "tf.data." not in record["program"]


def test_all_but_one_recorded_program_are_run():
    assert len([r for r in RECORDS if not supported(r)]) == 1


@pytest.mark.parametrize("record", list(filter(supported, RECORDS)), ids=name)
def test_ops_go_where_tensorflow_puts_them(servers, record):
    started, spec = servers
    graph = build(record["program"], spec)
    config = tf.ConfigProto(
        allow_soft_placement=record["allow_soft_placement"],
        isolate_session_state=True)
    config.graph_options.optimizer_options.opt_level = -1
    with tf.Session(started[record["master"]].target, graph=graph,
                    config=config) as session:
        if "error" in record:
            with pytest.raises(tf.errors.OpError) as e:
                for op in graph.get_operations():
                    session.run(op)
            assert type(e.value).__name__ == record["error"]
            return
        placed = placements(session, graph, record["not_run"])
    for node, device in record["placed"].items():
        assert placed.get(node) == device, node
