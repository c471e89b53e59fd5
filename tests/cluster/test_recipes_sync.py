"""Synchronous training when workers end or die: where TensorFlow leaves the
others waiting for ever, they end or go on."""

import re

import pytest

from test_recipes import FORMS, Cluster


@pytest.fixture(params=sorted(FORMS))
def cluster(request, processes, addresses):
    made = Cluster(processes, addresses, request.param)
    made.make(2)
    return made


def steps(program):
    return [int(line.split()[1]) for line in program.lines("step ")
            if re.match(r"step \d+$", line)]


def moves(program, count=3):
    """Waits until it makes more steps."""
    program.expect("step ", after=len(program.lines("step ")) + count)


def die_with_token(cluster):
    """Worker 1 dies between two runs with its token.

    The chief must have begun without spare tokens, or it may make steps of two
    gradients of its own.
    """
    worker = cluster.start("uneven", 1, "--pause=30")
    worker.expect("paused")
    worker.kill()


@pytest.mark.parametrize("early", [0, 1])
def test_uneven_data_leaves_nobody_waiting(cluster, early):
    """The chief's end is the end of all; another's is only its own."""
    few, many = ["--runs=50"], ["--last_step=300"]
    workers = [cluster.start("uneven", i, *(few if i == early else many))
               for i in range(2)]
    for worker in workers:
        # Their threads have 300 s.
        assert worker.wait(60) == 0, worker.output
        assert worker.lines("ended"), worker.output
    if early == 1:
        assert steps(workers[0])[-1] >= 290, workers[0].output


def test_a_dead_worker_is_named_and_not_waited_for(cluster):
    chief = cluster.start("uneven", 0, "--timeout=1", "--tokens=0")
    die_with_token(cluster)
    line = chief.expect("Other workers compute", 60)
    assert "/job:worker/replica:0/task:1" in line, line
    assert "does not answer" in line, line
    assert re.search(r"Step \d+ has waited \d+ s for gradients of 2 workers: "
                     r"'w:0/grad_accum' has \d", line), line
    moves(chief)
    # It comes back, and takes part.
    again = cluster.start("uneven", 1)
    moves(again)
    moves(chief)


def test_steps_may_be_made_of_fewer_gradients(cluster):
    chief = cluster.start("uneven", 0, "--timeout=1", "--least=1",
                          "--tokens=0")
    die_with_token(cluster)
    chief.expect("From now on a step is made of 1 gradients in place of 2", 60)
    moves(chief)


def test_a_new_chief_takes_over_and_the_others_wait(cluster, tmp_path):
    chief, worker = [cluster.start("uneven", i) for i in range(2)]
    moves(worker)
    chief.kill()
    line = worker.expect("This worker has waited")
    assert "/job:worker/replica:0/task:0" in line and \
        "does not answer" in line, line
    chief = cluster.start("uneven", 0)
    line = chief.expect("Going on from step ")
    before = int(re.search(r"step (\d+)", line).group(1))
    state = (tmp_path / "logs" / "checkpoint").read_text()
    assert before >= 10, state
    moves(chief)
    moves(worker)
    assert min(steps(chief)) >= before
    assert len(worker.lines("An error was raised")) == 0, worker.output
