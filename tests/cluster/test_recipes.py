"""The replication modes, each as a program of its own processes: what TensorFlow
lets people observe, and what we promise beyond. Each is played in Python and C++
(recipes.py, recipes.cc)."""

import os
import re

import pytest

from conftest import BUILD

HERE = os.path.dirname(os.path.abspath(__file__))
FORMS = {"python": os.path.join(HERE, "recipes.py"),
         "cc": os.path.join(BUILD, "bin", "recipes")}


class Cluster(object):
    """Servers of ps, and programs that are workers or clients."""

    def __init__(self, processes, addresses, form):
        self._processes = processes
        self._program = FORMS[form]
        self._addresses = addresses

    def make(self, workers, serve_workers=False):
        self._spec = {"ps": self._addresses(1),
                      "worker": self._addresses(workers)}
        self.ps = self.start_ps()
        self.workers = [self._processes.server(self._spec, "worker", i)
                        for i in range(workers) if serve_workers]

    def start_ps(self):
        return self._processes.server(self._spec, "ps")

    def start(self, recipe, task=0, *flags):
        return self._processes.sluice(
            "run", self._program, recipe,
            "--ps_hosts=" + ",".join(self._spec["ps"]),
            "--worker_hosts=" + ",".join(self._spec["worker"]),
            "--task_index=%d" % task, *flags)


@pytest.fixture(params=sorted(FORMS))
def cluster(request, processes, addresses):
    return Cluster(processes, addresses, request.param)


def end(*programs):
    for program in programs:
        assert program.wait() == 0, program.output


