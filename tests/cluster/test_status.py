"""`sluice status`, `sluice devices` and SIGUSR1."""

import json
import os
import signal


def test_status_shows_sessions_and_counters(processes, addresses):
    address, = addresses(1)
    processes.server({"here": [address]}, "here")
    client = processes.python("""
        import sys
        import tensorflow as tf
        session = tf.Session("grpc://" + sys.argv[1])
        print("result", session.run(tf.constant(1) + 1))
        sys.stdin.readline()
        """, address)
    client.expect("result 2")
    status = processes.sluice("status", "grpc://" + address)
    assert status.wait() == 0, status.output
    assert "/job:here/replica:0/task:0 at grpc://" in status.output
    assert "sessions: 1" in status.output
    assert "held" in status.output
    assert "RunStep 1," in status.output
    status = processes.sluice("status", address, "--json")
    assert status.wait() == 0
    told = json.loads(status.output)
    assert told["task"] == "/job:here/replica:0/task:0"
    assert told["steps_started"] == "1"


def test_status_of_nobody_is_an_error_that_says_why(processes, addresses):
    address, = addresses(1)
    status = processes.sluice("status", address)
    assert status.wait() == 1
    assert "refused" in status.output
    assert address in status.output


def test_devices_lists_a_targets_devices(processes, addresses):
    address, = addresses(1)
    processes.server({"here": [address]}, "here")
    devices = processes.sluice("devices", "grpc://" + address)
    assert devices.wait() == 0, devices.output
    assert "/job:here/replica:0/task:0/device:CPU:0" in devices.output
    devices = processes.sluice("devices")
    assert devices.wait() == 0
    assert "/device:CPU:0" in devices.output


def test_devices_names_the_tasks_that_are_missing(processes, addresses):
    here, there = addresses(2)
    processes.server({"here": [here], "there": [there]}, "here")
    devices = processes.sluice("devices", here)
    assert devices.wait() == 1, devices.output
    assert "/job:here/replica:0/task:0/device:CPU:0" in devices.output
    line, = devices.lines("is missing")
    assert line.startswith("/job:there/replica:0/task:0 is missing: ")
    assert "nothing listens at " + there in line


def test_devices_does_not_wait_for_a_stopped_task(processes, addresses):
    here, there = addresses(2)
    spec = {"here": [here], "there": [there]}
    processes.server(spec, "here")
    stopped = processes.server(spec, "there")
    stopped.signal(signal.SIGSTOP)
    devices = processes.sluice("devices", here)
    assert devices.wait() == 1, devices.output
    assert "/job:here/replica:0/task:0/device:CPU:0" in devices.output
    assert "no answer from " + there in devices.output
    stopped.signal(signal.SIGCONT)


def test_devices_of_nobody_is_an_error_that_says_why(processes, addresses):
    address, = addresses(1)
    devices = processes.sluice("devices", address)
    assert devices.wait() == 1
    assert "nothing listens at " + address in devices.output


def test_sigusr1_prints_the_status_of_a_server(processes, addresses):
    address, = addresses(1)
    server = processes.server({"here": [address]}, "here")
    for i in range(2):
        server.signal(signal.SIGUSR1)
        server.expect("/job:here/replica:0/task:0 at grpc://", after=i)
        server.expect("blocking pool:", after=i)
    server.signal(signal.SIGTERM)
    assert server.wait() == 0


def test_sigusr1_prints_the_status_of_a_python_program(processes):
    program = processes.python("""
        import os, sys
        import tensorflow as tf
        server = tf.train.Server.create_local_server()
        print("pid", os.getpid())
        print("read", sys.stdin.readline())
        """)
    line = program.expect("pid")
    os.kill(int(line.split()[1]), signal.SIGUSR1)
    program.expect("/job:local/replica:0/task:0 at grpc://")
    # It goes on as if nothing had happened.
    program.say("more")
    program.expect("read more")
    assert program.wait() == 0


def test_a_program_that_uses_sigusr1_keeps_it(processes):
    program = processes.python("""
        import os, signal
        import tensorflow as tf
        signal.signal(signal.SIGUSR1, lambda *_: print("mine"))
        server = tf.train.Server.create_local_server()
        os.kill(os.getpid(), signal.SIGUSR1)
        # And one that finds a use for it later.
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
        other = tf.train.Server.create_local_server()
        signal.signal(signal.SIGUSR1, lambda *_: print("also mine"))
        os.kill(os.getpid(), signal.SIGUSR1)
        """)
    assert program.wait() == 0, program.output
    assert "also mine" in program.output
    assert len(program.lines("mine")) == 2
    assert "blocking pool" not in program.output
