"""A program ends with status 0 wherever its daemon threads are: real
processes."""

import subprocess
import sys
import textwrap

import pytest

# A thread is met at another place each time.
_RUNS = 3
_DEADLINE_SECS = 60

# Ends when each of its threads has done `what` and does it again.
HEAD = """
import threading
import sluice as tf

going = threading.Semaphore(0)

def in_daemon_threads(what, count=4):
    def loop():
        while True:
            what()
            going.release()
    for _ in range(count):
        threading.Thread(target=loop, daemon=True).start()
    for _ in range(3 * count):
        going.acquire()
"""

PLACES = {
    "a step": """
        x = tf.placeholder(tf.float32, [None])
        y = tf.reduce_sum(tf.sqrt(x))
        sess = tf.Session()
        in_daemon_threads(lambda: sess.run(y, {x: [4.0] * 1000}))
    """,
    "a step with options": """
        y = tf.reduce_sum(tf.random_uniform([1000]))
        sess = tf.Session()
        options = tf.RunOptions(timeout_in_ms=600000)
        in_daemon_threads(lambda: sess.run(y, options=options))
    """,
    "a step that fails": """
        y = tf.check_numerics(tf.constant(1.0) / 0.0, "failed")
        sess = tf.Session()
        def step():
            try:
                sess.run(y)
            except tf.errors.InvalidArgumentError:
                pass
        in_daemon_threads(step)
    """,
    "a step that waits": """
        get = tf.FIFOQueue(1, tf.float32).dequeue()
        sess = tf.Session()
        def step():
            going.release()
            sess.run(get)
        threading.Thread(target=step, daemon=True).start()
        going.acquire()
    """,
    "a partial run": """
        x = tf.placeholder(tf.float32, [])
        y = x + 1.0
        sess = tf.Session()
        def step():
            run = sess.partial_run_setup([y], [x])
            sess.partial_run(run, y, {x: 1.0})
        in_daemon_threads(step)
    """,
    "a queue runner": """
        number = tf.train.range_input_producer(1000).dequeue()
        batch = tf.train.batch([number], 4)
        sess = tf.Session()
        tf.train.start_queue_runners(sess)
        for _ in range(3):
            sess.run(batch)
    """,
    "a file": """
        def write():
            with tf.python_io.TFRecordWriter("/dev/null") as writer:
                for _ in range(1000):
                    writer.write(b"record")
        in_daemon_threads(write)
    """,
}


def ends_well(program):
    for _ in range(_RUNS):
        done = subprocess.run(
            [sys.executable, "-c", HEAD + textwrap.dedent(program)],
            timeout=_DEADLINE_SECS, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("where", sorted(PLACES))
def test_a_program_ends_while_daemon_threads_are_in(where):
    ends_well(PLACES[where])
