"""How long calls of sessions wait."""

import os
import signal
import socket
import threading

import pytest

import sluice as tf
from sluice import _sluice

_DEADLINE_SECS = 60
KINDS = ["local", "own server", "remote"]


def _target(server, kind):
    # Only the server's own spelling is known to be of this process.
    return {"local": "", "own server": server.target,
            "remote": server.target.replace("localhost", "LOCALHOST")}[kind]


@pytest.fixture(scope="module")
def server():
    server = tf.train.Server.create_local_server()
    yield server
    server.stop()


@pytest.fixture
def half_a_cluster():
    """A server that waits for a task which never comes."""
    with socket.socket() as peer:
        peer.bind(("127.0.0.1", 0))
        server = tf.train.Server(
            {"here": ["localhost:0"],
             "peer": ["localhost:%d" % peer.getsockname()[1]]}, "here", 0)
        yield server
        server.stop()


def _timeout(ms):
    return tf.ConfigProto(operation_timeout_in_ms=ms)


@pytest.mark.parametrize("answers", [True, False])
def test_a_reset_ends_with_the_operation_timeout(answers):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        if answers:
            silent.listen(5)
        with pytest.raises(tf.errors.DeadlineExceededError):
            tf.Session.reset("grpc://localhost:%d" % silent.getsockname()[1],
                             config=_timeout(500))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ms", [10**13, 2**63 - 1])
def test_a_huge_limit_is_no_limit(server, kind, ms):
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(1, tf.float32)
        get, put = queue.dequeue(), queue.enqueue(1.0)
        with tf.Session(_target(server, kind), config=_timeout(ms)) as sess:
            later = threading.Timer(0.2, lambda: sess.run(put))
            later.start()
            options = tf.RunOptions(timeout_in_ms=ms)
            assert sess.run(get, options=options) == 1.0
            later.join()


def test_a_huge_deadline_for_tasks_is_none(server):
    config = tf.ConfigProto()
    config.rpc_options.sluice_task_deadline_in_ms = 2**63 - 1
    with tf.Graph().as_default():
        one = tf.constant(1)
        with tf.Session(_target(server, "remote"), config=config) as sess:
            assert sess.run(one) == 1


@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_step_does_not_wait_for_who_opens_the_session(half_a_cluster, kind):
    ended = []

    def open_session():
        try:
            sess.run(one)
        except tf.errors.CancelledError:
            ended.append(True)

    with tf.Graph().as_default(), tf.device("/job:peer"):
        one = tf.constant(1)
        sess = tf.Session(_target(half_a_cluster, kind))
        opener = threading.Thread(target=open_session, daemon=True)
        opener.start()
        while not _sluice.late_tasks(half_a_cluster.target):
            pass
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(one, options=tf.RunOptions(timeout_in_ms=300))
        sess.close()
        opener.join(_DEADLINE_SECS)
        assert ended


@pytest.fixture
def ctrl_c():
    # Whoever runs these tests in the background has it ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("kind", KINDS[1:])
def test_ctrl_c_ends_the_wait_for_who_opens_the_session(half_a_cluster, kind,
                                                        ctrl_c):
    def interrupt():
        while not _sluice.late_tasks(half_a_cluster.target):
            pass
        os.kill(os.getpid(), signal.SIGINT)

    def open_session():
        with pytest.raises(tf.errors.CancelledError):
            sess.run(one)

    with tf.Graph().as_default(), tf.device("/job:peer"):
        one = tf.constant(1)
        sess = tf.Session(_target(half_a_cluster, kind))
        opener = threading.Thread(target=open_session, daemon=True)
        opener.start()
        with pytest.raises(KeyboardInterrupt):
            threading.Thread(target=interrupt, daemon=True).start()
            sess.run(one)
        sess.close()
        opener.join(_DEADLINE_SECS)
        assert not opener.is_alive()


def _checked(ms):
    config = tf.ConfigProto()
    config.rpc_options.sluice_connect_timeout_in_ms = ms
    return config


@pytest.mark.parametrize("answers", [True, False])
def test_a_session_may_ask_for_its_master_at_once(answers):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        if answers:
            silent.listen(5)
        with pytest.raises(
                tf.errors.DeadlineExceededError,
                match="no answer" if answers else "nothing listens at"):
            tf.Session("grpc://localhost:%d" % silent.getsockname()[1],
                       config=_checked(300))


@pytest.mark.parametrize("kind", KINDS)
def test_a_master_that_is_there_answers(server, kind):
    with tf.Graph().as_default():
        one = tf.constant(1)
        with tf.Session(_target(server, kind),
                        config=_checked(60000)) as sess:
            assert sess.run(one) == 1


def test_ctrl_c_ends_the_wait_for_the_master(ctrl_c):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(5)
        with pytest.raises(KeyboardInterrupt):
            threading.Timer(0.1, os.kill,
                            [os.getpid(), signal.SIGINT]).start()
            tf.Session("grpc://localhost:%d" % silent.getsockname()[1],
                       config=_checked(60000))
