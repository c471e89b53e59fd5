"""Sessions themselves: how they are opened, closed and reset."""

import subprocess
import sys
import threading
import warnings

import pytest

import sluice as tf
from sluice.client import session
from sluice.framework import protos


@pytest.fixture(autouse=True)
def fresh_graph():
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


@pytest.mark.parametrize("target", ["", None])
def test_a_reset_of_no_target_closes_local_sessions(target):
    v = tf.Variable(1.0)
    sess = tf.Session()
    sess.run(v.initializer)
    tf.Session.reset(target)
    with pytest.raises(tf.errors.CancelledError,
                       match="Session has been closed."):
        sess.run(v)
    sess.close()
    with tf.Session() as other:
        other.run(v.initializer)


def test_a_reset_of_an_unknown_kind_of_target_is_an_error():
    with pytest.raises(tf.errors.NotFoundError,
                       match="No session factory registered"):
        tf.Session.reset("elsewhere://x")


def test_a_closed_session_lists_no_devices():
    sess = tf.Session()
    sess.close()
    with pytest.raises(tf.errors.CancelledError,
                       match="Session has been closed."):
        sess.list_devices()


@pytest.mark.parametrize("cpus", [0, -1])
def test_there_is_no_session_or_server_without_a_device(cpus):
    config = tf.ConfigProto(device_count={"CPU": cpus})
    for make in (tf.Session, tf.train.Server.create_local_server):
        with pytest.raises(tf.errors.NotFoundError,
                           match="No CPU devices are available"):
            make(config=config)


def test_a_callable_fetches_a_tensor_twice():
    x, y = tf.constant(1.0), tf.constant(2.0)
    options = protos.CallableOptions(fetch=[x.name, y.name, x.name])
    with tf.Session() as sess:
        assert sess._make_callable_from_options(options)() == [1.0, 2.0, 1.0]


def test_a_second_interactive_session_warns():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        first = tf.InteractiveSession()
        assert not told
        second = tf.InteractiveSession()
        assert "An interactive session is already active" in str(
            told[0].message)
        second.close()
        first.close()
        tf.InteractiveSession().close()
        assert len(told) == 1


def test_partition_graphs_are_given_to_who_asks():
    x = tf.constant(1.0)
    with tf.Session() as sess:
        for wanted in (False, True):
            metadata = tf.RunMetadata()
            sess.run(x, options=tf.RunOptions(output_partition_graphs=wanted),
                     run_metadata=metadata)
            assert len(metadata.partition_graphs) == (1 if wanted else 0)


def test_interactive_sessions_close_in_any_order():
    graph = tf.Graph()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = tf.InteractiveSession(graph=graph)
        second = tf.InteractiveSession()
    assert tf.get_default_session() is second
    first.close()
    assert tf.get_default_session() is second
    assert tf.get_default_graph() is not graph
    second.close()
    assert tf.get_default_session() is None


def test_an_interactive_session_leaves_the_config_alone():
    config = tf.ConfigProto()
    sess = tf.InteractiveSession(config=config)
    assert sess._config.graph_options.place_pruned_graph
    assert not config.graph_options.place_pruned_graph
    sess.close()
    with pytest.raises(TypeError, match="config must be a tf.ConfigProto"):
        tf.InteractiveSession(config=5)


def test_a_session_that_does_not_close_after_an_error_is_told(monkeypatch,
                                                              caplog):
    released = threading.Event()
    monkeypatch.setattr(session, "_CLOSE_SECS", 0)
    monkeypatch.setattr(tf.Session, "close", lambda self: released.wait(60))
    with pytest.raises(KeyError):
        with tf.Session():
            raise KeyError("x")
    released.set()
    assert "Session failed to close after 0 seconds. Continuing after this " \
        "point may leave your program in an undefined state." in \
        caplog.text


@pytest.mark.parametrize("accept_options", [True, False])
def test_a_callable_without_feeds_takes_options_if_it_says_so(accept_options):
    one = tf.constant(1.0)
    with tf.Session() as sess:
        call = sess.make_callable({"a": one, "b": [one, one.op]},
                                  accept_options=accept_options)
        assert call() == {"a": 1.0, "b": [1.0, None]}
        metadata = tf.RunMetadata()
        options = {"options": tf.RunOptions(trace_level=3),
                   "run_metadata": metadata}
        if accept_options:
            call(**options)
            assert metadata.step_stats.dev_stats
        else:
            with pytest.raises(TypeError):
                call(**options)


