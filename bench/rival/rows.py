"""What the programs of this folder share: one TensorFlow, timing, output."""

import json
import os
import time

import tensorflow as tf

if tf.__version__.startswith("2"):
    tf = tf.compat.v1
    tf.disable_v2_behavior()
try:
    tf.logging.set_verbosity(tf.logging.ERROR)
except AttributeError:
    pass


def emit(name, value):
    """One measured row: microseconds unless the name says otherwise."""
    print("ROW " + json.dumps([name, value]), flush=True)


def best_of(call, seconds=0.4, repeats=5):
    """Seconds a call takes: the best mean of some repeats."""
    call()
    count = 1
    while True:
        start = time.perf_counter()
        for _ in range(count):
            call()
        taken = time.perf_counter() - start
        if taken > seconds / repeats or count >= 1 << 20:
            break
        count *= 2
    best = taken / count
    for _ in range(repeats - 1):
        start = time.perf_counter()
        for _ in range(count):
            call()
        best = min(best, (time.perf_counter() - start) / count)
    return best


def spent(pids):
    """(seconds of CPU, times a thread went to sleep) of processes so far."""
    seconds = wakes = 0
    for pid in pids:
        with open("/proc/%d/stat" % pid) as f:
            fields = f.read().rsplit(")", 1)[1].split()
        seconds += (int(fields[11]) + int(fields[12])) / os.sysconf(
            "SC_CLK_TCK")
        for thread in os.listdir("/proc/%d/task" % pid):
            try:
                with open("/proc/%d/task/%s/status" % (pid, thread)) as f:
                    status = f.read()
            except (FileNotFoundError, ProcessLookupError):
                continue  # TensorFlow's threads come and go.
            for line in status.splitlines():
                if line.startswith("voluntary_ctxt_switches"):
                    wakes += int(line.split()[1])
    return seconds, wakes


def cost(call, pids, duration=1.0):
    """(µs of CPU, thread wakes) a call costs processes together."""
    seconds, wakes = spent(pids)
    end = time.perf_counter() + duration
    count = 0
    while time.perf_counter() < end:
        call()
        count += 1
    seconds_after, wakes_after = spent(pids)
    return ((seconds_after - seconds) / count * 1e6,
            (wakes_after - wakes) / count)
