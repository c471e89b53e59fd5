"""Peers that go away in the middle of something, or fall silent: a host that
lost its power sends no goodbye."""

import socket
import threading

import pytest

from conftest import wait_until
from test_vanished import CLIENT, is_quiet, status, steps


class Tap(object):
    """Forwards connections to a server, until it is told to stop."""

    def __init__(self, address):
        host, port = address.split(":")
        self._to = (host, int(port))
        self._listener = socket.socket()
        self._listener.bind(("localhost", 0))
        self._listener.listen(16)
        self.address = "localhost:%d" % self._listener.getsockname()[1]
        self._changed = threading.Condition()
        self._answers_left = None
        self._silent = False
        self._open = []
        threading.Thread(target=self._accept, daemon=True).start()

    def let_through(self, size):
        """Holds back what the server sends after so many bytes."""
        with self._changed:
            self._answers_left = size

    def fall_silent(self):
        """Swallows everything, also the ends of connections."""
        with self._changed:
            self._silent = True

    def close(self):
        with self._changed:
            self._silent = True
            self._changed.notify_all()
        self._listener.close()
        for end in self._open:
            end.close()

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._to)
            except OSError:
                return
            self._open += [near, far]
            for ends in ((near, far, False), (far, near, True)):
                threading.Thread(target=self._forward, daemon=True,
                                 args=ends).start()

    def _forward(self, source, sink, answers):
        try:
            while True:
                data = source.recv(1 << 16)
                if not data:
                    break
                with self._changed:
                    if answers and self._answers_left is not None:
                        while self._answers_left <= 0 and not self._silent:
                            self._changed.wait()
                        self._answers_left -= len(data)
                    if self._silent:
                        continue
                sink.sendall(data)
        except OSError:
            pass
        if self._silent:
            return
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


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
