"""Sparse SGD on rows of a table of 1 M × 64: in one process, and with the
table on a ps.

sparse.py local
sparse.py ps|worker PS_ADDRESS WORKER_ADDRESS [PID_OF_THE_PS]
"""

import os
import sys

from rows import best_of, emit, emit_with_cost, tf

ROWS, COLUMNS = 1000000, 64
COUNTS = (32, 1024, 65536)


def measure(target, where, there=None, here=None, pids=(), tasks=()):
    """Rows for each count: look rows up and step down their gradient."""
    import numpy as np
    random = np.random.RandomState(0)
    with tf.device(there):
        table = tf.get_variable("table", [ROWS, COLUMNS],
                                initializer=tf.zeros_initializer())
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    updates, trains, inits = [], [], [table.initializer]
    for n in COUNTS:
        with tf.device(here):
            # Variables, as constants would be folded.
            ids = tf.Variable(random.randint(0, ROWS, n).astype(np.int32),
                              trainable=False)
            rows = tf.Variable(tf.ones([n, COLUMNS]), trainable=False)
            inits += [ids.initializer, rows.initializer]
            loss = tf.reduce_sum(rows * tf.nn.embedding_lookup(table, ids))
        updates.append(optimizer.apply_gradients(
            [(tf.IndexedSlices(rows.value(), ids.value()), table)]))
        trains.append(optimizer.minimize(loss, var_list=[table]))
    with tf.Session(target) as session:
        for init in inits:
            session.run(init)
        for n, update, train in zip(COUNTS, updates, trains):
            for what, op in (("update", update), ("step", train)):
                name = "sparse SGD %s, %d rows%s" % (what, n, where)
                if tasks:
                    emit_with_cost(name, lambda: session.run(op), pids, tasks,
                                   1.0)
                else:
                    emit(name, best_of(lambda: session.run(op), 1.0, 3) * 1e6)


def main():
    role = sys.argv[1]
    if role == "local":
        return measure("", "")
    ps, worker = sys.argv[2:4]
    cluster = tf.train.ClusterSpec({"ps": [ps], "worker": [worker]})
    server = tf.train.Server(cluster, job_name=role, task_index=0)
    if role == "ps":
        print("ready", flush=True)
        server.join()
    measure(server.target, ", 1 ps", "/job:ps/task:0", "/job:worker/task:0",
            [os.getpid(), int(sys.argv[4])], [ps, worker])


main()
