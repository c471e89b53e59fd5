"""A line fitted by asynchronous workers, as the fourth seed program does it.

trainer.py JOB TASK PS_ADDRESS WORKER_ADDRESSES LOGDIR SECONDS
Worker 0 is told the processes of the others, and prints the global steps per
second of all workers together and what one costs.
"""

import os
import sys
import time

import numpy as np

from rows import Cost, emit, tf

job, task, ps, workers, logdir, seconds = sys.argv[1:7]
task = int(task)
cluster = tf.train.ClusterSpec({"ps": ps.split(","),
                                "worker": workers.split(",")})
server = tf.train.Server(cluster, job_name=job, task_index=task)
if job == "ps":
    print("ready", flush=True)
    server.join()

with tf.device(tf.train.replica_device_setter(
        worker_device="/job:worker/task:%d" % task, cluster=cluster)):
    x = tf.placeholder("float", name="X")
    y = tf.placeholder("float", name="Y")
    w = tf.Variable(-1.0, name="w")
    b = tf.Variable(-2.0, name="b")
    loss = tf.pow(y - (tf.multiply(x, w) + b), 2)
    global_step = tf.Variable(0, trainable=False, name="global_step")
    train = tf.train.AdagradOptimizer(0.8).minimize(loss,
                                                    global_step=global_step)
    init = tf.global_variables_initializer()
    saver = tf.train.Saver()

xs = np.linspace(-1, 1, 101)
ys = 2 * xs + np.random.RandomState(task).randn(101) * 0.4 + 0.2
supervisor = tf.train.Supervisor(is_chief=task == 0, logdir=logdir,
                                 init_op=init, saver=saver, summary_op=None,
                                 global_step=global_step, save_model_secs=600,
                                 recovery_wait_secs=1)
with supervisor.managed_session("grpc://" + workers.split(",")[task]) as session:
    def epoch():
        for a, c in zip(xs, ys):
            _, at = session.run([train, global_step], {x: a, y: c})
        return at

    epoch()
    if task == 0:
        pids = [os.getpid(), *map(int, sys.stdin.readline().split())]
        cost = Cost(lambda: session.run(global_step), pids,
                    [*ps.split(","), *workers.split(",")])
    begin, first = time.perf_counter(), epoch()
    begin = time.perf_counter()
    while time.perf_counter() - begin < float(seconds):
        last = epoch()
    if task == 0:
        emit("seed-004 trainer: global steps/s",
             (last - first) / (time.perf_counter() - begin))
        cost.emit("seed-004 trainer: a step")
        emit("seed-004 trainer: w", float(session.run(w)))
