"""Asynchronous training with a monitored session: the parameter servers hold
the variables, every worker computes gradients of its own copy of the graph.

    sluice run --ps 1 --workers 2 examples/python/trainer.py --train_dir=DIR

The chief (worker 0) initialises, restores and saves; all stop by themselves at
the last step, and all go on when a parameter server was away.
"""

import tensorflow as tf

tf.app.flags.DEFINE_string("ps_hosts", "", "Parameter servers, host:port,…")
tf.app.flags.DEFINE_string("worker_hosts", "", "Workers, host:port,…")
tf.app.flags.DEFINE_string("job_name", "", "ps or worker")
tf.app.flags.DEFINE_integer("task_index", 0, "Index of this task in its job")
tf.app.flags.DEFINE_integer("last_step", 1000, "Global step to stop at")
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
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","),
                                    "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name,
                             task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()

    with tf.device(tf.train.replica_device_setter(
            worker_device="/job:worker/task:%d" % FLAGS.task_index,
            cluster=cluster)):
        loss = build_loss()
        global_step = tf.train.get_or_create_global_step()
        train = tf.train.AdagradOptimizer(0.5).minimize(
            loss, global_step=global_step)

    hooks = [tf.train.StopAtStepHook(last_step=FLAGS.last_step)]
    with tf.train.MonitoredTrainingSession(
            master=server.target, is_chief=FLAGS.task_index == 0,
            checkpoint_dir=FLAGS.train_dir, hooks=hooks) as session:
        while not session.should_stop():
            _, value, step = session.run([train, loss, global_step])
    print("Stopped at step %d, loss %.4f" % (step, value))


if __name__ == "__main__":
    tf.app.run()
