"""`sluice doctor` on clusters that are well and on others."""

import json
import os
import signal

import pytest

from test_missing_tasks import Listener


def doctor(processes, *args, **options):
    """The exit status and what was printed."""
    process = processes.sluice("doctor", *args, **options)
    return process.wait(), process.output


def text(spec):
    return ";".join("%s=%s" % (job, ",".join(tasks))
                    for job, tasks in spec.items())


def test_a_cluster_that_is_well(processes, addresses):
    ps, worker = addresses(2)
    spec = {"ps": [ps], "worker": [worker]}
    for job in spec:
        processes.server(spec, job)
    status, output = doctor(processes, text(spec))
    assert status == 0, output
    assert "All 2 tasks are well." in output
    assert " ms " in output
    # The other forms of a cluster.
    path = processes.path / "cluster.json"
    path.write_text(json.dumps(spec))
    assert doctor(processes, path)[0] == 0
    env = dict(os.environ, TF_CONFIG=json.dumps({"cluster": spec}))
    assert doctor(processes, env=env)[0] == 0


def test_a_task_that_is_not_there(processes, addresses):
    ps, worker = addresses(2)
    spec = {"ps": [ps], "worker": [worker]}
    processes.server(spec, "ps")
    status, output = doctor(processes, text(spec))
    assert status == 1
    assert "nothing listens at %s (connection refused)" % worker in output
    assert "Start the task" in output
    assert "1 of 2 tasks need attention." in output


def test_a_task_that_is_stopped(processes, addresses):
    address, = addresses(1)
    server = processes.server({"a": [address]}, "a")
    server.signal(signal.SIGSTOP)
    status, output = doctor(processes, "a=" + address)
    server.signal(signal.SIGCONT)
    assert status == 1
    assert "no answer from " + address in output


@pytest.mark.parametrize("answer", [
    b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    bytes(range(256)) * 4,
], ids=["http", "garbage"])
def test_a_stranger(processes, answer):
    listener = Listener(answer)
    status, output = doctor(processes, "a=" + listener.address)
    listener.close()
    assert status == 1
    assert "something else listens at " + listener.address in output


def test_the_wrong_task(processes, addresses):
    a, b = addresses(2)
    spec = {"ps": [a], "worker": [b]}
    for job in spec:
        processes.server(spec, job)
    status, output = doctor(processes, text({"ps": [b], "worker": [a]}))
    assert status == 1
    assert "answers as /job:worker/replica:0/task:0" in output
    assert "swapped" in output


def test_another_cluster(processes, addresses):
    a, b, c = addresses(3)
    processes.server({"ps": [a], "worker": [b]}, "ps")
    status, output = doctor(processes, text({"ps": [a], "worker": [c]}))
    assert status == 1
    assert "was started with another cluster" in output
    assert "/job:worker/replica:0/task:0 is at " + b in output


@pytest.mark.parametrize("args, code, wanted", [
    (["a=nothing"], 1, "nothing"),
    (["a=x.invalid:1"], 1, "does not resolve"),
    (["missing.json"], 2, "missing.json"),
    (["nonsense"], 2, "nonsense"),
    (["a=localhost:1", "--tls", "nowhere"], 2, "nowhere/tls.crt"),
    ([], 2, "no cluster"),
])
def test_what_is_no_cluster(processes, monkeypatch, args, code, wanted):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    status, output = doctor(processes, *args)
    assert status == code
    assert wanted in output
