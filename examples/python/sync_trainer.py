"""Synchronous training with a backup worker: every step is the mean of the
gradients of all workers but one, of whichever come first.

    sluice run --ps 1 --workers 3 examples/python/sync_trainer.py

All end by themselves at the last step. Kill a worker: the others go on.
"""

import numpy as np
import tensorflow as tf

tf.app.flags.DEFINE_string("ps_hosts", "", "Parameter servers, host:port,…")
tf.app.flags.DEFINE_string("worker_hosts", "", "Workers, host:port,…")
tf.app.flags.DEFINE_string("job_name", "", "ps or worker")
tf.app.flags.DEFINE_integer("task_index", 0, "Index of this task in its job")
tf.app.flags.DEFINE_integer("last_step", 300, "Global step to stop at")
tf.app.flags.DEFINE_integer("backups", 1, "Workers that are not waited for")
tf.app.flags.DEFINE_string("train_dir", "train_logs", "Checkpoints")
FLAGS = tf.app.flags.FLAGS


def build_loss():
    """How far a plane is from the one that is to be found."""
    x = tf.random_uniform([16, 2], -1.0, 1.0)
    truth = tf.matmul(x, [[3.0], [-2.0]]) + 0.5
    w = tf.get_variable("w", [2, 1], initializer=tf.zeros_initializer())
    b = tf.get_variable("b", [1], initializer=tf.zeros_initializer())
    return tf.reduce_mean(tf.square(tf.matmul(x, w) + b - truth))


def main(_):
    workers = FLAGS.worker_hosts.split(",")
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","),
                                    "worker": workers})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name,
                             task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()

    chief = FLAGS.task_index == 0
    with tf.device(tf.train.replica_device_setter(
            worker_device="/job:worker/task:%d" % FLAGS.task_index,
            cluster=cluster)):
        loss = build_loss()
        global_step = tf.train.get_or_create_global_step()
        optimizer = tf.train.SyncReplicasOptimizer(
            tf.train.AdagradOptimizer(0.5),
            replicas_to_aggregate=max(1, len(workers) - FLAGS.backups),
            total_num_replicas=len(workers))
        train = optimizer.minimize(loss, global_step=global_step)

    hooks = [optimizer.make_session_run_hook(chief),
             tf.train.StopAtStepHook(last_step=FLAGS.last_step)]
    value, step, runs = np.nan, 0, 0
    with tf.train.MonitoredTrainingSession(
            master=server.target, is_chief=chief,
            checkpoint_dir=FLAGS.train_dir, hooks=hooks) as session:
        while not session.should_stop():
            step, value = session.run([train, loss])
            runs += 1
    print("Stopped at step %d after %d runs, loss %.4f" % (step, runs, value))


if __name__ == "__main__":
    tf.app.run()
