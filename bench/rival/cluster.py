"""One task of a cluster of 1 ps and 1 worker; the worker measures.

cluster.py ps|worker PS_ADDRESS WORKER_ADDRESS
"""

import sys

import numpy as np

from rows import best_of, emit, tf

role, ps_address, worker_address = sys.argv[1:4]
cluster = tf.train.ClusterSpec({"ps": [ps_address],
                                "worker": [worker_address]})
server = tf.train.Server(cluster, job_name=role, task_index=0)
if role == "ps":
    print("ready", flush=True)
    server.join()

PS = "/job:ps/task:0"
WORKER = "/job:worker/task:0"


def row(name, session, fetch, feed=None, seconds=0.6):
    run = session.run
    emit(name, best_of(lambda: run(fetch, feed), seconds, 3) * 1e6)


def measure():
    sizes = [("1 KB", 256), ("256 KB", 65536), ("4 MB", 1 << 20),
             ("64 MB", 1 << 24)]
    pulls, pushes, inits = [], [], []
    with tf.device(PS):
        step = tf.Variable(0, name="step")
        count = tf.assign_add(step, 1, use_locking=True).op
        variables = [tf.Variable(tf.zeros([n])) for _, n in sizes]
        table = tf.Variable(tf.zeros([100000, 64]))
    with tf.device(WORKER):
        null_pull = tf.identity(step).op
        for variable in variables:
            pulls.append(tf.identity(variable).op)
            gradient = tf.Variable(tf.ones(variable.shape))
            inits.append(gradient)
            with tf.device(PS):
                pushes.append(tf.assign_add(variable, gradient).op)
        ids = tf.placeholder(tf.int32, [None])
        rows = tf.ones([tf.size(ids), 64])
    with tf.device(PS):
        sparse = tf.scatter_add(table, ids, rows).op
    with tf.Session("grpc://" + worker_address) as session:
        session.run(tf.global_variables_initializer())
        row("null step, 1 ps: pull", session, null_pull)
        row("null step, 1 ps: assign", session, count)
        for (name, _), pull, push in zip(sizes, pulls, pushes):
            row("pull " + name, session, pull)
            row("push " + name, session, push)
        for n in (32, 1024):
            row("sparse update of %d rows" % n, session, sparse,
                {ids: np.random.randint(0, 100000, n).astype(np.int32)})
    with tf.Session("grpc://" + ps_address) as session:
        x = tf.placeholder(tf.float32, [])
        with tf.device(PS):
            total = x + 1.0
        row("remote run: scalar add", session, total, {x: 2.0})


measure()
