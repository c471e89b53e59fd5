"""Trains halves and bfloat16 with the optimizers and prints them, as JSON.

Run by TensorFlow 1.15.5, for tests/golden/half_optimizers.json: the variable
and its slots after three steps, dense and by rows, ref and resource; or the
error's class where TensorFlow has no kernel. Numbers are written as floats.
"""

import json

import numpy as np
import tensorflow as tf

TRAIN = tf.train
OPTIMIZERS = {
    "sgd": lambda: TRAIN.GradientDescentOptimizer(0.25),
    "momentum": lambda: TRAIN.MomentumOptimizer(0.25, 0.5),
    "nesterov": lambda: TRAIN.MomentumOptimizer(0.25, 0.5, use_nesterov=True),
    "adagrad": lambda: TRAIN.AdagradOptimizer(0.5, 0.25),
    "adadelta": lambda: TRAIN.AdadeltaOptimizer(0.5, 0.75, 0.0625),
    "adam": lambda: TRAIN.AdamOptimizer(0.25, 0.5, 0.75, 0.0625),
    "rmsprop": lambda: TRAIN.RMSPropOptimizer(0.25, 0.75, 0.5, 0.0625),
    "centered": lambda: TRAIN.RMSPropOptimizer(0.25, 0.75, 0.5, 0.0625,
                                               centered=True),
    "ftrl": lambda: TRAIN.FtrlOptimizer(0.5, -0.5, 0.25, 0.125, 0.125),
}
STEPS = 3


def run(optimizer, dtype, sparse, resource):
    with tf.Graph().as_default(), tf.Session() as session:
        start = np.array([[1.0, -2.0], [0.5, 3.0], [-1.5, 0.25]])
        v = tf.get_variable("v", initializer=tf.cast(start, dtype),
                            use_resource=resource)
        if sparse:
            grad = tf.IndexedSlices(
                tf.cast([[0.5, 1.0], [1.5, -0.5], [0.25, 0.75]], dtype),
                tf.constant([2, 0, 2]), tf.constant([3, 2]))
        else:
            grad = tf.cast([[0.5, 1.0], [1.5, -0.5], [0.25, -2.0]], dtype)
        opt = OPTIMIZERS[optimizer]()
        train = opt.apply_gradients([(grad, v)])
        session.run(tf.global_variables_initializer())
        for _ in range(STEPS):
            session.run(train)
        out = {"v": v}
        out.update((s, opt.get_slot(v, s)) for s in opt.get_slot_names())
        return {name: np.asarray(session.run(tf.cast(var, tf.float32)),
                                 np.float64).tolist()
                for name, var in out.items()}


def accumulate(dtype, sparse, reduction):
    """The mean or sum of three gradients."""
    dtype = tf.as_dtype(dtype)
    with tf.Graph().as_default(), tf.Session() as session:
        if sparse:
            acc = tf.SparseConditionalAccumulator(
                dtype, shape=[4, 2], reduction_type=reduction)
            ops = [acc.apply_grad(
                tf.constant(rows, tf.int64),
                tf.cast([[i + 0.5, 1.0]] * len(rows), dtype), [4, 2])
                for i, rows in enumerate([[0, 2], [2], [1, 2]])]
            taken = acc.take_grad(3)
            fetches = [taken.indices, tf.cast(taken.values, tf.float32)]
        else:
            acc = tf.ConditionalAccumulator(dtype, shape=[2],
                                            reduction_type=reduction)
            ops = [acc.apply_grad(tf.cast([i + 0.5, 1.0], dtype))
                   for i in range(3)]
            fetches = [tf.cast(acc.take_grad(3), tf.float32)]
        for op in ops:
            session.run(op)
        return [np.asarray(x, np.float64).tolist()
                for x in session.run(fetches)]


def outcome(call, *arguments):
    try:
        return call(*arguments)
    except Exception as e:
        return {"error": type(e).__name__}


def results():
    out = {}
    for dtype in ("float16", "bfloat16"):
        for name in OPTIMIZERS:
            for sparse in (False, True):
                for resource in (False, True):
                    key = "%s %s %s %s" % (
                        name, dtype, "sparse" if sparse else "dense",
                        "resource" if resource else "ref")
                    out[key] = outcome(run, name, dtype, sparse, resource)
        for sparse in (False, True):
            for reduction in ("MEAN", "SUM"):
                key = "accumulator %s %s %s" % (
                    dtype, "sparse" if sparse else "dense", reduction)
                out[key] = outcome(accumulate, dtype, sparse, reduction)
    return out


def main():
    print(json.dumps(results(), indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
