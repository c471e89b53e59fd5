"""Where ops go on a cluster, against recordings of TensorFlow 1.15.5."""

import json
import os
import re
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


def plain(message):
    """An error's text without what differs: where nodes were defined, devices
    that Sluice does not have, and its own hint."""
    message = re.sub(r"\{\{(?:colocation_)?node ([^}]*)\}\}", r"\1", message)
    message = message.split("\n\nErrors may have originated")[0]
    message = message.split("Additional information about coloc")[0]
    scopes = r"(?:No [^.]*\.|Device [^:]*:(?:\n  with .*?>(?=\s|$))+) "
    message = re.sub(r"node (\S+) \(defined at [^)]*\) "
                     r"(?:placed on device " + scopes + ")?", r"\1", message)
    message = re.sub(r"in node: \{name:'(\w+)'.*\}", r"in node: \1", message)
    message = re.sub(r", [^ ]*/device:XLA_CPU:0", "", message)
    return re.sub(r" To run on another device of .*", "", message)


def message_of(session, graph, record):
    """What a step hears that needs only the node that the record blames."""
    name = re.search(r"\[\[(?:\{\{node )?(\w+)", record["message"]).group(1)
    op = graph.get_operation_by_name(name)
    with pytest.raises(tf.errors.OpError) as e:
        session.run(op, {value: 0.0 for value in op.inputs})
    assert type(e.value).__name__ == record["error"]
    assert e.value.op is op
    return e.value.message


def config_of(record):
    config = tf.ConfigProto(
        allow_soft_placement=record["allow_soft_placement"],
        isolate_session_state=True)
    config.graph_options.optimizer_options.opt_level = -1
    return config


@pytest.mark.parametrize("record", list(filter(supported, RECORDS)), ids=name)
def test_ops_go_where_tensorflow_puts_them(servers, record):
    started, spec = servers
    graph = build(record["program"], spec)
    with tf.Session(started[record["master"]].target, graph=graph,
                    config=config_of(record)) as session:
        if "error" in record:
            assert (plain(message_of(session, graph, record)) ==
                    plain(record["message"]))
            return
        placed = placements(session, graph, record["not_run"])
    for node, device in record["placed"].items():
        assert placed.get(node) == device, node


# What follows was seen on TensorFlow 1.15.5, on the same cluster.


def devices_of(session, fetches):
    metadata = tf.RunMetadata()
    session.run(fetches, options=tf.RunOptions(output_partition_graphs=True),
                run_metadata=metadata)
    return {node.name: node.device for part in metadata.partition_graphs
            for node in part.node}


def device(job, task, cpu=0):
    return "/job:%s/replica:0/task:%d/device:CPU:%d" % (job, task, cpu)


def open_session(servers, soft=False):
    return tf.Session(servers[0]["/job:worker/task:0"].target, config=config_of(
        {"allow_soft_placement": soft}))


def test_soft_placement_leaves_a_variable_on_its_device(servers):
    with tf.Graph().as_default():
        with tf.device(device("worker", 1, 1)):
            v = tf.Variable(1.0, name="v")
        with tf.device(device("worker", 1, 0)):
            i = tf.constant(2.0, name="i")
        i.op._set_attr("_class", tf.AttrValue(
            list=tf.AttrValue.ListValue(s=[b"loc:@v"])))
        with open_session(servers, soft=True) as session:
            session.run(v.initializer)
            placed = devices_of(session, [v, tf.identity(i)])
    assert placed["v"] == device("worker", 1, 1)
    assert placed["i"] == device("worker", 1, 1)


def test_a_constant_goes_where_it_is_waited_for(servers):
    with tf.Graph().as_default():
        waited = tf.constant([1.0, 2.0], name="waited")
        with tf.device("/job:worker/task:1/cpu:0"):
            with tf.control_dependencies([waited]):
                a = tf.no_op()
        used = tf.constant([1.0, 2.0], name="used")
        with tf.device("/job:worker/task:1/cpu:0"):
            b = tf.identity(used)
        with tf.device("/job:ps/task:1"), tf.control_dependencies([used]):
            c = tf.no_op()
        with open_session(servers) as session:
            placed = devices_of(session, [a, b, c])
    assert placed["waited"] == device("worker", 1)
    assert placed["used"] == device("ps", 0)


