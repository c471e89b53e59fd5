"""Threads may build a graph and run it at the same time."""

import threading

import pytest

import sluice as tf

_DEADLINE_SECS = 60


def _build_loops(a):
    tf.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)])


def _build_gradients(a):
    x = a
    for _ in range(10):
        x = tf.tanh(x) * x
    tf.gradients(x, [a])


def _set_attributes(a):
    op = tf.constant(1.0).op
    for k in range(50):
        op._set_attr("_x%d" % k, tf.AttrValue(s=b"y" * 50))


@pytest.mark.parametrize("build", [_build_loops, _build_gradients,
                                   _set_attributes])
def test_sessions_open_while_another_thread_builds(build):
    graph = tf.Graph()
    with graph.as_default():
        a = tf.placeholder(tf.float32, [])
        b = a + 1.0
    built = threading.Event()
    wrong = []

    def use():
        try:
            while not built.is_set():
                with tf.Session(graph=graph) as sess:
                    assert sess.run(b, {a: 1.0}) == 2.0
        except Exception as e:
            wrong.append(e)

    users = [threading.Thread(target=use) for _ in range(2)]
    for user in users:
        user.start()
    try:
        with graph.as_default():
            for _ in range(100):
                build(a)
    finally:
        built.set()
        for user in users:
            user.join(_DEADLINE_SECS)
    assert not wrong
    assert not any(user.is_alive() for user in users)


def test_a_session_waits_for_the_end_of_a_loop_that_is_being_built():
    graph = tf.Graph()
    results = []
    threads = []

    def run():
        with tf.Session(graph=graph) as sess:
            results.append(sess.run(one))

    def body(i):
        threads.append(threading.Thread(target=run))
        threads[0].start()
        threads[0].join(0.3)
        assert threads[0].is_alive() and not results
        return i + 1

    with graph.as_default():
        one = tf.constant(1)
        tf.while_loop(lambda i: i < 3, body, [tf.constant(0)])
    threads[0].join(_DEADLINE_SECS)
    assert results == [1]


def test_another_thread_adds_its_nodes_after_the_loop():
    graph = tf.Graph()
    threads = []
    added = []

    def add():
        with graph.as_default():
            added.append(tf.constant(5, name="of_the_thread"))

    def body(i):
        threads.append(threading.Thread(target=add))
        threads[0].start()
        threads[0].join(0.1)
        return i + 1

    with graph.as_default():
        result = tf.while_loop(lambda i: i < 3, body, [tf.constant(0)])
    threads[0].join(_DEADLINE_SECS)
    with tf.Session(graph=graph) as sess:
        assert sess.run([result, added[0]]) == [3, 5]


def test_a_function_that_builds_a_part_of_the_graph_cannot_run_it():
    graph = tf.Graph()
    with graph.as_default():
        one = tf.constant(1)
        sess = tf.Session()

        def body(i):
            sess.run(one)
            return i + 1

        with pytest.raises(tf.errors.FailedPreconditionError,
                           match="cannot run a graph from a function"):
            tf.while_loop(lambda i: i < 3, body, [tf.constant(0)])
        with pytest.raises(tf.errors.FailedPreconditionError):
            with tf.device(lambda op: sess.list_devices()[0].name):
                tf.constant(2)
    sess.close()


def test_a_device_function_may_add_an_operation():
    helpers = []

    def device(op):
        if op.name == "a":
            helpers.append(tf.constant(1.0, name="helper"))
        return "/cpu:0"

    with tf.Graph().as_default():
        with tf.device(device):
            a = tf.constant(2.0, name="a")
        assert a.device == "/cpu:0"
        assert helpers[0].op.name == "helper"
        with tf.Session() as sess:
            assert sess.run([a, helpers[0]]) == [2.0, 1.0]
