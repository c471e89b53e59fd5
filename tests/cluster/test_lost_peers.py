"""What a client sees when a server of its cluster dies, stops or restarts."""

import re
import signal

import pytest

from conftest import wait_until

# Does what its input tells, one word a line, so that the test decides when.
CLIENT = """
    import sys
    import tensorflow as tf

    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
        add = tf.assign_add(v, 1.0)
        queue = tf.FIFOQueue(1, tf.int32)
        element = queue.dequeue()
    with tf.device("/job:worker/task:0"):
        double = v * 2.0
    fetches = {"init": tf.global_variables_initializer(), "add": add,
               "dequeue": element, "double": double}

    session = None
    for word in sys.stdin:
        word = word.strip()
        print("doing", word)
        try:
            if word == "open":
                session = tf.Session(sys.argv[1])
                result = None
            elif word == "close":
                result = session.close()
            else:
                result = session.run(fetches[word])
            print("did", word, result)
        except tf.errors.OpError as e:
            print("failed", word, type(e).__name__ + ":",
                  e.message.replace("\\n", " | "))
    """


class Cluster(object):
    """A ps, a worker, and a client of the worker's master."""

    def __init__(self, processes, addresses):
        ps, worker = addresses(2)
        self._processes = processes
        self._spec = {"ps": [ps], "worker": [worker]}
        self.ps = self.start("ps")
        self.worker = self.start("worker")
        self._client = processes.python(CLIENT, "grpc://" + worker)
        self._done = 0
        for word in ["open", "init", "add", "double"]:
            assert self.do(word).startswith("did "), self._client.output

    def start(self, job):
        return self._processes.server(self._spec, job)

    def begin(self, word):
        """Tells the client to do something, without waiting for the end."""
        before = len(self._client.lines("doing " + word))
        self._client.say(word)
        self._client.expect("doing " + word, after=before)

    def expect(self, text):
        return self._client.expect(text)

    def end(self):
        """How what was begun ended: "did WORD …" or "failed WORD …"."""
        pattern = re.compile("^(did|failed) ")

        def ends():
            return [line for line in self._client.output.splitlines()
                    if pattern.match(line)]
        wait_until(lambda: len(ends()) > self._done,
                   "the client ends what it does")
        self._done += 1
        return ends()[self._done - 1]

    def do(self, word):
        self._client.say(word)
        return self.end()


@pytest.fixture
def cluster(processes, addresses):
    return Cluster(processes, addresses)


PS = "/job:ps/replica:0/task:0"


def test_a_killed_peer_ends_the_step_at_once(cluster):
    cluster.begin("dequeue")
    cluster.ps.kill()
    line = cluster.end()
    assert "UnavailableError" in line
    assert PS in line
    # So does a step that begins while the peer is away.
    line = cluster.do("double")
    assert "UnavailableError" in line
    assert PS in line
    assert cluster.do("close").startswith("did close")


def test_a_restarted_peer_aborts_the_old_session(cluster):
    cluster.ps.kill()
    cluster.start("ps")
    line = cluster.do("double")
    # The master may not have noticed yet that its connection is dead.
    if "UnavailableError" in line:
        line = cluster.do("double")
    assert "AbortedError" in line
    assert "just restarted" in line or "was probably restarted" in line
    assert PS in line
    # A new session works at once, with what the new process knows.
    cluster.do("close")
    cluster.do("open")
    line = cluster.do("double")
    assert "FailedPreconditionError" in line
    assert "Attempting to use uninitialized value v" in line
    cluster.do("init")
    assert cluster.do("double") == "did double 0.0"


def test_a_restarted_master_aborts_the_old_session(cluster):
    cluster.worker.kill()
    cluster.begin("double")
    cluster.expect("Waiting for the master at ")
    cluster.start("worker")
    line = cluster.end()
    assert re.search("AbortedError: Session [0-9a-f]{16} is not found", line)
    cluster.do("close")
    cluster.do("open")
    assert cluster.do("double") == "did double 2.0"


def test_a_master_that_stays_away_is_an_error_after_a_while(cluster):
    cluster.worker.kill()
    line = cluster.do("double")
    assert "UnavailableError: The master at " in line
    assert "refused" in line
    assert cluster.do("close").startswith("did close")


def test_close_does_not_wait_for_a_stopped_peer(cluster):
    cluster.ps.signal(signal.SIGSTOP)
    assert cluster.do("close").startswith("did close")
    cluster.ps.signal(signal.SIGCONT)


def test_a_silent_peer_ends_the_step_after_a_while(cluster):
    cluster.begin("dequeue")
    cluster.ps.signal(signal.SIGSTOP)
    line = cluster.end()
    assert "UnavailableError" in line
    assert PS in line
    # It lost nothing, so the session goes on when it wakes up.
    cluster.ps.signal(signal.SIGCONT)
    line = cluster.do("double")
    if "UnavailableError" in line:
        line = cluster.do("double")
    assert line == "did double 2.0"
