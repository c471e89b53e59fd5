"""Large values between processes of one machine, which are lent, not sent."""

import json
import subprocess

import pytest

from conftest import SLUICE

# Reads a large variable of the ps on the worker while others change it.
READER = """
    import sys
    import threading
    import tensorflow as tf

    ps, worker, size, count = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:5])
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("v%d" % size, [size], initializer=tf.zeros_initializer())
        add = tf.assign_add(v, tf.ones([size])).op
    with tf.device("/job:worker/task:0"):
        seen = tf.reduce_min(v), tf.reduce_max(v)
        # Goes there and comes back, changed.
        doubled = tf.identity(v) * 2.0
    with tf.device("/job:ps/task:0"):
        back = tf.reduce_min(doubled), tf.reduce_max(doubled)
    reader = tf.Session("grpc://" + worker)
    reader.run(tf.global_variables_initializer())
    over = threading.Event()

    def change():
        with tf.Session("grpc://" + ps) as session:
            while not over.is_set():
                session.run(add)

    changer = threading.Thread(target=change)
    changer.start()
    print("reading", flush=True)
    last = -1.0
    for _ in range(count):
        low, high = reader.run(seen)
        assert low == high >= last, (low, high, last)
        last = high
        low, high = reader.run(back)
        assert low == high >= 2 * last, (low, high, last)
    whole = reader.run(v)
    whole[0] = -1.0
    again = reader.run(v)
    assert again.min() == again.max() >= last
    over.set()
    changer.join()
    reader.close()
    print("all whole", flush=True)
    """


@pytest.fixture
def cluster(processes, addresses, way):
    ps, worker = addresses(2)
    spec = {"ps": [ps], "worker": [worker]}
    processes.ps = processes.server(spec, "ps")
    processes.worker = processes.server(spec, "worker")
    return [ps, worker]


def test_a_value_is_whole_however_often_its_variable_changes(
        processes, cluster):
    for size in (1000, 20000, 300000):  # In a message, by itself, lent.
        reader = processes.python(READER, *cluster, size, 100)
        reader.expect("all whole")
        assert reader.wait() == 0


def shared_mb(pid):
    with open("/proc/%d/status" % pid) as f:
        status = dict(line.split(":", 1) for line in f)
    return int(status["RssShmem"].split()[0]) / 1024


def test_who_is_killed_while_it_reads_costs_no_memory(processes, cluster):
    for _ in range(4):
        reader = processes.python(READER, *cluster, 4 << 20, 1 << 30)
        reader.expect("reading")
        reader.kill()
    reader = processes.python(READER, *cluster, 4 << 20, 20)
    reader.expect("all whole")
    assert reader.wait() == 0
    # A few copies of 16 MB, those that were being written among them.
    assert shared_mb(processes.ps.pid) < 200


def test_who_may_not_map_that_much_gets_copies(processes, addresses):
    ps, worker = addresses(2)
    spec = {"ps": [ps], "worker": [worker]}
    processes.server(spec, "ps")
    processes.server(spec, "worker", within=["prlimit", "--as=%d" % (32 << 30)])
    reader = processes.python(READER, ps, worker, 300000, 20)
    reader.expect("all whole")
    assert reader.wait() == 0


def lanes(address):
    """Whether the server has a lane to each of its peers."""
    status = json.loads(subprocess.run(
        [SLUICE, "status", "grpc://" + address, "--json"],
        stdout=subprocess.PIPE, check=True).stdout)
    return [peer.get("lane", False) for peer in status["peers"]]


def test_a_lane_is_shown(processes, cluster, way):
    reader = processes.python(READER, *cluster, 1000, 10)
    reader.expect("all whole")
    assert reader.wait() == 0
    assert lanes(cluster[1]) == [way == "lane"]


def test_who_may_not_make_such_a_file_gives_copies(processes, addresses):
    ps, worker = addresses(2)
    spec = {"ps": [ps], "worker": [worker]}
    limited = ["prlimit", "--fsize=%d" % (1 << 20)]
    processes.server(spec, "ps", within=limited)
    processes.server(spec, "worker", within=limited)
    reader = processes.python(READER, ps, worker, 300000, 20)
    reader.expect("all whole")
    assert reader.wait() == 0
    assert lanes(worker) == [True]
