"""A session that cannot have its cluster says who is missing and why."""

import json
import os
import re
import signal
import socket
import threading

import pytest

# The first line comes after 3 s; a loaded machine gets more time.
SOON = 30

# Serves as job `here` and runs a step over a cluster that has one more task.
CLIENT = """
    import sys
    import tensorflow as tf
    own, peer = sys.argv[1:3]
    server = tf.train.Server({"here": [own], "peer": [peer]}, "here", 0)
    print("asking")
    with tf.Session(server.target) as session:
        print("result", session.run(tf.constant(1) + 1))
    """


def waiting_line(client):
    """The first waiting line, which comes soon after the question."""
    client.expect("asking")
    line = client.expect("still waiting", SOON)
    assert "/job:peer/replica:0/task:0" in line
    return line


class Listener(object):
    """Answers every connection with the same bytes, or with none."""

    def __init__(self, answer):
        self._answer = answer
        self._open = []
        self._socket = socket.socket()
        self._socket.bind(("localhost", 0))
        self._socket.listen(16)
        self.address = "localhost:%d" % self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._open.append(connection)
            try:
                if self._answer:
                    connection.recv(10)
                    connection.sendall(self._answer)
            except OSError:
                pass

    def close(self):
        self._socket.close()
        for connection in self._open:
            connection.close()


def test_a_task_that_was_not_started_is_refused(processes, addresses):
    own, peer = addresses(2)
    line = waiting_line(processes.python(CLIENT, own, peer))
    assert "refused" in line
    assert peer in line


def test_a_name_that_does_not_resolve_is_told(processes, addresses):
    own, = addresses(1)
    line = waiting_line(processes.python(CLIENT, own, "nowhere.invalid:2222"))
    assert "nowhere.invalid:2222 does not resolve" in line


def test_a_server_that_is_stopped_gives_no_answer(processes, addresses):
    own, peer = addresses(2)
    server = processes.server({"here": [own], "peer": [peer]}, "peer")
    server.signal(signal.SIGSTOP)
    client = processes.python(CLIENT, own, peer)
    assert "no answer from " + peer in waiting_line(client)
    server.signal(signal.SIGCONT)
    client.expect("result 2")
    assert client.wait() == 0


@pytest.mark.parametrize("answer", [
    b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    b"220 mail.example ESMTP\r\n",
    bytes(range(256)) * 4,
], ids=["http", "mail", "garbage"])
def test_a_stranger_at_the_address_is_told(processes, addresses, answer):
    own, = addresses(1)
    listener = Listener(answer)
    try:
        line = waiting_line(processes.python(CLIENT, own, listener.address))
    finally:
        listener.close()
    assert "something else listens at " + listener.address in line


def test_a_peer_that_says_nothing_gives_no_answer(processes, addresses):
    own, = addresses(1)
    listener = Listener(b"")
    try:
        line = waiting_line(processes.python(CLIENT, own, listener.address))
    finally:
        listener.close()
    assert "no answer from " + listener.address in line


def test_a_server_of_another_cluster_is_told(processes, addresses):
    own, peer = addresses(2)
    processes.server({"other": [peer]}, "other")
    line = waiting_line(processes.python(CLIENT, own, peer))
    assert "another cluster" in line
    assert "/job:other/" in line


def test_the_same_task_of_another_cluster_is_told(processes, addresses):
    # Same job and index, so only the rest of the cluster differs: what happens
    # when one port is used by two programs.
    own, peer, third = addresses(3)
    processes.server({"peer": [peer], "third": [third]}, "peer")
    line = waiting_line(processes.python(CLIENT, own, peer))
    assert "another cluster" in line


def test_the_step_runs_when_the_task_comes(processes, addresses):
    own, peer = addresses(2)
    client = processes.python(CLIENT, own, peer)
    waiting_line(client)
    processes.server({"here": [own], "peer": [peer]}, "peer")
    client.expect("result 2")
    assert client.wait() == 0


def test_a_client_waits_for_its_master_and_says_so(processes, addresses):
    address, = addresses(1)
    client = processes.python("""
        import sys
        import tensorflow as tf
        print("asking")
        with tf.Session("grpc://" + sys.argv[1]) as session:
            print("result", session.run(tf.constant(1) + 1))
        """, address)
    client.expect("asking")
    line = client.expect("Waiting for the master at " + address, SOON)
    assert "refused" in line
    processes.server({"here": [address]}, "here")
    client.expect("result 2")
    assert client.wait() == 0


# A session with a limit, on its own server's target or on another's.
LIMITED = """
    import sys
    import tensorflow as tf
    own, peer, target, field, limit = sys.argv[1:6]
    if not target:
        server = tf.train.Server({"here": [own], "peer": [peer]}, "here", 0)
        target = server.target
    config = tf.ConfigProto()
    if field == "timeout":
        config.operation_timeout_in_ms = int(limit)
    elif field == "deadline":
        config.rpc_options.sluice_task_deadline_in_ms = int(limit)
    print("asking")
    with tf.Session(target, config=config) as session:
        try:
            session.run(tf.constant(1))
        except tf.errors.DeadlineExceededError as e:
            print("failed:", e.message)
    """


@pytest.fixture(params=["own", "remote"])
def limited(request, processes, addresses):
    """A function: starts the client, whose cluster lacks `peer`."""
    own, peer = addresses(2)

    def start(field, limit=0, **options):
        target = ""
        if request.param == "remote":
            processes.server({"here": [own], "peer": [peer]}, "here")
            target = "grpc://" + own
        client = processes.python(LIMITED, own, peer, target, field, limit,
                                  **options)
        client.peer = peer
        client.expect("asking")
        return client
    return start


