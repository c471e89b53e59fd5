"""A cluster of one parameter server and two workers, all in this process. The
constants live on the parameter server; either worker multiplies them.

    sluice run three_servers.py                 starts the servers
    sluice run three_servers.py --run=worker0   prints 12.0
    sluice run three_servers.py --run=worker1   prints 40.0
"""

import tensorflow as tf

tf.app.flags.DEFINE_string("run", "", "worker0 or worker1")
tf.app.flags.DEFINE_string(
    "hosts", "localhost:2222,localhost:2223,localhost:2224",
    "The parameter server and the workers")
FLAGS = tf.app.flags.FLAGS


def main(_):
    hosts = FLAGS.hosts.split(",")
    cluster = tf.train.ClusterSpec({"ps": hosts[:1], "worker": hosts[1:]})
    servers = {"ps0": tf.train.Server(cluster, "ps", 0)}
    for i in range(2):
        servers["worker%d" % i] = tf.train.Server(cluster, "worker", i)

    with tf.device("/job:ps/task:0"):
        a = tf.constant(3.0)
        b = tf.constant(4.0)
    if not FLAGS.run:
        return
    if FLAGS.run == "worker1":
        a = tf.constant(10.0)
    with tf.Session(servers[FLAGS.run].target) as session:
        print(session.run(a * b))


if __name__ == "__main__":
    tf.app.run()
