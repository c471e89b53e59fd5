"""A constant on the CPU of a server and a variable on a device of your choice.

    sluice run hello_device.py                            the CPU
    sluice run hello_device.py /job:local/task:0/gpu:0    a GPU, by full name
    sluice run hello_device.py /gpu:0                     a GPU

Where there is no GPU, that is an error which names the devices there are,
unless `sluice run --soft-placement` runs it.
"""

import sys

import tensorflow as tf

server = tf.train.Server.create_local_server()
with tf.device("/job:local/task:0/cpu:0"):
    c = tf.constant("Hello, distributed TensorFlow!")
with tf.device(sys.argv[1] if len(sys.argv) > 1 else "/job:local/task:0/cpu:0"):
    b = tf.get_variable("b", [2, 2], initializer=tf.random_normal_initializer())
with tf.Session(server.target) as session:
    session.run(tf.global_variables_initializer())
    print(session.run(c))
    print(session.run(b))