def test_a_callable_with_feeds_takes_options():
    x = tf.placeholder(tf.float32, [])
    with tf.Session() as sess:
        call = sess.make_callable(x + 1.0, [x])
        metadata = tf.RunMetadata()
        assert call(2.0, options=tf.RunOptions(trace_level=3),
                    run_metadata=metadata) == 3.0
        assert metadata.step_stats.dev_stats


def test_wrong_fetches_are_found_when_the_callable_is_made():
    one = tf.constant(1.0)
    sess = tf.Session()
    with pytest.raises(ValueError, match="'nope:0' cannot be interpreted as"):
        sess.make_callable("nope:0")
    call = sess.make_callable(one)
    sess.close()
    with pytest.raises(RuntimeError, match="closed Session"):
        call()
    with pytest.raises(RuntimeError, match="closed Session"):
        sess.make_callable(one)


@pytest.mark.parametrize("kind", ["", "server", "remote"])
def test_every_so_many_steps_return_their_cost_graph(kind):
    server = tf.train.Server.create_local_server()
    target = {"": "", "server": server.target,
              "remote": server.target.replace("localhost", "LOCALHOST")}[kind]
    x = tf.placeholder(tf.float32, [None], name="x")
    y = tf.reduce_sum(tf.negative(x, name="n"), name="y")
    config = tf.ConfigProto()
    config.graph_options.build_cost_model = 3
    config.graph_options.build_cost_model_after = 1
    graphs = []
    with tf.Session(target, config=config) as sess:
        for _ in range(8):
            metadata = tf.RunMetadata()
            sess.run(y, {x: [1.0] * 1000}, run_metadata=metadata)
            graphs.append(metadata.cost_graph)
            assert not metadata.step_stats.dev_stats
    # The same steps as in a session of TensorFlow 1.15.5.
    assert [len(g.node) > 0 for g in graphs] == [
        False, False, False, True, False, False, True, False]
    nodes = {node.name: node for node in graphs[3].node}
    by_id = {node.id: node.name for node in graphs[3].node}
    assert len(by_id) == len(graphs[3].node)
    n, y = nodes["n"], nodes["y"]
    assert n.device.endswith("/device:CPU:0")
    assert by_id[y.input_info[0].preceding_node] == "n"
    assert n.output_info[0].size == 4000
    assert n.output_info[0].alias_input_port == -1
    assert [d.size for d in n.output_info[0].shape.dim] == [1000]
    assert n.output_info[0].dtype == tf.float32.as_datatype_enum
    server.stop()


def test_options_that_cannot_be_are_refused():
    with tf.Session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError) as error:
            sess.run(tf.constant(1),
                     options=tf.RunOptions(inter_op_thread_pool=7))
        # As TensorFlow 1.15.5 says it.
        assert error.value.message == "Invalid inter_op_thread_pool: 7"
        options = tf.RunOptions()
        options.debug_options.debug_tensor_watch_opts.add(node_name="c")
        with pytest.raises(tf.errors.UnimplementedError):
            sess.run(tf.constant(1), options=options)


@pytest.mark.parametrize("make", [
    "tf.Session(config=c)",
    "tf.train.Server({'a': ['localhost:0']}, config=c)"])
def test_the_first_that_says_how_many_threads_compute_decides(make):
    program = f"""
import os
import sluice as tf
c = tf.ConfigProto(intra_op_parallelism_threads=3)
first = {make}
c = tf.ConfigProto(intra_op_parallelism_threads=5)
with tf.Session(config=c) as sess:
    x = tf.placeholder_with_default(tf.ones([400, 400]), [400, 400])
    sess.run(tf.matmul(x, x))
names = [open("/proc/self/task/%s/comm" % t).read().strip()
         for t in os.listdir("/proc/self/task")]
print(names.count("sluice-compute"))
"""
    ran = subprocess.run([sys.executable, "-c", program], check=True,
                         capture_output=True, text=True)
    assert ran.stdout == "3\n"
