"""What a client sees when a server of its cluster dies, stops or restarts."""

import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from conftest import PATIENCE, wait_until

pytestmark = pytest.mark.usefixtures("way")

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
                  e.message.replace("\\n", " | "), "(code %d)" % e.error_code)
    """


class Cluster(object):
    """A ps, a worker, and a client of the worker's master."""

    def __init__(self, processes, ps, worker, within=None):
        """`within` maps jobs and "client" to words in front of commands."""
        self._processes = processes
        self._within = within or {}
        self._spec = {"ps": [ps], "worker": [worker]}
        self.worker_address = worker
        self.ps = self.start("ps")
        self.worker = self.start("worker")
        self._client = processes.python(CLIENT, "grpc://" + worker,
                                        within=self._within.get("client", ()))
        self._done = 0
        for word in ["open", "init", "add", "double"]:
            assert self.do(word).startswith("did "), self._client.output

    def start(self, job):
        return self._processes.server(self._spec, job,
                                      within=self._within.get(job, ()))

    def begin(self, word):
        """Tells the client to do something, without waiting for the end."""
        before = len(self._client.lines("doing " + word))
        self._client.say(word)
        self._client.expect("doing " + word, after=before)

    def expect(self, text, **options):
        return self._client.expect(text, **options)

    def _ends(self):
        return [line for line in self._client.output.splitlines()
                if re.match("(did|failed) ", line)]

    def ends_before(self, text):
        """Waits for the end of what was begun or a line with `text`, and
        returns which came first."""
        wait_until(lambda: len(self._ends()) > self._done or
                   self._client.lines(text), "the client goes on")
        return not self._client.lines(text)
    def end_of_input(self):
        """Lets the client come to its end; returns its exit status."""
        self._client.close_input()
        return self._client.wait()

    def end(self, seconds=PATIENCE):
        """How what was begun ended: "did WORD …" or "failed WORD …"."""
        wait_until(lambda: len(self._ends()) > self._done,
                   "the client ends what it does", seconds)
        self._done += 1
        return self._ends()[self._done - 1]

    def do(self, word):
        self._client.say(word)
        return self.end()


@pytest.fixture
def cluster(processes, addresses):
    return Cluster(processes, *addresses(2))


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


def once_connected(cluster):
    """How a step ends when the master has its connection to the ps again, which
    it tries every second at least."""
    deadline = time.monotonic() + PATIENCE
    while True:
        line = cluster.do("double")
        if "UnavailableError" not in line or time.monotonic() > deadline:
            return line
        time.sleep(0.1)


def test_a_restarted_peer_aborts_the_old_session(cluster):
    cluster.ps.kill()
    cluster.start("ps")
    line = once_connected(cluster)
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


# The second worker only computes; what lasts is on the ps.
STATELESS = """
    import sys
    import tensorflow as tf
    from tensorflow.core.protobuf import config_pb2

    target, server = sys.argv[1], None
    if target.isdigit():  # The master is here.
        spec = {"ps": [sys.argv[2]], "worker": sys.argv[3:]}
        server = tf.train.Server(spec, "worker", 0)
        target = server.target
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
        add = tf.assign_add(v, 1.0)
    with tf.device("/job:worker/task:1"):
        noise = tf.random_uniform([], 0.0, 1e-9)
        double, triple = v * 2.0 + noise, v * 3.0
        number = tf.placeholder(tf.float32, [])
        square = number * number
    session = tf.Session(target)
    session.run(v.initializer)
    step = session.make_callable(double)
    # One that the master keeps.
    options = config_pb2.CallableOptions(fetch=[square.name])
    options.tensor_connection.add(from_tensor=triple.name,
                                  to_tensor=number.name)
    kept = session._make_callable_from_options(options)
    fetches = {"add": add, "double": double, "triple": triple}
    for word in sys.stdin:
        word = word.strip()
        try:
            value = (step() if word == "callable" else
                     kept()[0] if word == "kept" else
                     session.run(fetches[word]))
            print("did %s %.1f" % (word, value))
        except tf.errors.OpError as e:
            print("failed", word, type(e).__name__)
    """


