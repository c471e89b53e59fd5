"""Trains with the optimizers whose workers have variables of their own, and
prints the values after each step, as JSON.

Run by TensorFlow 1.15.5, for tests/golden/averaging.json. A cluster of one ps
and two workers in this process; worker i's gradient of v is (i + 1) * (1, 2)
plus v / 2, that of w is i + 1.
"""

import json
import socket
import threading

import tensorflow as tf

OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.5),
    "momentum": lambda: tf.train.MomentumOptimizer(0.5, 0.9),
    "adam": lambda: tf.train.AdamOptimizer(0.25),
}


def cluster():
    sockets = [socket.socket() for _ in range(3)]
    for s in sockets:
        s.bind(("localhost", 0))
    hosts = ["localhost:%d" % s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    spec = tf.train.ClusterSpec({"ps": hosts[:1], "worker": hosts[1:]})
    return [tf.train.Server(spec, job_name=job, task_index=i)
            for job, i in (("ps", 0), ("worker", 0), ("worker", 1))][1:]


class Worker(object):
    """A worker's graph and session."""

    def __init__(self, server, task, kind, opt, **options):
        device = "/job:worker/task:%d" % task
        contrib = tf.contrib.opt
        getter = {"model": contrib.ModelAverageCustomGetter,
                  "elastic": contrib.ElasticAverageCustomGetter,
                  "agn": contrib.AGNCustomGetter}[kind](worker_device=device)
        with tf.Graph().as_default() as self.graph:
            with tf.device(tf.train.replica_device_setter(
                    ps_tasks=1, worker_device=device,
                    ps_device="/job:ps/task:0/cpu:0")), \
                    tf.variable_scope("m", custom_getter=getter):
                self.v = tf.get_variable("v", initializer=[1.0, 2.0])
                self.w = tf.get_variable("w", initializer=3.0)
                self.step = tf.train.get_or_create_global_step()
            with tf.device(device):
                if kind == "model":
                    self.opt = contrib.ModelAverageOptimizer(
                        opt, 2, task == 0, getter, **options)
                elif kind == "elastic":
                    self.opt = contrib.ElasticAverageOptimizer(
                        opt, 2, getter, **options)
                else:
                    self.opt = contrib.AGNOptimizer(opt, 2, getter, **options)
                factor = float(task + 1)
                pairs = [(self.v / 2 + factor * tf.constant([1.0, 2.0]),
                          self.v), (tf.constant(factor), self.w)]
                if kind == "elastic":
                    loss = tf.reduce_sum(
                        self.v * self.v / 4 + self.v * factor *
                        tf.constant([1.0, 2.0])) + self.w * factor
                    pairs = self.opt.compute_gradients(loss,
                                                       [self.v, self.w])
                self.train = self.opt.apply_gradients(pairs, self.step)
                self.take = self.opt.get_init_op() if kind == "model" else \
                    self.opt.get_init_op(task)
            self.local_init = tf.local_variables_initializer()
            self.global_init = tf.global_variables_initializer()
            self.centers = [v for v in tf.global_variables()
                            if v.op.name.startswith("global_center")]
            self.names = {
                "local": sorted(v.op.name for v in tf.local_variables()),
                "global": sorted(v.op.name for v in tf.global_variables()),
                "trainable": [v.op.name for v in tf.trainable_variables()],
                "devices": {v.op.name: v.device for v in
                            tf.local_variables() + tf.global_variables()},
                "name": self.opt.get_name()}
            if kind == "elastic":
                self.saver = self.opt.swapping_saver()
        config = tf.ConfigProto(
            device_filters=["/job:ps", device])
        self.session = tf.Session(server.target, graph=self.graph,
                                  config=config)

    def values(self):
        return [v.tolist() for v in self.session.run(
            [self.v, self.w] + self.centers + [self.step])]


def run(kind, opt, steps, order, **options):
    """`order`: "turns" (one worker after the other) or "together"."""
    workers = [Worker(server, i, kind, OPTIMIZERS[opt](), **options)
               for i, server in enumerate(cluster())]
    for worker in workers:
        worker.session.run(worker.local_init)
    for worker in workers if kind == "model" else workers[:1]:
        # Slots are among the global ones, though on the worker.
        worker.session.run(worker.global_init)
    for worker in workers:
        worker.session.run(worker.take)
    out = {"names": workers[0].names, "start": workers[0].values(),
           "steps": []}
    for _ in range(steps):
        if order == "turns":
            for worker in workers:
                worker.session.run(worker.train)
        else:
            threads = [threading.Thread(target=w.session.run, args=(w.train,))
                       for w in workers]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        out["steps"].append([w.values() for w in workers])
    for worker in workers:
        worker.session.close()
    return out


PROGRAMS = {
    "model sgd": lambda: run("model", "sgd", 5, "together", interval_steps=2),
    "model momentum": lambda: run("model", "momentum", 4, "together",
                                  interval_steps=2),
    "elastic sgd": lambda: run("elastic", "sgd", 5, "turns",
                               communication_period=2),
    "elastic rates": lambda: run("elastic", "momentum", 4, "turns",
                                 communication_period=1, moving_rate=0.25,
                                 rho=0.5),
    "agn sgd": lambda: run("agn", "sgd", 5, "turns", communication_period=2),
    "agn adam": lambda: run("agn", "adam", 4, "turns",
                            communication_period=2),
}


def main():
    print(json.dumps({name: program() for name, program in PROGRAMS.items()},
                     indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
