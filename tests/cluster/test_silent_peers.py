"""Peers that go away in the middle of something, or fall silent: a host that
lost its power sends no goodbye."""

import signal

import pytest

from conftest import wait_until
from tap import Tap
from test_vanished import CLIENT, is_quiet, status, steps


class Cluster(object):
    def __init__(self, processes, addresses):
        self.ps, self.worker = addresses(2)
        processes.server({"ps": [self.ps], "worker": [self.worker]}, "ps")
        self.tap_of_ps = Tap(self.ps)
        self.tap_of_worker = Tap(self.worker)
        # The worker reaches the ps through the tap only.
        self.worker_process = processes.server(
            {"ps": [self.tap_of_ps.address], "worker": [self.worker]}, "worker")


@pytest.fixture
def cluster(processes, addresses, monkeypatch):
    monkeypatch.setenv("SLUICE_LANE", "grpc")
    monkeypatch.setenv("SLUICE_SESSION_GRACE_SECONDS", "1")
    made = Cluster(processes, addresses)
    yield made
    made.tap_of_ps.close()
    made.tap_of_worker.close()


def test_what_a_killed_receiver_has_not_fetched_is_dropped(processes, cluster):
    client = processes.python("""
        import sys
        import tensorflow as tf
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(tf.zeros([1 << 23]))
            large = v + 1.0
        with tf.device("/job:worker/task:0"):
            first, whole = tf.negative(v[0]), tf.negative(large)
        session = tf.Session(sys.argv[1])
        session.run(v.initializer)
        print("result", session.run(first))
        sys.stdin.readline()
        session.run(whole.op)
        """, "grpc://" + cluster.worker)
    client.expect("result")
    in_use = int(status(cluster.ps)["buffer_bytes_in_use"])
    cluster.tap_of_ps.let_through(8 << 20)
    client.say("go")
    wait_until(lambda: any(int(t["bytes_left"])
                           for t in status(cluster.ps)["transfers"]),
               "the tensor is on its way")
    cluster.worker_process.kill()
    wait_until(lambda: is_quiet(cluster.ps), "the ps is quiet")
    wait_until(
        lambda: int(status(cluster.ps)["buffer_bytes_in_use"]) <= in_use,
        "the tensor is gone")


def test_the_step_and_session_of_a_silent_client_are_collected(processes,
                                                               cluster):
    client = processes.python(CLIENT, "grpc://" + cluster.tap_of_worker.address)
    client.expect("result 1")
    client.say("wait")
    wait_until(lambda: steps(status(cluster.ps)) == 1, "the step waits")
    cluster.tap_of_worker.fall_silent()
    wait_until(lambda: not status(cluster.worker)["sessions"],
               "the session is collected")
    for address in [cluster.ps, cluster.worker]:
        wait_until(lambda: is_quiet(address), "%s is quiet" % address)


def test_the_sessions_of_a_silent_master_are_collected(processes, cluster):
    client = processes.python(CLIENT, "grpc://" + cluster.worker)
    client.expect("result 1")
    client.say("wait")
    wait_until(lambda: steps(status(cluster.ps)) == 1, "the step waits")
    cluster.tap_of_ps.fall_silent()
    wait_until(lambda: not status(cluster.ps)["served_sessions"],
               "the session is collected")
    wait_until(lambda: is_quiet(cluster.ps), "the ps is quiet")


def test_sessions_do_not_wait_for_a_silent_master_one_after_the_other(
        processes, addresses, way):
    worker, = addresses(1)
    server = processes.server({"worker": [worker]}, "worker")
    client = processes.python("""
        import sys
        import tensorflow as tf
        one = tf.constant(1)
        config = tf.ConfigProto(operation_timeout_in_ms=3000)
        sessions = {name: tf.Session(sys.argv[1], config=config)
                    for name in ("first", "second", "third", "fourth")}
        for session in sessions.values():
            session.run(one)
        print("ready")
        for line in sys.stdin:
            word, name = line.split()
            if word == "run":
                sessions[name].run(one)
            else:
                sessions[name].close()
            print("did", word, name)
        """, "grpc://" + worker)
    client.expect("ready")

    def do(words):
        client.say(words)
        client.expect("did " + words)
        return len(client.lines("Closing session "))

    server.signal(signal.SIGSTOP)
    assert do("close first") == 1
    assert client.lines("did not answer in time")
    assert do("close second") == 2
    assert client.lines("did not answer when the last one was closed")
    server.signal(signal.SIGCONT)
    # It is heard of again, and waited for.
    do("run fourth")
    assert do("close third") == 2
    server.signal(signal.SIGSTOP)
    assert do("close fourth") == 3
    assert len(client.lines("did not answer in time")) == 2
    server.signal(signal.SIGCONT)
