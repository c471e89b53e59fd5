"""Two tasks share a step: one makes random matrices, the other sums them up."""

import tensorflow as tf

tf.app.flags.DEFINE_string("hosts", "localhost:2222,localhost:2223",
                           "The two tasks")
FLAGS = tf.app.flags.FLAGS


def main(_):
    cluster = tf.train.ClusterSpec({"local": FLAGS.hosts.split(",")})
    # A server goes on serving when its handle is dropped.
    server = tf.train.Server(cluster, job_name="local", task_index=0)
    server = tf.train.Server(cluster, job_name="local", task_index=1)

    with tf.device("/job:local/task:0"):
        matrices = [tf.random_normal([25, 25]) for _ in range(2)]
    with tf.device("/job:local/task:1"):
        total = tf.add_n([tf.reduce_sum(matrix) for matrix in matrices])
    with tf.Session(server.target) as session:
        print("Summed Values:{}".format(session.run(total)))


if __name__ == "__main__":
    tf.app.run()
