"""Word embeddings whose table is split over the parameter servers; workers
train it asynchronously, and each step moves only the rows it used.

    sluice run --ps 2 --workers 2 examples/python/embeddings.py

The words of the made-up language belong to topics; words of one topic stand
together. At the end nearly every word's nearest neighbour is of its own topic.
"""

import numpy as np
import tensorflow as tf

tf.app.flags.DEFINE_string("ps_hosts", "", "Parameter servers, host:port,…")
tf.app.flags.DEFINE_string("worker_hosts", "", "Workers, host:port,…")
tf.app.flags.DEFINE_string("job_name", "", "ps or worker")
tf.app.flags.DEFINE_integer("task_index", 0, "Index of this task in its job")
tf.app.flags.DEFINE_integer("last_step", 1000, "Global step to stop at")
tf.app.flags.DEFINE_string("train_dir", "train_logs", "Checkpoints")
FLAGS = tf.app.flags.FLAGS

WORDS = 1000
TOPICS = 10  # The topic of a word is its number modulo this.
SIZE = 16
BATCH = 256


def build(parts):
    """Skip-grams with one wrong word for each right one."""
    center = tf.placeholder(tf.int64, [BATCH], name="center")
    right = tf.placeholder(tf.int64, [BATCH], name="right")
    wrong = tf.placeholder(tf.int64, [BATCH], name="wrong")
    table = tf.get_variable(
        "embeddings", [WORDS, SIZE],
        initializer=tf.random_uniform_initializer(-0.5, 0.5),
        partitioner=tf.fixed_size_partitioner(parts))

    def rows(ids):
        return tf.nn.embedding_lookup(table, ids, partition_strategy="div")

    def match(a, b):
        return tf.reduce_sum(rows(a) * rows(b), 1)

    loss = tf.reduce_mean(tf.nn.softplus(-match(center, right)) +
                          tf.nn.softplus(match(center, wrong)))
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdagradOptimizer(2.0).minimize(loss, global_step=step)
    return center, right, wrong, tf.convert_to_tensor(table), loss, step, train


def batch(rng):
    center = rng.randint(0, WORDS, BATCH)
    right = rng.randint(0, WORDS // TOPICS, BATCH) * TOPICS + center % TOPICS
    return center, right, rng.randint(0, WORDS, BATCH)


def neighbours_of_own_topic(table):
    """The part of words whose nearest neighbour has their topic."""
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    near = unit.dot(unit.T)
    np.fill_diagonal(near, -2)
    return np.mean(near.argmax(1) % TOPICS == np.arange(WORDS) % TOPICS)


def main(_):
    ps = FLAGS.ps_hosts.split(",")
    cluster = tf.train.ClusterSpec({"ps": ps,
                                    "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name,
                             task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()

    with tf.device(tf.train.replica_device_setter(
            worker_device="/job:worker/task:%d" % FLAGS.task_index,
            cluster=cluster)):
        center, right, wrong, table, loss, step, train = build(len(ps))
    rng = np.random.RandomState(FLAGS.task_index)
    with tf.train.MonitoredTrainingSession(
            master=server.target, is_chief=FLAGS.task_index == 0,
            checkpoint_dir=FLAGS.train_dir, log_step_count_steps=0,
            hooks=[tf.train.StopAtStepHook(
                last_step=FLAGS.last_step)]) as session:
        part = value = 0.0
        while not session.should_stop():
            feeds = dict(zip((center, right, wrong), batch(rng)))
            _, value, now = session.run([train, loss, step], feeds)
            if now % 200 < 2:
                print("step %5d of %d  loss %.3f" % (now, FLAGS.last_step,
                                                     value))
        # A step of its own: it must not train.
        part = neighbours_of_own_topic(session.run_step_fn(
            lambda step_context: step_context.session.run(table)))
    print("Neighbours of the same topic: %.1f %%" % (100 * part))


if __name__ == "__main__":
    tf.app.run()
