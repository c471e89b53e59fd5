"""Trains a digit classifier on a cluster: 1 parameter server, any number of
workers, asynchronous updates, checkpoints, a printed accuracy.

    sluice run --ps 1 --workers 2 examples/python/digits.py

The digits are drawn on the spot: five-by-seven pixel shapes, shifted, scaled
in brightness and covered with noise.
"""

import shutil
import sys
import tempfile
import time

import numpy as np
import tensorflow as tf

tf.app.flags.DEFINE_string("ps_hosts", "", "Parameter servers, host:port,…")
tf.app.flags.DEFINE_string("worker_hosts", "", "Workers, host:port,…")
tf.app.flags.DEFINE_string("job_name", "", "ps or worker")
tf.app.flags.DEFINE_integer("task_index", 0, "Index of this task in its job")
tf.app.flags.DEFINE_integer("steps", 1500, "Global steps to train for")
tf.app.flags.DEFINE_string("train_dir", "", "Checkpoints; empty: a new one")
FLAGS = tf.app.flags.FLAGS

SHAPES = [
    "01110 10001 10011 10101 11001 10001 01110",
    "00100 01100 00100 00100 00100 00100 01110",
    "01110 10001 00001 00010 00100 01000 11111",
    "11111 00010 00100 00010 00001 10001 01110",
    "00010 00110 01010 10010 11111 00010 00010",
    "11111 10000 11110 00001 00001 10001 01110",
    "00110 01000 10000 11110 10001 10001 01110",
    "11111 00001 00010 00100 01000 01000 01000",
    "01110 10001 10001 01110 10001 10001 01110",
    "01110 10001 10001 01111 00001 00010 01100",
]
SIDE = 12


def draw(count, rng):
    """`count` images of SIDE×SIDE pixels and their labels."""
    labels = rng.randint(0, 10, count)
    images = rng.uniform(0, 0.35, (count, SIDE, SIDE)).astype(np.float32)
    for image, label in zip(images, labels):
        glyph = np.array([[float(c) for c in row]
                          for row in SHAPES[label].split()])
        y, x = rng.randint(0, SIDE - 7 + 1), rng.randint(0, SIDE - 5 + 1)
        image[y:y + 7, x:x + 5] += rng.uniform(0.6, 1.0) * glyph
    return images.reshape(count, SIDE * SIDE), labels.astype(np.int64)


def build():
    """The model; returns what the loop needs of it."""
    pixels = tf.placeholder(tf.float32, [None, SIDE * SIDE], name="pixels")
    labels = tf.placeholder(tf.int64, [None], name="labels")
    with tf.variable_scope("hidden"):
        w = tf.get_variable("w", [SIDE * SIDE, 128])
        b = tf.get_variable("b", [128], initializer=tf.zeros_initializer())
        hidden = tf.nn.relu(tf.nn.bias_add(tf.matmul(pixels, w), b))
    with tf.variable_scope("out"):
        w = tf.get_variable("w", [128, 10])
        b = tf.get_variable("b", [10], initializer=tf.zeros_initializer())
        logits = tf.nn.bias_add(tf.matmul(hidden, w), b)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels, logits=logits))
    right = tf.equal(tf.argmax(logits, 1), labels)
    accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdamOptimizer(0.003).minimize(loss, global_step=step)
    return pixels, labels, loss, accuracy, step, train


def work(server, cluster):
    rng = np.random.RandomState(FLAGS.task_index)
    chief = FLAGS.task_index == 0
    directory = FLAGS.train_dir or tempfile.mkdtemp(prefix="digits-")
    with tf.device(tf.train.replica_device_setter(
            worker_device="/job:worker/task:%d" % FLAGS.task_index,
            cluster=cluster)):
        pixels, labels, loss, accuracy, step, train = build()
    with tf.train.MonitoredTrainingSession(
            master=server.target, is_chief=chief,
            checkpoint_dir=directory if chief else None,
            save_checkpoint_steps=500, log_step_count_steps=0,
            hooks=[tf.train.StopAtStepHook(last_step=FLAGS.steps)]) as session:
        shown = time.time()
        while not session.should_stop():
            images, truth = draw(64, rng)
            _, value, at = session.run([train, loss, step],
                                       {pixels: images, labels: truth})
            if time.time() - shown > 0.5:
                shown = time.time()
                print("step %5d of %d  loss %.3f" % (at, FLAGS.steps, value))
    if chief:
        # The variables are on the ps, so they outlive the session.
        test = draw(1000, np.random.RandomState(10**6))
        with tf.Session(server.target) as session:
            result = session.run(accuracy,
                                 {pixels: test[0], labels: test[1]})
        print("checkpoint %s" % tf.train.latest_checkpoint(directory))
        print("accuracy %.1f %%" % (100 * result))
        if not FLAGS.train_dir:
            shutil.rmtree(directory)
        return 0 if result > 0.95 else 1
    return 0


def main(_):
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","),
                                    "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name,
                             task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
        return 0
    return work(server, cluster)


if __name__ == "__main__":
    if not any("job_name" in arg for arg in sys.argv):
        sys.exit("Run this as a cluster: sluice run --ps 1 --workers 2 " +
                 sys.argv[0])
    tf.app.run()