@pytest.mark.parametrize("master", ["elsewhere", "here"])
def test_a_restarted_peer_that_kept_nothing_is_taken_in_again(
        processes, addresses, master):
    """By the same session: only steps that met the loss fail."""
    ps, worker, other = addresses(3)
    spec = {"ps": [ps], "worker": [worker, other]}
    processes.server(spec, "ps")
    peer = processes.server(spec, "worker", 1)
    if master == "elsewhere":
        processes.server(spec, "worker")
        client = processes.python(STATELESS, "grpc://" + worker)
    else:
        client = processes.python(STATELESS, "0", ps, worker, other)

    def do(word):
        before = [len(client.lines("%s %s" % (how, word)))
                  for how in ("did", "failed")]
        client.say(word)
        wait_until(lambda: before != [len(client.lines("%s %s" % (how, word)))
                                      for how in ("did", "failed")],
                   "the client ends what it does")
        return client.lines(" %s " % word)[-1]

    def recovers(word, value):
        deadline = time.monotonic() + PATIENCE
        while True:
            line = do(word)
            if line == "did %s %s" % (word, value):
                return
            assert "failed" in line
            assert "Unavailable" in line or "Aborted" in line, line
            assert time.monotonic() < deadline, client.output

    assert do("add") == "did add 1.0"
    for _ in range(2):
        for word, value in (("double", 2.0), ("triple", 3.0),
                            ("callable", 2.0), ("kept", 9.0)):
            assert do(word) == "did %s %s" % (word, value)
        peer.kill()
        peer = processes.server(spec, "worker", 1)
        recovers("callable", 2.0)
        # Its other steps do not find out again.
        for word, value in (("double", 2.0), ("triple", 3.0), ("kept", 9.0),
                            ("kept", 9.0), ("callable", 2.0)):
            assert do(word) == "did %s %s" % (word, value)
    assert do("add") == "did add 2.0"


def test_a_restarted_master_aborts_the_old_session(cluster):
    cluster.worker.kill()
    cluster.begin("double")
    # One that was sent before the loss was noticed fails at once; the next one
    # waits for the master to come back.
    if cluster.ends_before("Waiting for the master at "):
        assert "UnavailableError" in cluster.end()
        cluster.begin("double")
    cluster.expect("Waiting for the master at ")
    cluster.start("worker")
    line = cluster.end()
    assert re.search("AbortedError: Session [0-9a-f]{16} is not found", line)
    cluster.do("close")
    cluster.do("open")
    assert cluster.do("double") == "did double 2.0"


def test_a_master_that_stays_away_is_an_error(cluster):
    """At once for a step that was under way, after a while for others."""
    cluster.begin("dequeue")
    cluster.worker.kill()
    assert "UnavailableError: The master at " in cluster.end()
    cluster.begin("double")
    cluster.expect("Waiting for the master at ")
    line = cluster.end()
    assert "UnavailableError: The master at " in line
    assert "refused" in line
    assert cluster.do("close").startswith("did close")


def test_a_stopped_master_is_told_and_given_up(cluster):
    cluster.begin("dequeue")
    cluster.worker.signal(signal.SIGSTOP)
    cluster.expect("Waiting for the master at ", seconds=15)
    line = cluster.end(seconds=45)
    assert "UnavailableError: The master at " in line
    assert "no answer from " in line
    cluster.worker.signal(signal.SIGCONT)


def test_a_master_that_is_told_to_end_names_itself(cluster):
    """And lets its clients recover, as for a restart of all tasks in turn."""
    cluster.begin("dequeue")
    cluster.worker.signal(signal.SIGTERM)
    line = cluster.end()
    assert "UnavailableError: The master " in line
    assert cluster.worker_address in line


def test_close_does_not_wait_for_a_stopped_peer(cluster):
    cluster.ps.signal(signal.SIGSTOP)
    assert cluster.do("close").startswith("did close")
    cluster.ps.signal(signal.SIGCONT)


def test_close_and_the_end_do_not_wait_for_a_stopped_master(cluster):
    cluster.worker.signal(signal.SIGSTOP)
    assert cluster.do("close").startswith("did close")
    cluster.expect("Closing session ")
    assert cluster.end_of_input() == 0
    cluster.worker.signal(signal.SIGCONT)


def test_the_end_of_a_program_does_not_wait_for_a_dead_master(cluster):
    cluster.worker.kill()
    assert cluster.end_of_input() == 0


def test_a_silent_peer_ends_the_step_after_a_while(cluster):
    cluster.begin("dequeue")
    cluster.ps.signal(signal.SIGSTOP)
    line = cluster.end()
    assert "UnavailableError" in line
    assert PS in line
    assert "no answer from " in line
    # It lost nothing, so the session goes on when it wakes up.
    cluster.ps.signal(signal.SIGCONT)
    assert once_connected(cluster) == "did double 2.0"


