"""Steps and graphs in one process."""

import math
import time

from rows import best_of, emit, tf


def steps():
    x = tf.placeholder(tf.float32, [])
    y = tf.placeholder(tf.float32, [])
    total = x + 1.0
    product = x * y
    session = tf.Session()
    feed = {x: 2.0}
    both = {x: 2.0, y: 3.0}
    sqrt = math.sqrt
    emit("empty extension call",
         best_of(lambda: sqrt(2.0)) * 1e6)
    emit("run: scalar add", best_of(lambda: session.run(total, feed)) * 1e6)
    emit("run: 2 feeds, 2 fetches",
         best_of(lambda: session.run([total, product], both)) * 1e6)
    call = session.make_callable(total, [x])
    emit("make_callable: scalar add", best_of(lambda: call(2.0)) * 1e6)

    chain = x
    for _ in range(1000):
        chain = tf.add(chain, x)
    one = {x: 1.0}
    assert session.run(chain, one) == 1001.0
    emit("run: chain of 1000 adds",
         best_of(lambda: session.run(chain, one)) * 1e6)


def mlp():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [32, 784])
        y = tf.placeholder(tf.int64, [32])
        w1 = tf.Variable(tf.truncated_normal([784, 128], stddev=0.1))
        b1 = tf.Variable(tf.zeros([128]))
        w2 = tf.Variable(tf.truncated_normal([128, 10], stddev=0.1))
        b2 = tf.Variable(tf.zeros([10]))
        hidden = tf.nn.relu(tf.matmul(x, w1) + b1)
        logits = tf.matmul(hidden, w2) + b2
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y,
                                                           logits=logits))
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
        import numpy as np
        feed = {x: np.random.rand(32, 784).astype(np.float32),
                y: np.zeros([32], np.int64)}
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            emit("MLP-128 training step",
                 best_of(lambda: session.run(train, feed)) * 1e6)


def graphs(nodes=20000):
    with tf.Graph().as_default():
        start = time.perf_counter()
        value = tf.constant(1.0)
        for _ in range(nodes):
            value = tf.add(value, value)
        emit("build: a node", (time.perf_counter() - start) / nodes * 1e6)
        with tf.Session() as session:
            start = time.perf_counter()
            session.run(value)
            emit("first run of %d nodes" % nodes,
                 (time.perf_counter() - start) * 1e6)
            one_more = tf.add(value, value)
            start = time.perf_counter()
            session.run(one_more)
            emit("run after one more node",
                 (time.perf_counter() - start) * 1e6)


steps()
mlp()
graphs()
