"""A traced step becomes JSON that trace viewers read."""

import json

import pytest

import sluice as tf
from sluice.client import timeline


@pytest.fixture(autouse=True)
def fresh_graph():
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


def traced_step():
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    y = tf.matmul(x, tf.ones([2, 2]), name="product")
    metadata = tf.RunMetadata()
    with tf.Session() as sess:
        sess.run(y, {x: [[1, 2]]},
                 options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE),
                 run_metadata=metadata)
    return metadata.step_stats


def events(**kwargs):
    text = timeline.Timeline(traced_step()).generate_chrome_trace_format(
        **kwargs)
    return json.loads(text)["traceEvents"]


def test_every_device_is_a_process():
    names = [e["args"]["name"] for e in events() if e["ph"] == "M"]
    assert names[0] == "Allocators"
    assert any(n.endswith("Compute") for n in names)


def test_every_node_that_ran_is_an_event():
    ran = {e["args"]["name"]: e for e in events() if e["ph"] == "X"}
    product = ran["product"]
    assert product["name"] == product["args"]["op"] == "MatMul"
    assert product["cat"] == "Op" and product["dur"] >= 1
    assert "input0" in product["args"]


def test_data_flows_between_lanes_have_both_ends():
    flows = [e for e in events() if e.get("cat") == "DataFlow"]
    starts = {e["id"] for e in flows if e["ph"] == "s"}
    assert starts == {e["id"] for e in flows if e["ph"] == "t"}
    assert not [e for e in events(show_dataflow=False)
                if e.get("cat") == "DataFlow"]


def test_memory_rises_and_comes_down_again():
    assert not [e for e in events() if e.get("cat") == "Memory"]
    levels = [e["args"]["cpu"] for e in events(show_memory=True)
              if e.get("cat") == "Memory"]
    assert max(levels) >= 8  # The product, at least.
    assert min(levels) >= 0 and levels[-1] == 0


def test_labels_name_outputs_and_what_a_node_waits_for():
    parts = tf.split(tf.placeholder_with_default([1.0, 2.0], [2]), 2,
                     name="parts")
    with tf.control_dependencies([parts[0]]):
        last = tf.negative(parts[1], name="last")
        wait = tf.no_op(name="wait")
    metadata = tf.RunMetadata()
    with tf.Session() as sess:
        sess.run([last, wait],
                 options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE),
                 run_metadata=metadata)
    labels = [node.timeline_label for device in metadata.step_stats.dev_stats
              for node in device.node_stats]
    # As TensorFlow 1.15.5 writes them.
    assert "last = Neg(parts:1)" in labels
    assert "wait = NoOp(^parts)" in labels


def test_the_hook_writes_a_timeline(tmp_path):
    step = tf.train.get_or_create_global_step()
    train = tf.assign_add(step, 1)
    hook = tf.train.ProfilerHook(save_steps=2, output_dir=str(tmp_path))
    with tf.train.MonitoredSession(hooks=[hook]) as sess:
        for _ in range(4):
            sess.run(train)
    files = sorted(p.name for p in tmp_path.glob("timeline-*.json"))
    assert files
    with open(tmp_path / files[0]) as f:
        assert json.load(f)["traceEvents"]


def test_a_transfer_is_named_for_what_it_is():
    metadata = tf.RunMetadata()
    device = metadata.step_stats.dev_stats.add(device="/job:ps/task:0")
    device.node_stats.add(
        node_name="RecvTensor", all_start_micros=1, all_end_rel_micros=2,
        timeline_label="[4B] [1Mb/s] edge_1_w from /job:ps to /job:worker")
    trace = timeline.Timeline(metadata.step_stats)
    events = json.loads(trace.generate_chrome_trace_format())["traceEvents"]
    assert "RecvTensor" in [event["name"] for event in events]


def test_an_arrow_leads_from_a_send_to_its_receivers():
    metadata = tf.RunMetadata()

    def ran(device, start, label):
        device.node_stats.add(node_name=label.split(" ")[0],
                              timeline_label=label, all_start_micros=start,
                              all_end_rel_micros=2)

    ps = metadata.step_stats.dev_stats.add(device="/job:ps/task:0")
    worker = metadata.step_stats.dev_stats.add(device="/job:worker/task:0")
    ran(ps, 1, "w = VariableV2()")
    ran(ps, 10, "w/_S0 = _Send(edge_7_w @/job:worker/task:0")
    ran(worker, 2, "w/_S1 = _Recv(edge_7_w @/job:ps/task:0")
    ran(worker, 2, "g = _SluiceRecvGroup(edge_7_w, edge_8_x @/job:ps/task:0")
    trace = timeline.Timeline(metadata.step_stats)
    events = json.loads(trace.generate_chrome_trace_format())["traceEvents"]
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = [e for e in events if e["ph"] == "t"]
    assert [e["name"] for e in ends] == ["edge_7_w", "edge_7_w"]
    assert {starts[e["id"]]["pid"] for e in ends} == {1}
    assert {starts[e["id"]]["ts"] for e in ends} == {12}
    assert {e["pid"] for e in ends} == {3}


def test_both_ends_of_a_transfer_name_its_tensor():
    metadata = tf.RunMetadata()
    with tf.device("/cpu:0"):
        x = tf.placeholder_with_default([1.0, 2.0], [2], name="x")
    with tf.device("/cpu:1"):
        y = tf.negative(x, name="y")
    config = tf.ConfigProto(device_count={"CPU": 2})
    with tf.Session(config=config) as sess:
        sess.run(y.op,
                 options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE),
                 run_metadata=metadata)
    labels = [node.timeline_label for device in metadata.step_stats.dev_stats
              for node in device.node_stats]
    place = "/job:localhost/replica:0/task:0/device:CPU:"
    assert [l for l in labels if " = _Send(edge_" in l and
            l.endswith("_x @" + place + "1")]
    assert [l for l in labels if l.endswith("_x @" + place + "0")]


@pytest.mark.parametrize("level", [1, 2, 3])
def test_a_local_session_traces_at_any_level(level):
    metadata = tf.RunMetadata()
    with tf.Session() as sess:
        sess.run(tf.no_op(name="n"), run_metadata=metadata,
                 options=tf.RunOptions(trace_level=level))
    assert metadata.step_stats.dev_stats
    assert all(node.thread_id for device in metadata.step_stats.dev_stats
               for node in device.node_stats)


@pytest.mark.parametrize("level, traced", [(1, False), (2, False), (3, True)])
def test_a_server_traces_at_the_full_level_alone(level, traced):
    server = tf.train.Server.create_local_server()
    for target in (server.target,
                   server.target.replace("localhost", "LOCALHOST")):
        metadata = tf.RunMetadata()
        with tf.Session(target) as sess:
            sess.run(tf.no_op(name="n"), run_metadata=metadata,
                     options=tf.RunOptions(trace_level=level))
        assert bool(metadata.step_stats.dev_stats) == traced
    server.stop()
