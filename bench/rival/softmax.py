"""Softmax regression on 784 inputs and 10 classes, batches of 100, with 1 ps.

softmax.py JOB TASK PS_ADDRESS WORKER_ADDRESSES async|sync SECONDS
Worker 0 is told the processes of the others, and prints the global steps per
second of all workers together and what one costs.
"""

import os
import sys
import time

import numpy as np

from rows import Cost, emit, tf

job, task, ps, workers, mode, seconds = sys.argv[1:7]
task = int(task)
cluster = tf.train.ClusterSpec({"ps": ps.split(","),
                                "worker": workers.split(",")})
server = tf.train.Server(cluster, job_name=job, task_index=task)
if job == "ps":
    print("ready", flush=True)
    server.join()

with tf.device(tf.train.replica_device_setter(
        worker_device="/job:worker/task:%d" % task, cluster=cluster)):
    x = tf.placeholder(tf.float32, [None, 784])
    y = tf.placeholder(tf.float32, [None, 10])
    w = tf.get_variable("w", [784, 10], initializer=tf.zeros_initializer())
    b = tf.get_variable("b", [10], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(
        labels=y, logits=tf.matmul(x, w) + b))
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.GradientDescentOptimizer(0.01)
    hooks = []
    if mode == "sync":
        optimizer = tf.train.SyncReplicasOptimizer(
            optimizer, replicas_to_aggregate=len(workers.split(",")))
    train = optimizer.minimize(loss, global_step=step)
    if mode == "sync":
        hooks.append(optimizer.make_session_run_hook(task == 0))

rng = np.random.RandomState(task)
images = rng.rand(100, 784).astype(np.float32)
labels = np.eye(10, dtype=np.float32)[rng.randint(0, 10, 100)]
feeds = {x: images, y: labels}
if task > 0:
    sys.stdin.readline()  # A worker that finds no model looks 30 s later.
with tf.train.MonitoredTrainingSession(
        master=server.target, is_chief=task == 0, hooks=hooks,
        stop_grace_period_secs=1) as session:
    def run(count):
        for _ in range(count):
            _, at = session.run([train, step], feeds)
        return at

    print("ready", flush=True)
    if task > 0:
        while True:
            run(100)
    pids = [os.getpid()] + [int(pid) for pid in sys.stdin.readline().split()]
    cost = Cost(lambda: run(20), pids, [ps, *workers.split(",")])
    first = run(100)
    begin = time.perf_counter()
    while time.perf_counter() - begin < float(seconds):
        last = run(20)
    name = "softmax regression, %s: " % mode
    emit(name + "global steps/s",
         (last - first) / (time.perf_counter() - begin))
    cost.emit(name + "a step")
    # Steps of others would not end with this one's.
    os._exit(0)
