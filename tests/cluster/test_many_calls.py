"""Thousands of calls wait open without a thread each."""

import os

from conftest import wait_until

OPEN = 1000
# A server has a thread a core, two that poll each side of the network and some
# that wait on demand; none of it grows with the number of calls.
MOST_THREADS = 64


def threads(process):
    return len(os.listdir("/proc/%d/task" % process.pid))


def test_a_thousand_steps_wait_on_few_threads(processes, addresses, way):
    """Each is a dequeue on the ps whose result the worker waits for: a RunStep
    and a RunGraph, and a RecvTensor that brings the element."""
    ps, worker = addresses(2)
    spec = {"ps": [ps], "worker": [worker]}
    servers = [processes.server(spec, job) for job in ("ps", "worker")]
    client = processes.python("""
        import sys
        import threading
        import tensorflow as tf

        count = int(sys.argv[2])
        with tf.device("/job:ps/task:0"):
            begun = tf.get_variable("begun", [], dtype=tf.int32,
                                    initializer=tf.zeros_initializer())
            queue = tf.FIFOQueue(count, tf.int32, [])
            begin = tf.assign_add(begun, 1, use_locking=True)
            with tf.control_dependencies([begin]):
                element = queue.dequeue()
            fill = queue.enqueue_many([tf.range(count)])
        with tf.device("/job:worker/task:0"):
            taken = element * 2
        session = tf.Session("grpc://" + sys.argv[1])
        session.run(begun.initializer)
        got = []
        threading.stack_size(256 << 10)
        waiting = [threading.Thread(
            target=lambda: got.append(int(session.run(taken))))
            for _ in range(count)]
        for thread in waiting:
            thread.start()
        while session.run(begun) < count:
            pass
        print("all wait")
        sys.stdin.readline()
        session.run(fill)
        for thread in waiting:
            thread.join()
        assert sorted(got) == [2 * i for i in range(count)]
        print("all done")
        session.close()
        """, worker, OPEN)
    client.expect("all wait", 300)
    counts = [threads(server) for server in servers]
    client.say("go on")
    client.expect("all done", 300)
    assert client.wait() == 0
    assert max(counts) <= MOST_THREADS, counts
    # And they come down again when nothing waits.
    wait_until(lambda: max(map(threads, servers)) <= MOST_THREADS,
               "the servers have few threads")
