"""Many asynchronous workers on one ps, each a process.

scale.py JOB TASK PS_ADDRESS WORKER_ADDRESSES SECONDS [PIDS_OF_THE_OTHERS]
Worker 0 waits for the others, measures the steps of all, and ends; the others
go on until they are ended.
"""

import os
import sys
import time

import numpy as np

from rows import Cost, emit, tf

job, task, ps, workers, seconds = sys.argv[1:6]
task = int(task)
workers = workers.split(",")
cluster = tf.train.ClusterSpec({"ps": [ps], "worker": workers})
# With few threads each: the machine has few cores for many processes.
config = tf.ConfigProto(intra_op_parallelism_threads=1,
                        inter_op_parallelism_threads=1)
server = tf.train.Server(cluster, job_name=job, task_index=task, config=config)
if job == "ps":
    print("ready", flush=True)
    server.join()

with tf.device("/job:ps/task:0"):
    w = tf.get_variable("w", [256], initializer=tf.zeros_initializer())
    step = tf.get_variable("step", [], tf.int64,
                           initializer=tf.zeros_initializer())
    there = tf.get_variable("there", [], tf.int64,
                            initializer=tf.zeros_initializer())
    arrive = tf.assign_add(there, 1, use_locking=True)
with tf.device("/job:worker/task:%d" % task):
    x = tf.placeholder(tf.float32, [256])
    gradient = (w - x) * 0.1
with tf.device("/job:ps/task:0"):
    with tf.control_dependencies([tf.assign_sub(w, gradient)]):
        train = tf.assign_add(step, 1, use_locking=True).op

config.device_filters.extend(["/job:ps", "/job:worker/task:%d" % task])
session = tf.Session("grpc://" + workers[task], config=config)
if task == 0:
    session.run(tf.global_variables_initializer())
    print("ready", flush=True)
value = np.ones(256, np.float32)
session.run(train, {x: value})
session.run(arrive)
if task != 0:
    while True:
        session.run(train, {x: value})

while session.run(there) < len(workers):
    session.run(train, {x: value})
pids = [os.getpid()] + [int(pid) for pid in sys.stdin.readline().split()]
cost = Cost(lambda: session.run(step), pids, [ps, *workers])
began, first = time.perf_counter(), session.run(step)
while time.perf_counter() - began < float(seconds):
    session.run(train, {x: value})
count = session.run(step) - first
taken = time.perf_counter() - began
name = "%d workers: " % len(workers)
emit(name + "steps/s", count / taken)
cost.emit(name + "a step")
