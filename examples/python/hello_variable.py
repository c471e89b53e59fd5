"""A variable on a server. Where a node runs is decided when it is built, so a
device that is entered around a run changes nothing, not even one that is not
there."""

import tensorflow as tf

c = tf.constant("Hello, distributed TensorFlow!")
b = tf.get_variable("c", [2, 2], initializer=tf.random_normal_initializer())
server = tf.train.Server.create_local_server()
with tf.Session(server.target) as session:
    session.run(tf.global_variables_initializer())
    for i in range(5):
        with tf.device("/job:local/task:%d" % i), tf.device("/cpu:%d" % i):
            print(session.run(b if i == 1 else c))