def values(program, word):
    """The numbers of the lines that begin with a word."""
    return [[float(x) for x in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", line)]
            for line in program.lines(word) if line.startswith(word)]


def test_in_graph_replication_is_one_step_over_all_workers(cluster):
    cluster.make(2, serve_workers=True)
    client = cluster.start("in_graph")
    assert float(client.expect("w ").split()[1]) == -15.0
    client.expect("edge ")
    cluster.workers[1].kill()
    client.say("go")
    client.expect("lost")
    end(client)
    edges = {tuple(re.search(r"job:(\w+)/replica:0/task:(\d)", device).groups()
                   for device in line.split()[1:])
             for line in client.lines("edge ")}
    for worker in "01":
        assert (("ps", "0"), ("worker", worker)) in edges or \
            (("worker", worker), ("ps", "0")) in edges, edges


def test_clients_share_variables_by_name(cluster):
    cluster.make(2, serve_workers=True)
    end(cluster.start("share", 0))
    reader = cluster.start("share", 1)
    reader.expect("v is not initialized")
    assert float(reader.expect("w ").split()[1]) == 3.0
    end(reader)


def test_a_worker_that_came_first_waits_for_the_chief(cluster):
    cluster.make(2)
    worker = cluster.start("wait_for_chief", 1)
    worker.expect("Waiting for model to be ready")
    chief = cluster.start("wait_for_chief", 0)
    chief.expect("set up")
    # TensorFlow looks every 30 s.
    worker.expect("set up 0", 10)
    for program in (worker, chief):
        program.say("go")
    end(worker, chief)


@pytest.mark.parametrize("locking", ["yes", "no"])
def test_asynchronous_workers_lose_no_step(cluster, locking):
    cluster.make(2)
    workers = [cluster.start("asynchronous", i, "--locking=" + locking)
               for i in range(2)]
    for worker in workers:
        worker.expect("done")
    workers[1].say("go")
    workers[1].expect("w ")
    (w, step), = values(workers[1], "w ")
    assert step == 1000
    if locking == "yes":
        assert abs(w + 1) < 1e-4
    assert -1.0001 < w < 0
    workers[0].say("go")
    end(*workers)


def test_synchronous_steps_are_exact(cluster):
    cluster.make(2)
    workers = [cluster.start("sync_exact", i) for i in range(2)]
    for worker in workers:
        worker.expect("set up")
    for k in range(10):
        for worker in workers:
            worker.say("go")
        for worker in workers:
            worker.expect("ran ", after=k)
    for worker in workers:
        # Far less than the grace that threads have.
        worker.expect("ended", 15)
        assert values(worker, "ran ")[-1] == [10, 10, -15], worker.output
    end(*workers)


def test_synchronous_steps_are_means_at_any_pace(cluster):
    cluster.make(2)
    workers = [cluster.start("sync_free", i) for i in range(2)]
    for worker in workers:
        worker.expect("ended")
    end(*workers)
    for worker in workers:
        for before, after, w in values(worker, "between "):
            # Means of ones and twos, each step once.
            assert -2 * (after + 1) <= w <= -before, worker.output
    assert any(values(worker, "between ") for worker in workers)


def test_a_backup_worker_is_not_waited_for(cluster):
    cluster.make(3)
    workers = [cluster.start("backup", i) for i in range(3)]
    for worker in workers:
        worker.expect("ended")
    end(*workers)
    last = min(w for worker in workers[:2] for w, in values(worker, "w "))
    # Each wrong gradient is half of a step.
    assert last >= -20 - 2 * 50, last


@pytest.mark.parametrize("tokens, runs", [(1, [20]), (-1, [20, 21])])
def test_one_worker_can_make_steps_of_two_gradients(cluster, tokens, runs):
    cluster.make(1)
    worker = cluster.start("fewer_workers", 0, "--tokens=%d" % tokens)
    assert int(worker.expect("runs ").split()[1]) in runs
    assert worker.lines("Too few tokens to finish the first step: 0 (given) "
                        "vs 1 (needed)"), worker.output
    end(worker)


@pytest.mark.parametrize("kind", ["int32", "int64 resource"])
def test_a_token_is_the_step_that_was_made(cluster, kind):
    cluster.make(1)
    worker = cluster.start("token", 0, "--kind=" + kind)
    worker.expect("ended")
    assert values(worker, "token ") == [[k, k] for k in range(1, 6)]
    end(worker)


def test_a_supervisor_recovers_from_the_loss_of_the_ps(cluster, tmp_path):
    cluster.make(2)
    chief, worker = [cluster.start("supervised", i) for i in range(2)]
    for program in (chief, worker):
        program.expect("begins")
    chief.say("35")
    chief.expect("paused 35")
    cluster.ps.kill()
    cluster.start_ps()
    for program in (chief, worker):
        program.say("100")
    for program in (chief, worker):
        program.expect("ended")
    end(chief, worker)
    assert chief.lines("Restoring parameters from logs/model.ckpt-35"), \
        chief.output
    for program in (chief, worker):
        assert len(program.lines("An error was raised. This may")) == 1, \
            program.output
    state = (tmp_path / "logs" / "checkpoint").read_text()
    last = int(re.search(r'^model_checkpoint_path: ".*-(\d+)"', state,
                         re.M).group(1))
    assert 60 <= last < 62


def test_training_recovers_from_the_loss_of_the_ps(cluster, tmp_path):
    cluster.make(2)
    chief, worker = [cluster.start("recovery", i) for i in range(2)]
    for program in (chief, worker):
        program.expect("set up")
    chief.say("35")
    chief.expect("paused")
    cluster.ps.kill()
    cluster.start_ps()
    for program in (chief, worker):
        program.say("100")
    for program in (chief, worker):
        program.expect("ended")
    end(chief, worker)
    assert chief.lines("Restoring parameters from logs/model.ckpt-30")
    for program in (chief, worker):
        assert len(program.lines("An error was raised. This may")) == 1, \
            program.output
    state = (tmp_path / "logs" / "checkpoint").read_text()
    last = int(re.search(r'^model_checkpoint_path: ".*-(\d+)"', state,
                         re.M).group(1))
    assert 60 <= last < 62
