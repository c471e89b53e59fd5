"""What a client sees when tasks die and come back, held against what clients
of TensorFlow 1.15.5 saw: the same class and code where they got an error. Where
they hung, ours get UNAVAILABLE."""

import json
import os

from conftest import ROOT
from test_lost_peers import Cluster, once_connected

with open(os.path.join(ROOT, "tests/golden/errors/cluster.json")) as f:
    RECORDED = {record["situation"]: record for record in json.load(f)}


def check(situation, line):
    """`line` is how a step ended: "failed WORD CLASS: text"."""
    record = RECORDED.pop(situation)
    got = line.split()[2].rstrip(":") if line.startswith("failed") else None
    if "exception" in record and "killed" not in situation:
        assert got == record["exception"], line
    elif "still waiting" in record.get("result", "") or "killed" in situation:
        assert got == "UnavailableError", line
    else:
        assert line.endswith(record["result"]), line


def test_every_recorded_situation_ends_as_promised(processes, addresses):
    ps, worker = addresses(2)
    processes.server({"ps": [ps], "worker": [worker]}, "worker")
    client = processes.python("""
        import sys
        import tensorflow as tf
        config = tf.ConfigProto(operation_timeout_in_ms=2000)
        try:
            tf.Session("grpc://" + sys.argv[1], config=config).run(
                tf.constant(1))
        except tf.errors.OpError as e:
            print("failed run", type(e).__name__, e.error_code)
        """, worker)
    check("worker (master) up, ps not started: first run with "
          "ConfigProto.operation_timeout_in_ms=2000",
          client.expect("failed run"))

    cluster = Cluster(processes, *addresses(2))
    check("both up", cluster.do("double"))
    cluster.ps.kill()
    check("ps killed (-9) between steps, next run with timeout_in_ms=5000",
          cluster.do("double"))
    check("ps still dead, run without timeout", cluster.do("double"))
    cluster.ps = cluster.start("ps")
    check("ps started again, the old session's next run",
          once_connected(cluster))
    check("once more", cluster.do("double"))
    cluster.do("close")
    cluster.do("open")
    check("new session after the restart: variable is uninitialised",
          cluster.do("double"))
    cluster.do("init")
    cluster.begin("dequeue")
    cluster.ps.kill()
    check("ps killed while a step waits in a queue on it", cluster.end())
    cluster.start("ps")
    check("ps started again, next run of that session",
          once_connected(cluster))
    cluster.do("close")
    cluster.do("open")
    assert once_connected(cluster).startswith("failed double FailedPrec")
    cluster.worker.kill()
    check("master's task killed, next run", cluster.do("double"))
    cluster.start("worker")
    check("master's task started again, old session's next run",
          cluster.do("double"))
    check("close of the old session", cluster.do("close"))
    # The master waits for a missing ps as long as it was told to; what it says
    # meanwhile is in test_missing_tasks.py.
    assert list(RECORDED) == [
        "worker (master) up, ps not started: first run with "
        "timeout_in_ms=2000"]
