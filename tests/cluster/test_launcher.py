"""`sluice run` ends every process it started, however it ends itself."""

import os
import re
import signal
import sys

import pytest

from conftest import gone, wait_until

# Each task tells its process id and serves; the workers wait for an element
# that never comes.
TASKS = """
    import json, os
    import tensorflow as tf
    config = json.loads(os.environ["TF_CONFIG"])
    job, task = config["task"]["type"], config["task"]["index"]
    server = tf.train.Server(config["cluster"], job, task)
    if job == "ps":
        print("pid %d" % os.getpid())
        server.join()
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(1, tf.int32)
        element = queue.dequeue()
    with tf.Session(server.target) as session:
        session.run(queue.size())
        print("pid %d" % os.getpid())
        session.run(element)
    """


@pytest.fixture
def running(processes):
    """The launcher and the ids of its three tasks, all of which serve."""
    launcher = processes.sluice("run", "--ps", 1, "--workers", 2,
                                processes.program(TASKS))
    launcher.expect("pid ", after=2)
    pids = [int(line.split()[-1]) for line in launcher.lines("] pid ")]
    yield launcher, pids
    for pid in pids:
        if not gone(pid):
            os.kill(pid, signal.SIGKILL)


def test_no_outgoing_connection_can_take_the_port_of_a_task(processes):
    launcher = processes.sluice("run", "--ps", 3, processes.program("""
        import os
        print(os.environ["TF_CONFIG"])
        """))
    line = launcher.expect("cluster")
    ports = [int(p) for p in re.findall(r"localhost:(\d+)", line)]
    with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
        first, last = map(int, f.read().split())
    assert len(set(ports)) == 3
    assert not any(first <= port <= last for port in ports), line


def test_parameter_servers_without_workers_end_by_themselves(processes):
    launcher = processes.sluice("run", "--ps", 2, processes.program("""
        import os
        import time
        print("up")
        while not os.path.exists("go"):
            time.sleep(0.01)
        print("done")
        """))
    launcher.expect("] up", after=1)
    (processes.path / "go").touch()
    assert launcher.wait() == 0
    assert len(launcher.lines("] done")) == 2


def all_gone(pids):
    return all(gone(pid) for pid in pids)


def test_ctrl_c_ends_every_task(running):
    launcher, pids = running
    launcher.signal_group(signal.SIGINT)
    assert launcher.wait() == 130
    assert all_gone(pids)


def test_an_interrupt_of_the_launcher_alone_ends_every_task(running):
    launcher, pids = running
    launcher.signal(signal.SIGINT)
    assert launcher.wait() == 130
    assert all_gone(pids)


def test_a_request_to_end_reaches_every_task(running):
    launcher, pids = running
    launcher.signal(signal.SIGTERM)
    assert launcher.wait() != 0
    assert all_gone(pids)


def test_the_launchers_death_takes_every_task_along(running):
    launcher, pids = running
    launcher.kill()
    wait_until(lambda: all_gone(pids), "the tasks end")


def test_a_killed_task_ends_the_run_with_its_status(running):
    launcher, pids = running
    os.kill(pids[-1], signal.SIGKILL)
    assert launcher.wait() == 128 + signal.SIGKILL
    assert all_gone(pids)
    assert "ended with status 137" in launcher.output


def test_a_task_that_ignores_the_request_is_killed(processes):
    launcher = processes.sluice("run", "--workers", 1, processes.program("""
        import os, signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        print("pid %d" % os.getpid())
        while True:
            time.sleep(1)
        """))
    pid = int(launcher.expect("pid ").split()[-1])
    launcher.signal(signal.SIGINT)
    assert launcher.wait() == 130
    assert gone(pid)


def script(processes, text):
    path = processes.path / "wrapper.sh"
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


# Without exec, so that the shell waits for a process of its own.
WRAPPER = """
    sh -c 'echo "pid $$"; exec sleep 1000'
    exit 3
    """


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM,
                                    signal.SIGHUP])
def test_what_a_task_started_ends_with_it(processes, number):
    launcher = processes.sluice("run", "--ps", 1, "--workers", 1,
                                script(processes, WRAPPER))
    launcher.expect("pid ", after=1)
    pids = [int(line.split()[-1]) for line in launcher.lines("] pid ")]
    launcher.signal(number)
    assert launcher.wait() == 130
    assert all_gone(pids)