def test_what_has_no_state_is_placed_again_when_the_graph_grows(servers):
    with tf.Graph().as_default():
        c = tf.identity(tf.placeholder_with_default(1.0, []), name="c")
        k = tf.constant([1.0, 2.0], name="k")
        v = tf.Variable(1.0, name="v")
        with open_session(servers) as session:
            session.run(v.initializer)
            for node, at in devices_of(session, [c, k, v]).items():
                if node in ["c", "k", "v"]:
                    assert at == device("ps", 0)
            with tf.colocate_with(c.op, ignore_existing=True):
                with tf.device("/job:worker/task:1"):
                    d = tf.identity(c, name="d")
            with tf.device("/job:worker/task:1"):
                e = tf.identity(k)
                f = tf.identity(v)
            placed = devices_of(session, [d, e, f])
            # What was planned before still runs.
            assert session.run([c, v]) == [1.0, 1.0]
    assert placed["c"] == placed["d"] == device("worker", 1)
    assert placed["k"] == device("worker", 1)
    assert placed["v"] == device("ps", 0)


def test_partition_graphs_are_one_for_each_device(servers):
    with tf.Graph().as_default():
        with tf.device("/job:worker/task:1/cpu:0"):
            x = tf.placeholder_with_default([1.0, 2.0], [2]) * 2.0
        with tf.device("/job:worker/task:1/cpu:1"):
            y = x * 3.0
        with tf.device("/job:ps/task:0"):
            z = tf.reduce_sum(y)
        metadata = tf.RunMetadata()
        with open_session(servers) as session:
            session.run(z, options=tf.RunOptions(output_partition_graphs=True),
                        run_metadata=metadata)
    graphs = {}
    for graph in metadata.partition_graphs:
        at, = {node.device for node in graph.node}
        graphs[at] = sorted(node.op for node in graph.node
                            if node.op in ["_Send", "_Recv"])
    assert graphs == {
        device("worker", 1, 0): ["_Send"],
        device("worker", 1, 1): ["_Recv", "_Send"],
        device("ps", 0): ["_Recv", "_Send"],
        device("worker", 0): ["_Recv", "_Send"]}  # The client's end.


def test_device_scopes_that_are_left_out_of_order_are_an_error():
    graph = tf.Graph()
    outer, inner = graph.device("/cpu:0"), graph.device("/job:a")
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(RuntimeError, match="Exiting device scope without "
                                           "proper scope nesting."):
        outer.__exit__(None, None, None)
    inner.__exit__(None, None, None)
    with graph.as_default():
        with tf.device("/job:b"):
            assert tf.constant(1).device == "/job:b/device:CPU:0"
        assert tf.constant(1).device == "/device:CPU:0"


def test_a_wrong_device_leaves_the_scopes_as_they_were():
    with tf.Graph().as_default():
        with tf.device("/cpu:0"):
            with pytest.raises(ValueError):
                with tf.device("/nonsense:::"):
                    pass
            assert tf.constant(1).device == "/device:CPU:0"
        assert tf.constant(1).device == ""


@pytest.mark.parametrize("resource", [False, True])
def test_a_variable_is_cached_where_its_scope_says(resource):
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"), tf.variable_scope(
                "", caching_device="/job:worker/task:0",
                use_resource=resource):
            v = tf.get_variable("v", initializer=1.0)
        for user in (v, tf.Variable.from_proto(v.to_proto())):
            read = (user + 1.0).op.inputs[0]
            assert read.op.type == "Identity"
            assert read.device == "/job:worker/task:0"
            assert read is user.value()
        assert tf.gradients(v * 2.0, v)[0] is not None


def test_a_cached_variable_is_read_anew_after_an_update(servers):
    started, _ = servers
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable("v", initializer=1.0, use_resource=True,
                                caching_device="/job:worker/task:0")
        updated = v.assign_add(2.0) + 0.0
        with tf.Session(started["/job:worker/task:0"].target) as session:
            session.run(v.initializer)
            assert session.run(v + 0.0) == 1.0
            assert session.run(updated) == 3.0
            assert session.run([v, v.read_value(), v + 0.0]) == [3.0] * 3