# A master in the program's own process: each line of input is the next thing
# to do while the ps does not answer.
OWN_MASTER = """
    import sys
    import threading
    import tensorflow as tf

    ps, worker = sys.argv[1:]
    server = tf.train.Server({"ps": [ps], "worker": [worker]}, "worker", 0)
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
    session = tf.Session(server.target)
    session.run(v.initializer)

    def timed_run():
        session.run(v + 1., options=tf.RunOptions(timeout_in_ms=500))

    def run():
        session.run(v + 2.)

    def build():
        # A thread that waits for the ps does not keep others from building.
        fetch, started = v + 3., threading.Event()

        def wait():
            started.set()
            try:
                session.run(fetch)
            except tf.errors.OpError as e:
                ended.append(e)
        ended, thread = [], threading.Thread(target=wait, daemon=True)
        thread.start()
        started.wait()
        with tf.device("/job:worker/task:0"):
            for i in range(100):
                session.run(tf.constant(i))
        assert not ended, ended

    def reset():
        config = tf.ConfigProto(operation_timeout_in_ms=500)
        tf.Session.reset(server.target, config=config)

    print("ready")
    for word in sys.stdin:
        word = word.strip()
        try:
            print("doing", word, flush=True)
            globals()[word]()
            print("did", word, flush=True)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        except tf.errors.OpError as e:
            print("failed", word, type(e).__name__, flush=True)
    """


def test_a_new_kind_of_step_waits_for_a_stopped_peer_no_longer_than_told(
        processes, addresses):
    ps, worker = addresses(2)
    server = processes.server({"ps": [ps], "worker": [worker]}, "ps")
    client = processes.python(OWN_MASTER, ps, worker)
    client.expect("ready")
    server.signal(signal.SIGSTOP)
    client.say("timed_run")
    client.expect("failed timed_run DeadlineExceededError")
    client.say("build")
    client.expect("did build")
    client.say("run")
    client.expect("doing run")
    client.signal(signal.SIGINT)
    client.expect("interrupted")
    client.say("reset")
    client.expect("failed reset DeadlineExceededError")
    server.signal(signal.SIGCONT)


class Network(object):
    """Two network namespaces with a link between them."""

    def __init__(self):
        self._names = ["sluice-%d-%s" % (os.getpid(), end) for end in "ab"]
        self.addresses = ["10.213.%d.%d" % (os.getpid() % 250, i)
                          for i in (1, 2)]
        for name in self._names:
            self._ip("netns", "add", name)
        a, b = self._names
        self._ip("-n", a, "link", "add", "left", "type", "veth", "peer",
                 "name", "right", "netns", b)
        for name, link, address in zip(self._names, ("left", "right"),
                                       self.addresses):
            self._ip("-n", name, "addr", "add", address + "/24", "dev", link)
            self._ip("-n", name, "link", "set", link, "up")
            self._ip("-n", name, "link", "set", "lo", "up")

    @staticmethod
    def _ip(*args):
        subprocess.run(("ip",) + args, check=True, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT)

    def within(self, end):
        """What runs a command at this end (0 or 1)."""
        return ("ip", "netns", "exec", self._names[end])

    def set_link(self, state):
        self._ip("-n", self._names[1], "link", "set", "right", state)

    def remove(self):
        for name in self._names:
            subprocess.run(["ip", "netns", "del", name],
                           stderr=subprocess.DEVNULL)


@pytest.fixture
def network():
    if shutil.which("ip") is None:
        pytest.skip("there is no `ip` to make network namespaces with")
    made = Network.__new__(Network)
    try:
        made.__init__()
    except subprocess.CalledProcessError as e:
        made.remove()
        # Any other reason is a mistake of the test.
        if "permi" not in str(e.output).lower():
            raise
        pytest.skip("network namespaces are not permitted: %s" % e.output)
    yield made
    made.remove()


def test_a_cut_link_ends_the_step_after_a_while(processes, network):
    here, there = network.addresses
    cluster = Cluster(processes, there + ":2222", here + ":2222",
                      {"ps": network.within(1), "worker": network.within(0),
                       "client": network.within(0)})
    cluster.begin("dequeue")
    network.set_link("down")
    line = cluster.end()
    assert "UnavailableError" in line
    assert PS in line
    # So it is while the link is away; nobody waits for it to close a session.
    assert "UnavailableError" in cluster.do("double")
    network.set_link("up")
    assert once_connected(cluster) == "did double 2.0"
    network.set_link("down")
    assert cluster.do("close").startswith("did close")