def test_what_a_task_leaves_behind_ends_with_the_run(processes):
    launcher = processes.sluice("run", "--workers", 1, script(processes, """
        sleep 1000 &
        echo "pid $!"
        """))
    pid = int(launcher.expect("pid ").split()[-1])
    assert launcher.wait() == 0
    assert gone(pid)


def test_a_failed_wrapper_takes_its_program_along(processes):
    launcher = processes.sluice("run", "--workers", 1, script(processes, """
        sh -c 'trap "" TERM; echo "pid $$"; while true; do sleep 1; done' &
        while [ ! -e go ]; do sleep 0.01; done
        exit 3
        """))
    pid = int(launcher.expect("pid ").split()[-1])
    (processes.path / "go").touch()
    assert launcher.wait() == 3
    assert gone(pid)


# Runs a command in a terminal whose keys are what it is told.
TERMINAL = (sys.executable, "-c", """
import os, pty, sys
status = pty.spawn(sys.argv[1:])
sys.exit(os.waitstatus_to_exitcode(status))
""")

# What the terminal does not print of itself, which begins with "^C".
COUNTS = """
    import signal, sys
    seen = []
    def ask(number, frame):
        if number == signal.SIGTERM:
            print("interrupts:", seen.count(signal.SIGINT))
            sys.exit(0)
        seen.append(number)
        print("interrupted")
    signal.signal(signal.SIGINT, ask)
    signal.signal(signal.SIGTERM, ask)
    print("read %r" % sys.stdin.read())
    print("ready")
    while True:
        signal.pause()
    """


def test_ctrl_c_in_a_terminal_reaches_every_task_once(processes):
    launcher = processes.sluice("run", "--workers", 2,
                                processes.program(COUNTS), within=TERMINAL)
    launcher.expect("ready", after=1)
    assert len(launcher.lines("read ''")) == 2
    launcher.say("\x03")
    launcher.expect("interrupted", after=1)
    launcher.expect("interrupts: 1", after=1)
    assert launcher.wait() == 130


def test_a_single_task_has_the_terminal(processes):
    launcher = processes.sluice("run", "--workers", 1, processes.program("""
        print("name?")
        print("hello", input())
        try:
            input()
        except KeyboardInterrupt:
            print("interrupted")
        print("goodbye", input())
        """), within=TERMINAL)
    launcher.expect("name?")
    launcher.say("you")
    launcher.expect("hello you")
    launcher.say("\x03")
    launcher.expect("] interrupted")
    launcher.say("me")
    launcher.expect("goodbye")
    assert launcher.wait() == 0, launcher.output


def test_tasks_read_what_is_piped_into_the_launcher(processes):
    launcher = processes.sluice("run", "--workers", 1, processes.program("""
        import sys
        print("read %r" % sys.stdin.read())
        """))
    launcher.say("word")
    launcher.close_input()
    launcher.expect("read 'word\\n'")
    assert launcher.wait() == 0


def test_a_task_that_never_pauses_does_not_deafen_the_launcher(processes):
    program = processes.program("""
        import json, os, sys, time
        if json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 0:
            open("flooding", "w").close()
            while True:
                os.write(1, b"\\n" * 65536)
        while not os.path.exists("flooding"):
            time.sleep(0.01)
        print("pid %d" % os.getpid(), file=sys.stderr)
        time.sleep(1000)
        """)
    launcher = processes.sluice(
        "run", "--workers", 2, program,
        within=("sh", "-c", 'exec "$@" >/dev/null', "sh"))
    pid = int(launcher.expect("[worker/1] pid ").split()[-1])
    launcher.signal(signal.SIGTERM)
    assert launcher.wait() != 0
    assert gone(pid)


def test_a_line_without_an_end_is_shown_in_pieces(processes):
    launcher = processes.sluice("run", "--workers", 1, processes.program("""
        import os, time
        print("x" * 150000, end="", flush=True)
        while not os.path.exists("go"):
            time.sleep(0.01)
        print("y", end="")
        """))
    piece = launcher.expect("x")
    assert piece == "[worker/0] " + "x" * 65536
    (processes.path / "go").touch()
    assert launcher.wait() == 0
    assert len(launcher.lines("x")) == 3
    assert launcher.lines("x")[-1].endswith("xy")


