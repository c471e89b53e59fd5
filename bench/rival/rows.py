"""What the programs of this folder share: one TensorFlow, timing, output."""

import json
import os
import subprocess
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


def rpcs(tasks):
    """Calls that tasks have taken so far; only Sluice's tell, else None."""
    command = os.environ.get("SLUICE_COMMAND")
    if not command:
        return None
    asked = [subprocess.Popen([command, "status", task, "--json"],
                              stdout=subprocess.PIPE, text=True)
             for task in tasks]
    return sum(int(method["calls"]) for process in asked
               for method in json.loads(process.communicate()[0])["calls_in"]
               if method["method"] != "Status")


class Cost:
    """What a step costs a cluster: CPU, thread wakes, calls between tasks.

    `steps` tells how many there were so far: those of other clients go on while
    this one asks.
    """

    def __init__(self, steps, pids, tasks):
        self._steps, self._pids, self._tasks = steps, pids, tasks
        self._calls = steps(), rpcs(tasks)
        self._spent = steps(), *spent(pids)

    def emit(self, name):
        first, seconds, wakes = self._spent
        count = self._steps() - first
        seconds_after, wakes_after = spent(self._pids)
        emit(name + ", CPU", (seconds_after - seconds) / count * 1e6)
        emit(name + ", wakes", (wakes_after - wakes) / count)
        first, calls = self._calls
        if calls is not None:
            count = self._steps() - first
            emit(name + ", RPCs", (rpcs(self._tasks) - calls) / count)


def emit_with_cost(name, call, pids, tasks, seconds=0.6):
    """Rows of the best time of a call and of what it costs."""
    emit(name, best_of(call, seconds, 3) * 1e6)
    done = 0
    cost = Cost(lambda: done, pids, tasks)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        call()
        done += 1
    cost.emit(name)
