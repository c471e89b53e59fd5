"""Clusters under mutual TLS, and what those hear who do not belong to them."""

import os
import signal
import socket
import stat

import pytest

# The first line about a missing task comes after 3 s; see test_missing_tasks.
SOON = 30

# Trains a line on one ps and as many workers as there are.
TRAINER = """
    import json, os
    import tensorflow as tf
    config = json.loads(os.environ["TF_CONFIG"])
    cluster = tf.train.ClusterSpec(config["cluster"])
    job, task = config["task"]["type"], config["task"]["index"]
    server = tf.train.Server(cluster, job, task)
    if job == "ps":
        server.join()
    me = "/job:worker/task:%d" % task
    with tf.device(tf.train.replica_device_setter(worker_device=me,
                                                  cluster=cluster)):
        step = tf.train.get_or_create_global_step()
        w = tf.get_variable("w", initializer=0.0)
        loss = tf.square(w - 3.0)
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    with tf.train.MonitoredTrainingSession(
            server.target, task == 0,
            config=tf.ConfigProto(device_filters=["/job:ps", me]),
            hooks=[tf.train.StopAtStepHook(last_step=100)]) as session:
        while not session.should_stop():
            session.run(train)
        print("trained")
    """

CLIENT = """
    import sys
    import tensorflow as tf
    print("asking")
    try:
        with tf.Session("grpc://" + sys.argv[1]) as session:
            print("result", session.run(tf.constant(1) + 1))
    except tf.errors.OpError as e:
        print(type(e).__name__ + ":", e.message)
    """


def certificates(processes, name, *options):
    """A folder of them, made by `sluice certs`."""
    made = processes.sluice("certs", name, *options)
    assert made.wait() == 0, made.output
    return str(processes.path / name)


def environment(folder):
    result = dict(os.environ)
    if folder:
        result.update(SLUICE_TLS_CERT=os.path.join(folder, "tls.crt"),
                      SLUICE_TLS_KEY=os.path.join(folder, "tls.key"),
                      SLUICE_TLS_CA=os.path.join(folder, "ca.crt"))
    return result


def server(processes, cluster, job, *options):
    text = ";".join("%s=%s" % (name, ",".join(tasks))
                    for name, tasks in sorted(cluster.items()))
    process = processes.sluice("server", "--cluster", text, "--job", job,
                               *options)
    process.expect("Started server")
    return process


def client(processes, address, folder=None):
    return processes.python(CLIENT, address, env=environment(folder))


@pytest.mark.parametrize("how", ["--tls", "--tls=certs"])
def test_a_cluster_trains(processes, how):
    if "=" in how:
        certificates(processes, "certs")
    run = processes.sluice("run", how, "--ps", 1, "--workers", 2,
                           processes.program(TRAINER))
    assert run.wait() == 0, run.output
    assert len(run.lines("trained")) == 2, run.output


def test_the_certificates_of_a_run_go_away_with_it(processes, tmp_path):
    folder = tmp_path / "temporary"
    folder.mkdir()
    run = processes.sluice("run", "--tls", "--ps", 1, "--workers", 1,
                           processes.program(TRAINER),
                           env=dict(os.environ, TMPDIR=str(folder)))
    assert run.wait() == 0, run.output
    assert list(folder.iterdir()) == []


def test_the_certificates_go_away_when_the_terminal_does(processes, tmp_path):
    folder = tmp_path / "temporary"
    folder.mkdir()
    run = processes.sluice("run", "--tls", "--workers", 1,
                           processes.program("""
        import time
        print("up")
        time.sleep(1000)
        """), env=dict(os.environ, TMPDIR=str(folder)))
    run.expect("up")
    assert len(list(folder.iterdir())) == 1
    run.signal(signal.SIGHUP)
    assert run.wait() == 130
    assert list(folder.iterdir()) == []


def test_a_client_with_a_certificate_is_served(processes, addresses):
    address, = addresses(1)
    folder = certificates(processes, "certs")
    server(processes, {"a": [address]}, "a", "--tls", folder)
    asking = client(processes, address, folder)
    asking.expect("result 2")
    assert asking.wait() == 0
    devices = processes.sluice("devices", "grpc://" + address, "--tls", folder)
    assert devices.wait() == 0, devices.output
    assert "/job:a/replica:0/task:0/device:CPU:0" in devices.output
    status = processes.sluice("status", "grpc://" + address, "--tls", folder)
    assert status.wait() == 0, status.output
    doctor = processes.sluice("doctor", "a=" + address, "--tls", folder)
    assert doctor.wait() == 0, doctor.output
    ill = processes.sluice("doctor", "a=" + address)
    assert ill.wait() == 1
    assert "wants TLS" in ill.output


