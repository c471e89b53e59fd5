"""Ctrl-C ends what a program waits for: real processes, real signals."""

import os
import signal
import subprocess
import sys

import pytest

import sluice as tf

_PATH = os.path.dirname(os.path.dirname(os.path.abspath(tf.__file__)))
_DEADLINE_SECS = 60

WAITS = {
    "a step": """
        q = tf.FIFOQueue(1, tf.float32)
        get = q.dequeue()
        sess = tf.Session()
        print("ready", flush=True)
        sess.run(get)
    """,
    "an endless loop": """
        loop = tf.while_loop(lambda i: i >= 0, lambda i: (i + 1) % 10, [0])
        sess = tf.Session()
        print("ready", flush=True)
        sess.run(loop)
    """,
    "a step that ran before": """
        q = tf.FIFOQueue(1, tf.float32, shapes=[[]])
        put, get = q.enqueue(1.0), q.dequeue()
        sess = tf.Session()
        for _ in range(3):
            sess.run(put)
            sess.run(get)
        print("ready", flush=True)
        sess.run(get)
    """,
    "a step on a server": """
        server = tf.train.Server.create_local_server()
        get = tf.FIFOQueue(1, tf.float32).dequeue()
        sess = tf.Session(server.target)
        print("ready", flush=True)
        sess.run(get)
    """,
    "a partial run": """
        get = tf.FIFOQueue(1, tf.float32).dequeue()
        sess = tf.Session()
        run = sess.partial_run_setup([get], [])
        print("ready", flush=True)
        sess.partial_run(run, get)
    """,
    "a step of a monitored session": """
        get = tf.FIFOQueue(1, tf.float32).dequeue()
        with tf.train.MonitoredSession() as sess:
            print("ready", flush=True)
            sess.run(get)
    """,
    "a server": """
        server = tf.train.Server.create_local_server()
        print("ready", flush=True)
        server.join()
    """,
}


def start(program):
    lines = ["import sluice as tf", "try:"]
    body = [line[8:] for line in program.strip("\n").splitlines()]
    lines += ["    " + line for line in body]
    lines += ["except KeyboardInterrupt:", "    print('interrupted')"]
    process = subprocess.Popen(
        [sys.executable, "-c", "\n".join(lines)], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=dict(os.environ, PYTHONPATH=_PATH),
        # Whoever runs these tests in the background has it ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    return process


@pytest.mark.parametrize("what", sorted(WAITS))
def test_interrupts(what):
    process = start(WAITS[what])
    try:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=_DEADLINE_SECS)
    finally:
        process.kill()
        process.wait()
    assert out == "interrupted\n", err
    assert process.returncode == 0, err


def test_the_session_runs_on_after_an_interrupt():
    process = start("""
        get = tf.FIFOQueue(1, tf.float32).dequeue()
        two = tf.constant(1) + 1
        sess = tf.Session()
        try:
            print("ready", flush=True)
            sess.run(get)
        except KeyboardInterrupt:
            print(sess.run(two))
            raise
    """)
    try:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=_DEADLINE_SECS)
    finally:
        process.kill()
        process.wait()
    assert out == "2\ninterrupted\n", err


def _catches(process, number):
    with open("/proc/%d/status" % process.pid) as f:
        caught = [line for line in f if line.startswith("SigCgt:")][0]
    return int(caught.split()[1], 16) >> (number - 1) & 1


@pytest.mark.parametrize("own_handler", [False, True])
def test_a_request_to_end_stops_a_server_that_is_joined(own_handler):
    handler = "lambda *_: (print('own'), server.stop())"
    process = start("""
        import atexit, signal
        atexit.register(print, "at exit")
        server = tf.train.Server.create_local_server()
        if %r:
            signal.signal(signal.SIGTERM, %s)
        print("ready", flush=True)
        server.join()
        print("joined")
    """ % (own_handler, handler))
    try:
        while not _catches(process, signal.SIGTERM):
            assert process.poll() is None
        process.terminate()
        out, err = process.communicate(timeout=_DEADLINE_SECS)
    finally:
        process.kill()
        process.wait()
    assert out == ("own\njoined\n" if own_handler else "") + "at exit\n"
    assert process.returncode == 0, err
