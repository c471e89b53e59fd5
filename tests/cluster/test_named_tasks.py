"""The task that is lost, silent or slow is the one that an error names, and
nobody else is: neither the tasks that live nor the master that tells of it."""

import signal

import pytest

CLIENT = """
    import sys
    import tensorflow as tf
    target, timed = sys.argv[1], tf.RunOptions(timeout_in_ms=1000)
    with tf.device("/job:worker/task:2"):
        x = tf.placeholder(tf.float32, [])
        last = x * 2.0
        queue = tf.FIFOQueue(1, [tf.float32])
    with tf.device("/job:worker/task:1"):
        middle = last + 1.0
    with tf.device("/job:worker/task:0"):
        end = middle + 1.0
    config = tf.ConfigProto(operation_timeout_in_ms=int(sys.argv[2]))
    session = tf.Session(target, config=config)
    print("ready", session.run(end, {x: 1.0}), flush=True)

    def step():
        session.run(end, {x: 1.0})

    def new_step():
        session.run(last + 5.0, {x: 1.0})

    def late_step():
        session.run(end, {x: 1.0}, options=timed)

    def set_up():
        session.partial_run_setup([last + 7.0], [x])

    def partial():
        handle = session.partial_run_setup([last, queue.dequeue()], [x])
        session.partial_run(handle, last, {x: 1.0})
        session.partial_run(handle, session.graph.get_tensor_by_name(
            "fifo_queue_Dequeue:0"))

    def reset():
        tf.Session.reset(target)

    for word in sys.stdin:
        try:
            globals()[word.strip()]()
        except tf.errors.OpError as e:
            print(word.strip(), type(e).__name__, "of",
                  " ".join(e.message.split()), flush=True)
    """


class Cluster(object):
    def __init__(self, processes, addresses, timeout=0):
        self.workers = addresses(3)
        spec = {"worker": self.workers}
        self.tasks = [processes.server(spec, "worker", i) for i in range(3)]
        self.client = processes.python(
            CLIENT, "grpc://" + self.workers[0], str(timeout))
        self.client.expect("ready")

    def error_of(self, word, kind):
        self.client.say(word)
        line = self.client.expect("%s %s of " % (word, kind))
        assert "_Derived_" not in line
        assert "The master at" not in line
        assert "worker/replica:0/task:1 at" not in line, "it lives"
        return line


def lost(cluster):
    return ("Lost connection to /job:worker/replica:0/task:2 at %s"
            % cluster.workers[2])


def silent(cluster):
    return ("No answer from /job:worker/replica:0/task:2 at %s"
            % cluster.workers[2])


def test_a_killed_task_is_the_only_one_that_is_lost(processes, addresses, way):
    cluster = Cluster(processes, addresses)
    cluster.tasks[2].kill()
    assert lost(cluster) in cluster.error_of("step", "UnavailableError")


@pytest.mark.parametrize("word", ["set_up", "reset"])
def test_a_master_that_tells_of_a_killed_task_is_there(processes, addresses,
                                                       way, word):
    cluster = Cluster(processes, addresses)
    cluster.tasks[2].kill()
    assert lost(cluster) in cluster.error_of(word, "UnavailableError")


@pytest.mark.parametrize("word", ["late_step", "new_step", "set_up"])
def test_a_stopped_task_is_named_when_the_time_is_over(processes, addresses,
                                                       way, word):
    cluster = Cluster(processes, addresses, timeout=1000)
    cluster.tasks[2].signal(signal.SIGSTOP)
    assert silent(cluster) in cluster.error_of(word, "DeadlineExceededError")
    cluster.tasks[2].signal(signal.SIGCONT)


def test_a_reset_waits_ten_seconds_for_a_stopped_task(processes, addresses):
    cluster = Cluster(processes, addresses)
    cluster.tasks[2].signal(signal.SIGSTOP)
    assert silent(cluster) in cluster.error_of("reset",
                                               "DeadlineExceededError")
    cluster.tasks[2].signal(signal.SIGCONT)


def test_a_partial_run_ends_in_time_and_says_where_it_still_ran(
        processes, addresses, way):
    cluster = Cluster(processes, addresses, timeout=1000)
    line = cluster.error_of("partial", "DeadlineExceededError")
    assert "Operation timed out. The step still ran on" in line
    assert "No answer" not in line
