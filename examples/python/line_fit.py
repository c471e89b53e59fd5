"""Fits a line to noisy points under a Supervisor, asynchronously.

    sluice run --ps 1 --workers 2 examples/python/line_fit.py

Every worker prints what it sees of the line after each pass over the points,
until it is stopped (or for --epochs passes). Stopped and started again it goes
on from its checkpoint.
"""

import numpy as np
import tensorflow as tf

tf.app.flags.DEFINE_string("ps_hosts", "", "Parameter servers, host:port,…")
tf.app.flags.DEFINE_string("worker_hosts", "", "Workers, host:port,…")
tf.app.flags.DEFINE_string("job_name", "", "ps or worker")
tf.app.flags.DEFINE_integer("task_index", 0, "Index of this task in its job")
tf.app.flags.DEFINE_integer("epochs", 0, "Passes over the data; 0: for ever")
tf.app.flags.DEFINE_string("train_dir", "train_logs", "Checkpoints")
FLAGS = tf.app.flags.FLAGS


def main(_):
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","),
                                    "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name,
                             task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()

    rng = np.random.RandomState(FLAGS.task_index)
    xs = np.linspace(-1, 1, 101)
    ys = 2 * xs + 0.2 + 0.4 * rng.randn(101)
    print("Least squares of node: %d, w: %s, b0: %s" % (
        (FLAGS.task_index,) + tuple(np.polyfit(xs, ys, 1))))
    with tf.device(tf.train.replica_device_setter(
            worker_device="/job:worker/task:%d" % FLAGS.task_index,
            cluster=cluster)):
        x = tf.placeholder(tf.float32, [], name="X")
        y = tf.placeholder(tf.float32, [], name="Y")
        w = tf.Variable(-1.0, name="b0")
        b = tf.Variable(-2.0, name="b1")
        loss = tf.square(y - (x * w + b))
        global_step = tf.Variable(0, trainable=False)
        train = tf.train.AdagradOptimizer(0.8).minimize(
            loss, global_step=global_step)
        saver = tf.train.Saver()
        init = tf.global_variables_initializer()

    supervisor = tf.train.Supervisor(
        is_chief=FLAGS.task_index == 0, logdir=FLAGS.train_dir, init_op=init,
        summary_op=None, saver=saver, global_step=global_step,
        save_model_secs=600)
    epoch = 0
    with supervisor.managed_session(server.target) as session:
        while not supervisor.should_stop() and \
                (not FLAGS.epochs or epoch < FLAGS.epochs):
            epoch += 1
            for i in rng.permutation(len(xs)):
                session.run([train, global_step], {x: xs[i], y: ys[i]})
            print("Partial result from node: %d, w: %s, b0: %s" %
                  ((FLAGS.task_index,) + tuple(session.run([w, b]))))
    supervisor.stop()


if __name__ == "__main__":
    tf.app.run()
