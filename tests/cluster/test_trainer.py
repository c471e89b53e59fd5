"""The trainer of the seed documents, in our own words, when processes die."""

import re

import pytest

from conftest import PATIENCE

TRAINER = """
    import argparse
    import os
    import sys

    import tensorflow as tf

    FLAGS = None

    def main(_):
        cluster = tf.train.ClusterSpec({
            "ps": FLAGS.ps_hosts.split(","),
            "worker": FLAGS.worker_hosts.split(",")})
        server = tf.train.Server(cluster, job_name=FLAGS.job_name,
                                 task_index=FLAGS.task_index)
        if FLAGS.job_name == "ps":
            server.join()
            return
        with tf.device(tf.train.replica_device_setter(
                worker_device="/job:worker/task:%d" % FLAGS.task_index,
                cluster=cluster)):
            w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
            loss = tf.square(w - 3.0)
            step = tf.train.get_or_create_global_step()
            train = tf.train.AdagradOptimizer(0.1).minimize(
                loss, global_step=step)

        class Tell(tf.train.SessionRunHook):
            # A new session tells where it goes on.
            def after_create_session(self, session, coord):
                print("session begins at step %d" % session.run(step))

        with tf.train.MonitoredTrainingSession(
                master=server.target, is_chief=FLAGS.task_index == 0,
                checkpoint_dir="logs", save_checkpoint_secs=None,
                save_checkpoint_steps=20, save_summaries_steps=None,
                hooks=[tf.train.StopAtStepHook(last_step=FLAGS.last_step),
                       Tell()]) as session:
            ran = 0
            while not session.should_stop() and not os.path.exists("enough"):
                _, now = session.run([train, step])
                ran += 1
                if ran % 50 == 0:
                    print("step %d" % now)
        print("trained")

    if __name__ == "__main__":
        parser = argparse.ArgumentParser()
        parser.add_argument("--ps_hosts", type=str, default="")
        parser.add_argument("--worker_hosts", type=str, default="")
        parser.add_argument("--job_name", type=str, default="")
        parser.add_argument("--task_index", type=int, default=0)
        parser.add_argument("--last_step", type=int, default=100)
        FLAGS, unparsed = parser.parse_known_args()
        tf.app.run(main=main, argv=[sys.argv[0]] + unparsed)
    """

# Further than any test goes.
MANY = 10 ** 9


class Trainers(object):
    """A cluster of trainers, one process a task."""

    def __init__(self, processes, addresses, workers):
        self._processes = processes
        self._script = processes.program(TRAINER, "trainer.py")
        all_of_them = addresses(1 + workers)
        self._flags = ["--ps_hosts=" + all_of_them[0],
                       "--worker_hosts=" + ",".join(all_of_them[1:])]

    def start(self, job, task=0, last_step=MANY):
        return self._processes.sluice(
            "run", self._script, *self._flags, "--job_name=" + job,
            "--task_index=%d" % task, "--last_step=%d" % last_step)


@pytest.fixture
def trainers(processes, addresses):
    return lambda workers: Trainers(processes, addresses, workers)


def checkpoints(path):
    """The steps of the checkpoints that the state file names."""
    state = (path / "logs" / "checkpoint").read_text()
    last = re.search(r'^model_checkpoint_path: ".*-(\d+)"', state, re.M)
    return int(last.group(1))


def begins(process):
    return [int(line.split()[-1])
            for line in process.lines("session begins at step ")]


def test_a_ps_killed_and_restarted_costs_no_more_than_the_last_checkpoint(
        trainers, tmp_path):
    cluster = trainers(1)
    ps = cluster.start("ps")
    worker = cluster.start("worker", last_step=1000)
    worker.expect("step ", after=4)
    ps.kill()
    worker.expect("/job:ps/replica:0/task:0")  # It says whom it waits for.
    saved = checkpoints(tmp_path)
    assert saved >= 160
    ps = cluster.start("ps")
    assert worker.wait() == 0, worker.output
    assert begins(worker)[0] == 0
    assert begins(worker)[-1] == saved
    assert worker.lines("trained")
    assert checkpoints(tmp_path) == 1000


def test_two_workers_go_on_when_their_ps_comes_back(trainers, tmp_path):
    cluster = trainers(2)
    ps = cluster.start("ps")
    workers = [cluster.start("worker", i) for i in range(2)]
    for worker in workers:
        worker.expect("step ", after=3)
    ps.kill()
    cluster.start("ps")
    # The second worker finds the model that the chief has restored.
    for worker in workers:
        worker.expect("session begins at step ", after=1)
        worker.expect("step ", after=len(worker.lines("step ")) + 2)
    (tmp_path / "enough").touch()
    for worker in workers:
        assert worker.wait() == 0, worker.output
        assert begins(worker)[-1] >= 20


def test_a_killed_worker_leaves_the_others_training(trainers, tmp_path):
    cluster = trainers(2)
    cluster.start("ps")
    chief, other = [cluster.start("worker", i) for i in range(2)]
    other.expect("step ", after=1)
    other.kill()
    chief.expect("step ", after=len(chief.lines("step ")) + 2)
    (tmp_path / "enough").touch()
    assert chief.wait() == 0, chief.output
    assert len(begins(chief)) == 1  # It did not even notice.


def test_a_killed_chief_goes_on_from_its_checkpoint_when_it_comes_back(
        trainers, tmp_path):
    cluster = trainers(2)
    cluster.start("ps")
    chief, other = [cluster.start("worker", i) for i in range(2)]
    chief.expect("step ", after=2)
    chief.kill()
    # The other worker does not need it.
    other.expect("step ", after=len(other.lines("step ")) + 2)
    saved = checkpoints(tmp_path)
    chief = cluster.start("worker", 0)
    chief.expect("step ", after=2)
    (tmp_path / "enough").touch()
    for worker in [chief, other]:
        assert worker.wait() == 0, worker.output
    # The other worker was a few steps further when the chief looked.
    assert saved <= begins(chief)[0]
    assert len(begins(other)) == 1


def test_a_second_run_on_the_same_ports_and_directory_goes_on(
        trainers, tmp_path):
    cluster = trainers(1)
    ps = cluster.start("ps")
    worker = cluster.start("worker", last_step=100)
    assert worker.wait() == 0, worker.output
    ps.kill()
    ps = cluster.start("ps")
    worker = cluster.start("worker", last_step=150)
    assert worker.wait() == 0, worker.output
    assert begins(worker) == [100]
    assert checkpoints(tmp_path) == 150
    # And once it is trained there is nothing left to do.
    worker = cluster.start("worker", last_step=150)
    assert worker.wait(PATIENCE) == 0, worker.output
    assert begins(worker) == [150]
