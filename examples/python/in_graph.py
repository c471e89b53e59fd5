"""In-graph replication: one client, one graph, a tower on every worker. A step
is a barrier: it takes the mean of the gradients of all towers.

    sluice run --ps 1 --workers 2 examples/python/in_graph.py

Worker 0 is the client. The others only serve, until it tells them through
queues that the work is done. These live on the ps: a worker that held its own
could be gone before it has answered who told it.
"""

import tensorflow as tf

tf.app.flags.DEFINE_string("ps_hosts", "", "Parameter servers, host:port,…")
tf.app.flags.DEFINE_string("worker_hosts", "", "Workers, host:port,…")
tf.app.flags.DEFINE_string("job_name", "", "ps or worker")
tf.app.flags.DEFINE_integer("task_index", 0, "Index of this task in its job")
tf.app.flags.DEFINE_integer("steps", 300, "Steps to train for")
FLAGS = tf.app.flags.FLAGS


def done_queue(worker):
    """A worker's queue; all graphs that have it share it."""
    with tf.device("/job:ps/task:0"):
        return tf.FIFOQueue(1, tf.bool, shapes=[],
                            shared_name="done_%d" % worker)


def serve(server):
    """Waits for the client's word."""
    queue = done_queue(FLAGS.task_index)
    with tf.Session(server.target) as session:
        session.run(queue.dequeue())
    print("Served")


def tower_gradients(optimizer, w, b):
    """(gradients of this tower, its loss)."""
    x = tf.random_uniform([16, 2], -1.0, 1.0)
    truth = tf.matmul(x, [[3.0], [-2.0]]) + 0.5
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - truth))
    return optimizer.compute_gradients(loss, [w, b]), loss


def train(server, workers):
    optimizer = tf.train.GradientDescentOptimizer(0.3)
    with tf.device("/job:ps/task:0"):
        w = tf.get_variable("w", [2, 1], initializer=tf.zeros_initializer())
        b = tf.get_variable("b", [1], initializer=tf.zeros_initializer())
    towers, losses = [], []
    for worker in range(workers):
        with tf.device("/job:worker/task:%d" % worker):
            gradients, loss = tower_gradients(optimizer, w, b)
        towers.append(gradients)
        losses.append(loss)
    with tf.device("/job:ps/task:0"):
        means = [(tf.add_n([g for g, _ in pairs]) / float(workers),
                  pairs[0][1]) for pairs in zip(*towers)]
        step = optimizer.apply_gradients(means)
        loss = tf.add_n(losses) / float(workers)
    tell = [done_queue(worker).enqueue(True) for worker in range(1, workers)]
    with tf.Session(server.target) as session:
        session.run(tf.global_variables_initializer())
        for _ in range(FLAGS.steps):
            _, value = session.run([step, loss])
        print("After %d steps of %d towers: w = %s, b = %s, loss %.6f" % (
            FLAGS.steps, workers, session.run(w).ravel(), session.run(b),
            value))
        session.run(tell)


def main(_):
    workers = FLAGS.worker_hosts.split(",")
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","),
                                    "worker": workers})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name,
                             task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    elif FLAGS.task_index > 0:
        serve(server)
    else:
        train(server, len(workers))


if __name__ == "__main__":
    tf.app.run()