def test_a_client_may_have_a_certificate_of_its_own(processes, addresses):
    address, = addresses(1)
    folder = certificates(processes, "certs")
    own = certificates(processes, "own", "--ca", folder, "--host", "laptop")
    assert not os.path.exists(os.path.join(own, "ca.key"))
    server(processes, {"a": [address]}, "a", "--tls", folder)
    client(processes, address, own).expect("result 2")


def test_a_config_names_certificates_in_python(processes, addresses):
    folder = certificates(processes, "certs")
    asking = processes.python("""
        import os, sys
        import tensorflow as tf
        config = tf.ConfigProto()
        tls = config.rpc_options.sluice_tls
        tls.certificate = os.path.join(sys.argv[1], "tls.crt")
        tls.key = os.path.join(sys.argv[1], "tls.key")
        tls.ca = os.path.join(sys.argv[1], "ca.crt")
        server = tf.train.Server({"a": ["localhost:0"]}, config=config)
        # Another name, so that it is not the shortcut inside a process.
        target = server.target.replace("localhost", "Localhost")
        with tf.Session(target, config=config) as session:
            print("result", session.run(tf.constant(1) + 1))
        tf.Session.reset(target, config=config)
        try:
            tf.Session(target).run(tf.constant(1))
        except tf.errors.UnauthenticatedError as e:
            # In one piece: logs go the same way.
            print("refused: " + e.message + os.linesep, end="")
        """, folder)
    assert asking.wait() == 0, asking.output
    asking.expect("result 2")
    assert "wants TLS" in asking.expect("refused:")
    # The server's log names the config it was sent.
    assert "tls.key" not in asking.output


@pytest.mark.parametrize("who, text", [
    ("plain", "wants TLS"),
    ("stranger", "not signed by the CA of this side"),
    ("unknown", "does not take the certificate of this side"),
])
def test_a_client_that_does_not_belong_is_told(processes, addresses, who,
                                               text):
    address, = addresses(1)
    folder = certificates(processes, "certs")
    other = certificates(processes, "other")
    if who == "unknown":
        # It trusts the server, which does not trust it.
        with open(os.path.join(folder, "ca.crt")) as ours:
            with open(os.path.join(other, "ca.crt"), "a") as both:
                both.write(ours.read())
    server(processes, {"a": [address]}, "a", "--tls", folder)
    asking = client(processes, address, None if who == "plain" else other)
    asking.expect("asking")
    line = asking.expect("UnauthenticatedError:", SOON)
    assert text in line
    assert address in line
    # The server is none the worse for it.
    client(processes, address, folder).expect("result 2")


def test_a_client_under_tls_is_told_of_a_plain_server(processes, addresses):
    address, = addresses(1)
    server(processes, {"a": [address]}, "a")
    line = client(processes, address, certificates(processes, "certs")).expect(
        "UnauthenticatedError:", SOON)
    assert address + " speaks plain text" in line


@pytest.mark.parametrize("own, peer, text", [
    (True, False, "speaks plain text"),
    (False, True, "wants TLS"),
])
def test_a_task_that_differs_is_named(processes, addresses, own, peer, text):
    here, there = addresses(2)
    cluster = {"here": [here], "peer": [there]}
    folder = certificates(processes, "certs")
    with_tls = ["--tls", folder]
    server(processes, cluster, "peer", *(with_tls if peer else []))
    asked = server(processes, cluster, "here", *(with_tls if own else []))
    client(processes, here, folder if own else None).expect("asking")
    line = asked.expect("still waiting", SOON)
    assert "/job:peer/replica:0/task:0" in line
    assert text in line


def test_a_task_of_another_ca_is_named(processes, addresses):
    here, there = addresses(2)
    cluster = {"here": [here], "peer": [there]}
    folder = certificates(processes, "certs")
    server(processes, cluster, "peer", "--tls",
           certificates(processes, "other"))
    asked = server(processes, cluster, "here", "--tls", folder)
    client(processes, here, folder).expect("asking")
    line = asked.expect("still waiting", SOON)
    assert "/job:peer/replica:0/task:0" in line
    assert "not signed by the CA of this side" in line