ARGUMENTS = """
    import os, sys
    print("arguments", sys.argv[1:], "TF_CONFIG" in os.environ)
    """


@pytest.mark.parametrize("wrong", ["--tsl", "--wokers=2", "-x"])
def test_an_option_that_does_not_exist_is_not_the_scripts(processes, wrong):
    launcher = processes.sluice("run", wrong, "--workers", 1,
                                processes.program(ARGUMENTS))
    assert launcher.wait() == 2
    assert wrong in launcher.output
    assert "arguments" not in launcher.output


def test_what_follows_the_script_is_the_scripts(processes):
    launcher = processes.sluice(
        "run", "--workers=1", "--wire", "env", processes.program(ARGUMENTS),
        "--tsl", "--ps", 3, "run", "--", "x", "")
    assert launcher.wait() == 0, launcher.output
    assert ("arguments ['--tsl', '--ps', '3', 'run', '--', 'x', ''] True" in
            launcher.output)


@pytest.mark.parametrize("args, text", [
    (["foo"], "there is no command 'foo'; there are: run server"),
    ([], "subcommand is required"),
    (["run"], "program is required"),
    (["run", "--ps"], "--ps"),
    (["run", "--ps", "many", "x.py"], "many"),
    (["server", "--jbo", "a"], "--jbo"),
    (["status"], "target is required"),
    (["status", "nothing"], "nothing"),
    (["devices", "nothing"], "nothing"),
    (["devices", ""], "target"),
    (["doctor", ""], "cluster"),
    (["server", "--cluster", ""], "--cluster"),
    (["server", "--cluster=", "a=localhost:0"], "--cluster"),
    (["server", "--cluster", "a=localhost:0", "--job", ""], "--job"),
    (["server", "--cluster", "a=localhost:0", "--limit", ""], "--limit"),
    (["server", "--cluster", "a=localhost:0", "--bind", ""], "--bind"),
    (["certs", "folder", "--ca", ""], "--ca"),
    (["certs", "folder", "--host="], "--host"),
    (["run", "--python", "", "x.py"], "--python"),
    (["run", ""], "program"),
])
def test_a_wrong_command_line_is_told(processes, args, text):
    process = processes.sluice(*args)
    assert process.wait() == 2
    assert text in process.output


def test_the_version_and_help_are_told(processes):
    for option in ("--version", "--help"):
        process = processes.sluice(option)
        assert process.wait() == 0
        assert process.output
    assert "--workers" in processes.sluice("run", "--help").expect("--workers")


# Waits for an element that never comes; Ctrl-C ends the wait, not the session.
WAITS = """
    import sys
    import tensorflow as tf
    queue = tf.FIFOQueue(1, tf.int32)
    element = queue.dequeue()
    with tf.Session(sys.argv[1] if len(sys.argv) > 1 else "") as session:
        session.run(queue.size())
        try:
            print("waiting")
            session.run(element)
        except KeyboardInterrupt:
            print("step interrupted")
        print("size", session.run(queue.size()))
    """


def interrupt_step(client):
    client.expect("waiting")
    client.signal(signal.SIGINT)
    client.expect("step interrupted")
    client.expect("size 0")
    assert client.wait() == 0, client.output


def test_ctrl_c_ends_a_step_in_process(processes):
    interrupt_step(processes.python(WAITS))


def test_ctrl_c_ends_a_remote_step_and_a_join(processes):
    server = processes.python("""
        import tensorflow as tf
        server = tf.train.Server.create_local_server()
        print("target", server.target)
        try:
            server.join()
        except KeyboardInterrupt:
            print("join interrupted")
        """)
    target = server.expect("target ").split()[-1]
    interrupt_step(processes.python(WAITS, target))
    server.signal(signal.SIGINT)
    server.expect("join interrupted")
    assert server.wait() == 0


def test_ctrl_c_ends_the_wait_for_a_missing_task(processes, addresses):
    own, peer = addresses(2)
    client = processes.python("""
        import sys
        import tensorflow as tf
        server = tf.train.Server({"a": sys.argv[1:2], "b": sys.argv[2:3]},
                                 "a", 0)
        try:
            tf.Session(server.target).run(tf.constant(1))
        except KeyboardInterrupt:
            print("interrupted")
        """, own, peer)
    client.expect("still waiting")
    client.signal(signal.SIGINT)
    client.expect("interrupted")
    assert client.wait() == 0, client.output
