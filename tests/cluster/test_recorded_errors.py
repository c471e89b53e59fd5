"""What a client sees when tasks die and come back, held against what clients
of TensorFlow 1.15.5 saw: the same class and code where they got an error. Where
they hung, ours get UNAVAILABLE."""

import json
import os
import re

from conftest import ROOT
from test_lost_peers import Cluster, once_connected

with open(os.path.join(ROOT, "tests/golden/errors/cluster.json")) as f:
    RECORDED = {record["situation"]: record for record in json.load(f)}


def check(situation, line):
    """`line` is how a step ended: "failed WORD CLASS: text (code NUMBER)"."""
    record = RECORDED.pop(situation)
    failed = re.match(r"failed \w+ (\w+).* \(code (\d+)\)$", line)
    got = failed and (failed.group(1), int(failed.group(2)))
    if "exception" in record and "killed" not in situation:
        assert got == (record["exception"], record["code"]), line
    elif "still waiting" in record.get("result", "") or "killed" in situation:
        assert got == ("UnavailableError", 14), line
    else:
        assert line.endswith(record["result"]), line


def test_every_recorded_situation_ends_as_promised(processes, addresses):
    ps, worker = addresses(2)
    spec = {"ps": [ps], "worker": [worker]}
    processes.server(spec, "worker")
    program = """
        import sys
        import tensorflow as tf
        config, options = tf.ConfigProto(), tf.RunOptions()
        if sys.argv[2] == "config":
            config.operation_timeout_in_ms = 2000
        else:
            options.timeout_in_ms = 2000
        try:
            with tf.device("/job:ps/task:0"):
                one = tf.constant(1) + 0
            print("did run", tf.Session("grpc://" + sys.argv[1],
                                        config=config).run(one,
                                                           options=options))
        except tf.errors.OpError as e:
            print("failed run %s: (code %d)" % (type(e).__name__,
                                                e.error_code))
        """
    client = processes.python(program, worker, "config")
    check("worker (master) up, ps not started: first run with "
          "ConfigProto.operation_timeout_in_ms=2000",
          client.expect("failed run"))
    # A step's time does not run while its session is opened: more than two
    # seconds later it waits, says for whom, and goes on when the ps comes.
    client = processes.python(program, worker, "step")
    client.expect("CreateSession still waiting")
    assert not client.lines("failed run"), client.output
    processes.server(spec, "ps")
    assert client.expect("did run") == "did run 1"
    del RECORDED["worker (master) up, ps not started: first run with "
                 "timeout_in_ms=2000"]

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
    assert not RECORDED