def test_those_who_never_finish_to_say_hello_block_nobody(processes,
                                                          addresses):
    address, = addresses(1)
    folder = certificates(processes, "certs")
    server(processes, {"a": [address]}, "a", "--tls", folder, "--limit",
           "handshake_ms=1000")
    host, port = address.split(":")
    silent = []
    for i in range(200):
        connection = socket.create_connection((host, int(port)), 30)
        if i % 2:
            connection.sendall(b"\x16\x03\x01\x02\x00\x01")  # Half a hello.
        silent.append(connection)
    client(processes, address, folder).expect("result 2")
    # They are dropped in the end.
    for connection in silent:
        connection.settimeout(SOON)
        try:
            while connection.recv(1000):
                pass
        except ConnectionResetError:
            pass
        connection.close()


def test_certificates_are_made_with_care(processes):
    folder = certificates(processes, "certs", "--host", "node-1")
    modes = {name: stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode)
             for name in os.listdir(folder)}
    assert modes == {"ca.crt": 0o644, "ca.key": 0o600, "tls.crt": 0o644,
                     "tls.key": 0o600}
    before = {name: open(os.path.join(folder, name)).read() for name in modes}
    again = processes.sluice("certs", folder)
    assert again.wait() == 1
    assert "exists" in again.output
    assert before == {name: open(os.path.join(folder, name)).read()
                      for name in modes}


def test_a_certificate_is_valid_no_longer_than_its_ca(processes):
    folder = certificates(processes, "certs", "--days", "20")
    made = processes.sluice("certs", "own", "--ca", folder, "--days", "700")
    assert made.wait() == 0, made.output
    assert "valid 20 days, as long as its CA" in made.output


@pytest.mark.parametrize("options, text", [
    (["--host", "node:2222"], "node:2222"),
    (["--days", "0"], "--days"),
    (["--days", "3000000"], "--days must be from 1 to 36500"),
    (["--ca", "nowhere"], "nowhere/ca.crt"),
])
def test_a_wrong_wish_for_certificates_is_told(processes, options, text):
    made = processes.sluice("certs", "certs", *options)
    assert made.wait() == 2
    assert text in made.output
    assert not (processes.path / "certs").exists()


@pytest.mark.parametrize("wrong, text", [
    ("missing", "tls.key; No such file or directory"),
    ("text", "tls.key: not a private key in PEM form"),
    ("other", "tls.key: does not belong to the certificate"),
])
def test_wrong_files_are_named(processes, wrong, text):
    folder = certificates(processes, "certs")
    key = os.path.join(folder, "tls.key")
    if wrong == "missing":
        os.remove(key)
    elif wrong == "text":
        with open(key, "w") as file:
            file.write("hello")
    else:
        os.replace(os.path.join(certificates(processes, "other"), "tls.key"),
                   key)
    process = processes.sluice("server", "--cluster", "a=localhost:0", "--tls",
                               folder)
    assert process.wait() == 2
    assert text in process.output


def test_one_process_needs_a_folder(processes):
    run = processes.sluice("run", "--tls", processes.program(CLIENT))
    assert run.wait() == 2
    assert "--tls=DIR" in run.output


@pytest.mark.parametrize("command", [
    ["server", "--cluster", "a=localhost:0", "--tls", ""],
    ["run", "--tls=", "program.py"],
    ["devices", "localhost:1", "--tls", ""],
    ["status", "localhost:1", "--tls="],
    ["doctor", "a=localhost:1", "--tls", ""],
    # Not with the next word as the folder.
    ["devices", "--tls=", "localhost:1"],
    ["run", "--tls=", "--ps", "1", "program.py"],
])
def test_an_empty_folder_does_not_mean_plain_text(processes, command):
    processes.program(CLIENT, "program.py")
    process = processes.sluice(*command)
    assert process.wait() == 2
    assert "--tls" in process.output
    assert "asking" not in process.output


@pytest.mark.parametrize("cluster", [[], ["--workers", 1]])
def test_a_run_needs_certificates_that_can_be_used(processes, cluster):
    run = processes.sluice("run", "--tls=nowhere", *cluster,
                           processes.program(CLIENT))
    assert run.wait() == 2
    assert "nowhere/tls.crt" in run.output
    assert "asking" not in run.output