def names_the_peer(client, line):
    return ("/job:peer/replica:0/task:0" in line and client.peer in line and
            "refused" in line)


def test_a_timeout_names_who_is_missing(limited):
    client = limited("timeout", 2000)
    line = client.expect("failed:")
    assert "Operation timed out." in line
    assert names_the_peer(client, line), line
    assert "did not answer" not in line


@pytest.mark.parametrize("how", ["field", "environment"])
def test_the_deadline_for_missing_tasks_can_be_set(limited, how):
    if how == "field":
        client = limited("deadline", 2000)
    else:
        client = limited("", env=dict(os.environ,
                                      SLUICE_TASK_DEADLINE_SECONDS="2"))
    line = client.expect("failed: The session gave up waiting for")
    assert names_the_peer(client, line), line


def test_a_client_says_whom_its_session_waits_for(limited):
    client = limited("timeout", 60000)
    line = client.expect("still waiting", SOON)
    assert names_the_peer(client, line), line
    assert re.search(r", after \d+ s", line), line


@pytest.mark.parametrize("kind", ["http", "name"])
def test_a_target_that_is_no_master_is_an_error(processes, kind):
    listener = Listener(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    target = listener.address if kind == "http" else "nowhere.invalid:1"
    client = processes.python("""
        import sys
        import tensorflow as tf
        config = tf.ConfigProto(operation_timeout_in_ms=8000)
        with tf.Session("grpc://" + sys.argv[1], config=config) as session:
            try:
                session.run(tf.constant(1))
            except (tf.errors.UnavailableError,
                    tf.errors.DeadlineExceededError) as e:
                print("failed:", e.message)
        """, target)
    line = client.expect("failed:")
    listener.close()
    assert target in line
    assert ("something else listens" if kind == "http" else
            "does not resolve") in line


def test_a_taken_port_is_named(processes, addresses):
    listener = Listener(b"")
    port = listener.address.split(":")[1]
    server = processes.sluice("server", "--cluster", "a=" + listener.address,
                              "--job", "a", "--task", 0)
    assert server.wait() == 1
    assert port in server.output
    assert "in use" in server.output
    client = processes.python(CLIENT, listener.address, "localhost:1")
    assert client.wait() == 1
    assert "UnknownError" in client.output
    assert "Could not start gRPC server" in client.output
    assert port in client.output
    listener.close()


@pytest.mark.parametrize("args, text", [
    (["--job", "worker"], "the cluster has no job 'worker'; it has: a b"),
    (["--job", "a", "--task", "2"], 'Task 2 was not defined in job "a"'),
    (["--job", "a", "--task", "-1"], 'Task -1 was not defined in job "a"'),
    ([], "it has: a b"),
])
def test_a_wrong_place_in_the_cluster_is_told(processes, args, text):
    server = processes.sluice(
        "server", "--cluster", "a=localhost:0,localhost:0;b=localhost:0", *args)
    assert server.wait() == 2
    assert text in server.output


def tf_config(addresses, **task):
    return dict(os.environ, TF_CONFIG=json.dumps(
        {"cluster": {"ps": addresses[:2], "worker": addresses[2:]}, **task}))


WORKER_1 = {"type": "worker", "index": 1}


@pytest.mark.parametrize("args, task, served", [
    ([], WORKER_1, 3),
    (["--task", "0"], WORKER_1, 2),
    (["--job", "worker"], WORKER_1, 3),
    (["--job", "ps", "--task", "1"], WORKER_1, 1),
    (["--job", "ps"], None, 0),
    (["--job", "worker", "--task", "1"], None, 3),
])
def test_an_option_takes_the_place_of_what_tf_config_says(
        processes, addresses, args, task, served):
    tasks = addresses(4)
    server = processes.sluice(
        "server", *args, env=tf_config(tasks, **({"task": task} if task
                                                 else {})))
    line = server.expect("Started server with target")
    assert line.endswith(tasks[served])


def test_the_index_of_a_task_is_not_that_of_another_jobs(processes, addresses):
    server = processes.sluice("server", "--job", "ps",
                              env=tf_config(addresses(4), task=WORKER_1))
    assert server.wait() == 2
    assert "--job ps needs a --task too" in server.output


@pytest.mark.parametrize("cluster, text", [
    ("a", "a"),
    ("a=localhost:0,,localhost:0", "Task 1 of job 'a' has an empty address"),
    ("a=localhost:0;b=", "Task 0 of job 'b' has an empty address"),
    ('{"a": ["localhost:0", " "]}', "Task 1 of job 'a' has an empty address"),
    ("a=nothing", "nothing"),
    ("a=host:port", "host:port"),
    ("a=localhost:99999", "localhost:99999"),
    ("a=x:1;a=y:2", "a"),
    ("my-job=x:1", "my-job"),
    ("missing.json", "missing.json"),
    ("{", "{"),
    ('{"a": 3}', "a"),
])
def test_a_wrong_cluster_is_told(processes, cluster, text):
    server = processes.sluice("server", "--cluster", cluster, "--job",
                              "my-job" if "my-job" in cluster else "a")
    assert server.wait() == 2
    assert text in server.output


def test_python_tells_a_wrong_place_by_its_error(processes, addresses):
    client = processes.python("""
        import tensorflow as tf
        for job, task in [("nobody", 0), ("a", 7)]:
            try:
                tf.train.Server({"a": ["localhost:0"]}, job, task)
            except tf.errors.OpError as e:
                print(type(e).__name__ + ":", e.message)
        """)
    assert client.wait() == 0, client.output
    assert ('InternalError: Job "nobody" was not defined in cluster'
            in client.output)
    assert ('InvalidArgumentError: Task 7 was not defined in job "a"'
            in client.output)
