"""What is left of processes that were killed, and of steps that were given up:
nothing, on any task."""

import json
import os
import signal
import subprocess

import pytest

from conftest import SLUICE, wait_until

pytestmark = pytest.mark.usefixtures("way")

# Opens a session and does what its input tells.
CLIENT = """
    import sys
    import tensorflow as tf
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(1, tf.int32, name="q")
        element = queue.dequeue(name="element")
    with tf.device("/job:worker/task:0"):
        wait = tf.negative(element)
        one = tf.constant(1)
    session = tf.Session(sys.argv[1])
    print("result", session.run(one))
    for word in sys.stdin:
        word = word.strip()
        try:
            if word == "timeout":
                session.run(wait, options=tf.RunOptions(timeout_in_ms=300))
            elif word == "wait":
                session.run(wait)
            else:
                print("again", session.run(one))
        except tf.errors.OpError as e:
            print("failed", type(e).__name__)
    """


def status(address):
    """What a task tells of itself."""
    out = subprocess.check_output([SLUICE, "status", address, "--json"],
                                  timeout=60)
    return json.loads(out)


def steps(told):
    return sum(len(session["steps"])
               for session in told["sessions"] + told["served_sessions"])


def is_quiet(address):
    told = status(address)
    return (steps(told) == 0 and not told["transfers"] and
            not [w for w in told["waits"] if w["step_id"] != "0"])


class Cluster(object):
    def __init__(self, processes, addresses):
        self.ps_address, self.worker_address = addresses(2)
        spec = {"ps": [self.ps_address], "worker": [self.worker_address]}
        self._processes = processes
        self.ps = processes.server(spec, "ps")
        self.worker = processes.server(spec, "worker")

    def client(self):
        client = self._processes.python(CLIENT, "grpc://" + self.worker_address)
        client.expect("result 1")
        return client

    def sessions(self):
        return len(status(self.worker_address)["sessions"])

    def served(self):
        return len(status(self.ps_address)["served_sessions"])


@pytest.fixture
def cluster(processes, addresses, monkeypatch):
    monkeypatch.setenv("SLUICE_SESSION_GRACE_SECONDS", "1")
    # Held sessions must not depend on this one.
    monkeypatch.setenv("SLUICE_SESSION_IDLE_SECONDS", "1")
    return Cluster(processes, addresses)


def test_the_session_of_a_killed_client_is_collected(cluster):
    idle = cluster.client()
    killed = cluster.client()
    assert cluster.sessions() == 2
    killed.kill()
    wait_until(lambda: cluster.sessions() == 1, "the session is collected")
    assert "Collecting session" in cluster.worker.output
    wait_until(lambda: cluster.served() == 1, "the ps forgets it too")
    # Who lives and is idle keeps its own.
    idle.say("again")
    idle.expect("again 1")


def test_the_step_of_a_killed_client_ends_everywhere(cluster):
    client = cluster.client()
    client.say("wait")
    wait_until(lambda: steps(status(cluster.ps_address)) == 1, "the step waits")
    client.kill()
    for address in [cluster.ps_address, cluster.worker_address]:
        wait_until(lambda: is_quiet(address), "%s is quiet" % address)


def test_the_sessions_of_a_killed_master_are_collected(cluster):
    client = cluster.client()
    client.say("wait")
    wait_until(lambda: steps(status(cluster.ps_address)) == 1, "the step waits")
    cluster.worker.kill()
    wait_until(lambda: cluster.served() == 0, "the ps collects the session")
    wait_until(lambda: is_quiet(cluster.ps_address), "the ps is quiet")


def test_a_timed_out_step_leaves_nothing_on_any_task(cluster):
    client = cluster.client()
    client.say("timeout")
    client.expect("failed DeadlineExceededError")
    for address in [cluster.ps_address, cluster.worker_address]:
        wait_until(lambda: is_quiet(address), "%s is quiet" % address)
    client.say("again")
    client.expect("again 1")
    told = status(cluster.worker_address)
    assert int(told["steps_failed"]) == 1
    assert int(told["steps_started"]) == 3


def test_a_stuck_step_is_told_with_who_owes_what(processes, addresses,
                                                 monkeypatch):
    monkeypatch.setenv("SLUICE_STALL_SECONDS", "1")
    cluster = Cluster(processes, addresses)
    client = cluster.client()
    client.say("wait")
    line = cluster.worker.expect("has waited")
    assert "of session " in line
    assert "tensor edge_" in line
    assert " from /job:ps/replica:0/task:0" in line
    # The ps itself waits, and may.
    assert "node element on /job:ps/replica:0/task:0" in line
    assert "for as long as that takes" in line
    # Once more, later, with a ps that says nothing any more.
    cluster.ps.signal(signal.SIGSTOP)
    line = cluster.worker.expect("does not tell what it does")
    cluster.ps.signal(signal.SIGCONT)
    assert "no answer from " + cluster.ps_address in line


def test_a_stuck_step_is_told_under_tls_too(processes, addresses, monkeypatch):
    monkeypatch.setenv("SLUICE_STALL_SECONDS", "1")
    assert processes.sluice("certs", "certs").wait() == 0
    files = {"SLUICE_TLS_" + name: str(processes.path / "certs" / file)
             for name, file in [("CERT", "tls.crt"), ("KEY", "tls.key"),
                                ("CA", "ca.crt")]}
    ps, worker = addresses(2)
    cluster = "ps=%s;worker=%s" % (ps, worker)
    # The servers know their certificates by the option alone.
    servers = [processes.sluice("server", "--cluster", cluster, "--job", job,
                                "--tls", "certs") for job in ["ps", "worker"]]
    for server in servers:
        server.expect("Started server")
    client = processes.python(CLIENT, "grpc://" + worker,
                              env=dict(os.environ, **files))
    client.expect("result 1")
    client.say("wait")
    line = servers[1].expect("has waited")
    assert "node element on /job:ps/replica:0/task:0" in line


def test_a_finished_sibling_blocks_nobody(processes, addresses):
    ps, first, second = addresses(3)
    spec = {"ps": [ps], "worker": [first, second]}
    processes.server(spec, "ps")
    master = processes.server(spec, "worker", 0)
    processes.server(spec, "worker", 1).kill()
    client = processes.python("""
        import sys
        import tensorflow as tf
        with tf.device("/job:ps"):
            a = tf.Variable(2)
        with tf.device("/job:worker/task:0"):
            b = a + 1
        with tf.Session(sys.argv[1]) as session:
            session.run(tf.global_variables_initializer())
            print("result", session.run(b))
            with tf.device("/job:worker/task:1"):
                c = b + 1
            try:
                session.run(c, options=tf.RunOptions(timeout_in_ms=6000))
            except tf.errors.DeadlineExceededError as e:
                print("needs it:", e.message)
            print("then", session.run(c), len(session.list_devices()))
        """, "grpc://" + first)
    client.expect("result 3")
    master.expect("goes on without /job:worker/replica:0/task:1")
    # A step that needs it waits for it, and says so.
    line = master.expect("still waiting for response")
    assert "/job:worker/replica:0/task:1" in line
    assert second in line and "refused" in line
    client.expect("needs it:")
    # It is there after all.
    processes.server(spec, "worker", 1)
    client.expect("then 4 3")
    assert client.wait() == 0, client.output
