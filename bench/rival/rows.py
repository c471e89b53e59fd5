"""What the programs of this folder share: one TensorFlow, timing, output."""

import json
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
