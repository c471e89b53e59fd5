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


# Takes longer than a thread keeps the interpreter's lock when others want it.
SLOW = """
import sys
from sluice import _sluice
from sluice.framework import errors

sys.setswitchinterval(1e-4)

def dawdle():
    for _ in range(200000):
        pass

def make_slowly(code, message):
    dawdle()
    return errors._make(code, message)
"""

CALLS = {
    "a py_func": """
        def spin():
            going.release()
            while True:
                pass
        y = tf.py_func(spin, [], [])
        sess = tf.Session()
        threading.Thread(target=lambda: sess.run(y), daemon=True).start()
        going.acquire()
    """,
    # It is made while the step's feeds, which lie in NumPy's memory, wait.
    "an error of a step": """
        import numpy as np
        _sluice.set_error_factory(make_slowly)
        x = tf.placeholder(tf.float32, [None])
        y = tf.check_numerics(x, "failed")
        sess = tf.Session()
        feeds = {x: np.full([1000], np.nan, np.float32)}
        def step():
            try:
                sess.run(y, feeds)
            except tf.errors.InvalidArgumentError:
                pass
        in_daemon_threads(step)
    """,
    "an error of a step with options": """
        _sluice.set_error_factory(make_slowly)
        y = tf.check_numerics(tf.constant(1.0) / 0.0, "failed")
        sess = tf.Session()
        options = tf.RunOptions(timeout_in_ms=600000)
        def step():
            try:
                sess.run(y, options=options)
            except tf.errors.InvalidArgumentError:
                pass
        in_daemon_threads(step)
    """,
    "a gradient": """
        @tf.RegisterGradient("Slow")
        def gradient(op, dy):
            dawdle()
            return dy
        def build():
            with tf.Graph().as_default() as graph:
                x = tf.constant(1.0)
                with graph.gradient_override_map({"Sqrt": "Slow"}):
                    y = tf.sqrt(x)
                tf.gradients(y, x)
        in_daemon_threads(build)
    """,
    "a loop's body and a device function": """
        def device(op):
            dawdle()
            return "/cpu:0"
        def body(i):
            dawdle()
            return i + 1
        def build():
            with tf.Graph().as_default(), tf.device(device):
                tf.while_loop(lambda i: i < 3, body, [tf.constant(0)])
        in_daemon_threads(build, count=2)
    """,
}


@pytest.mark.parametrize("what", sorted(CALLS))
def test_a_program_ends_while_the_engine_calls(what):
    ends_well(SLOW + textwrap.dedent(CALLS[what]))
