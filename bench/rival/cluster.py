"""One task of a cluster of some ps and 1 worker; the worker measures.

cluster.py ps|worker TASK PS_ADDRESSES WORKER_ADDRESS [PIDS_OF_THE_PS]
"""

import os
import sys

from rows import emit_with_cost, tf

role, task, ps_addresses, worker_address = sys.argv[1:5]
ps_addresses = ps_addresses.split(",")
cluster = tf.train.ClusterSpec({"ps": ps_addresses,
                                "worker": [worker_address]})
server = tf.train.Server(cluster, job_name=role, task_index=int(task))
if role == "ps":
    print("ready", flush=True)
    server.join()

import numpy as np  # noqa: E402 (a ps has no use for it)

PIDS = [os.getpid()] + [int(pid) for pid in sys.argv[5].split(",")]
PS = "/job:ps/task:0"
WORKER = "/job:worker/task:0"
COUNT = len(ps_addresses)


def row(name, session, fetch, feed=None):
    run = session.run
    emit_with_cost(name, lambda: run(fetch, feed), PIDS,
                   [*ps_addresses, worker_address])


def null_steps():
    """A step that only reads a number of each ps, and one that only adds."""
    steps = []
    for i in range(COUNT):
        with tf.device("/job:ps/task:%d" % i):
            steps.append(tf.Variable(0))
    with tf.device(WORKER):
        pull = tf.group(*[tf.identity(step) for step in steps])
    assign = tf.group(*[tf.assign_add(step, 1, use_locking=True)
                        for step in steps])
    with tf.Session("grpc://" + worker_address) as session:
        session.run(tf.global_variables_initializer())
        for name, op in (("pull", pull), ("assign", assign)):
            row("null step, %d ps: %s" % (COUNT, name), session, op)


def measure():
    sizes = [("1 KB", 256), ("256 KB", 65536), ("4 MB", 1 << 20),
             ("64 MB", 1 << 24), ("256 MB", 1 << 26)]
    pulls, sums, pushes, inits = [], [], [], []
    with tf.device(PS):
        variables = [tf.Variable(tf.zeros([n])) for _, n in sizes]
        table = tf.Variable(tf.zeros([100000, 64]))
    with tf.device(WORKER):
        for variable in variables:
            pulls.append(tf.identity(variable).op)
            sums.append(tf.reduce_sum(variable).op)
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
        for (name, _), pull, total, push in zip(sizes, pulls, sums, pushes):
            row("pull " + name, session, pull)
            # Whoever only says where a value is has to show that it can be read.
            row("pull and sum " + name, session, total)
            row("push " + name, session, push)
        for n in (32, 1024):
            row("sparse update of %d rows" % n, session, sparse,
                {ids: np.random.randint(0, 100000, n).astype(np.int32)})
    with tf.Session("grpc://" + ps_addresses[0]) as session:
        x = tf.placeholder(tf.float32, [])
        with tf.device(PS):
            total = x + 1.0
        row("remote run: scalar add", session, total, {x: 2.0})


null_steps()
if COUNT == 1:
    measure()
