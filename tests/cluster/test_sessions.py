"""What sessions on a cluster of processes promise, through Python."""

import re

import pytest

from tap import Tap


class Servers(object):
    """1 ps and 2 workers, and clients of the first worker."""

    def __init__(self, processes, addresses):
        self.processes = processes
        self.ps, self.worker, self.other = addresses(3)
        spec = {"ps": [self.ps], "worker": [self.worker, self.other]}
        self.master = processes.server(spec, "worker", 0)
        self.rest = [processes.server(spec, "ps"),
                     processes.server(spec, "worker", 1)]

    def client(self, text, target=None):
        """A program whose `target` is the first worker's."""
        head = ("import sys\nimport threading\nimport tensorflow as tf\n"
                "target, ps, worker, other = sys.argv[1:]\n")
        path = self.processes.program(text, head=head)
        return self.processes.sluice(
            "run", path, "grpc://" + (target or self.worker), self.ps,
            self.worker, self.other)

    def run(self, text):
        client = self.client(text)
        assert client.wait() == 0, client.output
        return client


@pytest.fixture
def servers(processes, addresses):
    return Servers(processes, addresses)


def test_isolated_sessions_keep_their_variables_for_themselves(servers):
    servers.run("""
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable("v", initializer=1.)
        shared = tf.Session(target)
        shared.run(v.initializer)
        config = tf.ConfigProto(isolate_session_state=True)
        for _ in range(2):
            with tf.Session(target, config=config) as isolated:
                try:
                    isolated.run(v)
                    sys.exit("it sees what it must not")
                except tf.errors.FailedPreconditionError:
                    pass
                isolated.run(v.assign(5.))
                assert isolated.run(v) == 5.
        assert shared.run(v) == 1.
        """)


def test_filters_leave_out_tasks(servers):
    servers.rest[1].kill()  # Nobody waits for it.
    servers.run("""
        config = tf.ConfigProto(
            device_filters=["/job:ps", "/job:worker/task:0"])
        with tf.Session(target, config=config) as session:
            names = [d.name for d in session.list_devices()]
            assert names == ["/job:worker/replica:0/task:0/device:CPU:0",
                             "/job:ps/replica:0/task:0/device:CPU:0"], names
            with tf.device("/job:worker/task:1"):
                away = tf.constant(1.)
            try:
                session.run(away)
                sys.exit("it runs where it must not")
            except tf.errors.InvalidArgumentError as e:
                assert "available devices are" in e.message, e.message
        config = tf.ConfigProto(device_filters=["bogus"])
        try:
            tf.Session(target, config=config).run(tf.constant(1))
            sys.exit("it takes any filter")
        except tf.errors.InvalidArgumentError as e:
            assert "Invalid device filter: bogus" in e.message, e.message
        """)


def test_a_session_may_bring_a_cluster_of_its_own(servers):
    """The tasks serve it under the names it gives, with state of its own."""
    servers.run("""
        def cluster(**jobs):
            return tf.train.ClusterSpec(jobs).as_cluster_def()

        config = tf.ConfigProto(cluster_def=cluster(
            chief=[worker], store=[ps], helper=[other]))
        with tf.device("/job:store/task:0"):
            v = tf.get_variable("v", initializer=[1., 2.])
        with tf.device("/job:helper/task:0"):
            doubled = v * 2.
        with tf.device("/job:chief/task:0"):
            total = tf.reduce_sum(doubled)
            a = tf.placeholder(tf.float32, [])
        with tf.device("/job:store/task:0"):
            half = a + 1.
            whole = half + v[0]
        with tf.Session(target, config=config) as session:
            names = sorted(d.name for d in session.list_devices())
            assert names == ["/job:%s/replica:0/task:0/device:CPU:0" % job
                             for job in ("chief", "helper", "store")], names
            session.run(v.initializer)
            assert session.run(total) == 6.
            session.run(v.assign_add([1., 1.]))
            assert session.run(total) == 10.
            step = session.partial_run_setup([half, whole], [a])
            assert session.partial_run(step, half, {a: 4.}) == 5.
            assert session.partial_run(step, whole) == 7.
            try:
                session.run(tf.floordiv(1, tf.cast(v - v, tf.int32)))
                sys.exit("it divides by zero")
            except tf.errors.InvalidArgumentError as e:
                assert "From /job:" in e.message, e.message
        # The servers' own variables are others.
        with tf.Graph().as_default(), tf.device("/job:ps/task:0"):
            v = tf.get_variable("v", initializer=[7., 7.])
            with tf.Session(target) as session:
                try:
                    session.run(v)
                    sys.exit("the state is not its own")
                except tf.errors.FailedPreconditionError:
                    pass

        def refused(config, text):
            try:
                with tf.Graph().as_default():
                    tf.Session(target, config=config).run(tf.constant(1))
                sys.exit("accepted, but " + text)
            except tf.errors.InvalidArgumentError as e:
                assert text in e.message, e.message
        refused(tf.ConfigProto(cluster_def=cluster(x=["elsewhere:1"])),
                "The master (current machine) is not included")
        refused(tf.ConfigProto(cluster_def=cluster(x=[worker], y=[worker])),
                "Found multiple matching tasks")
        refused(tf.ConfigProto(cluster_def=cluster(worker=[worker])),
                "the same names that were provided when the server booted")
        """)


def test_reset_clears_containers_on_every_task(servers):
    servers.run("""
        with tf.device("/job:ps/task:0"):
            plain = tf.get_variable("plain", initializer=1.)
            with tf.container("kept"):
                kept = tf.get_variable("kept", initializer=2.)
        with tf.device("/job:worker/task:1"), tf.container("kept"):
            far = tf.get_variable("far", initializer=3.)

        def there(v):
            with tf.Session(target) as session:
                return bool(session.run(tf.is_variable_initialized(v)))

        old = tf.Session(target)
        old.run([plain.initializer, kept.initializer, far.initializer])
        tf.Session.reset(target)
        assert not there(plain) and there(kept) and there(far)
        try:
            old.run(kept)
            sys.exit("reset leaves sessions open")
        except tf.errors.AbortedError as e:
            assert "is not found" in e.message, e.message
        tf.Session.reset(target, ["kept"])
        assert not there(kept) and not there(far)
        """)


def test_one_server_runs_sessions_of_many_graphs(servers):
    servers.run("""
        sessions = []
        for i in range(20):
            graph = tf.Graph()
            with graph.as_default():
                with tf.device("/job:ps/task:0"):
                    x = tf.constant(float(i), name="x")
                with tf.device("/job:worker/task:1"):
                    y = tf.add(x, 1., name="y")
            sessions.append(tf.Session(target, graph=graph))
        for turn in range(3):
            for i, session in enumerate(sessions):
                assert session.run("y:0") == i + 1.
                # Another part of the same graph is another kind of step.
                assert session.run("x:0") == i
        for session in sessions:
            session.close()
        """)


def test_a_graph_grows_while_steps_run(servers):
    servers.run("""
        with tf.device("/job:ps/task:0"):
            count = tf.get_variable("count", initializer=0)
            queue = tf.FIFOQueue(100, tf.int32, [])
            take = queue.dequeue()
        with tf.device("/job:worker/task:1"):
            more = count + 1
        session = tf.Session(target)
        session.run(count.initializer)
        got, failed, stop = [], [], threading.Event()

        def wait():
            got.append(int(session.run(take)))

        def spin():
            try:
                while not stop.is_set():
                    assert session.run(more) == 1
            except Exception as e:
                failed.append(e)
        threads = [threading.Thread(target=wait) for _ in range(4)]
        threads += [threading.Thread(target=spin) for _ in range(2)]
        for thread in threads:
            thread.start()
        for i in range(30):
            with tf.device("/job:ps/task:0" if i % 2 else
                           "/job:worker/task:0"):
                assert session.run(tf.constant(i) * 2) == 2 * i
        for i in range(4):
            session.run(queue.enqueue(i))
        stop.set()
        for thread in threads:
            thread.join()
        assert not failed, failed
        assert sorted(got) == [0, 1, 2, 3]
        """)


@pytest.mark.parametrize("what", ["list_devices()",
                                  "partial_run_setup([b], [a])"])
def test_a_graph_grows_while_sessions_are_opened(servers, what):
    servers.run("""
        def build(graph, x, done):
            with graph.as_default():
                for _ in range(300):
                    x = x + 1.
            done.set()

        def use(graph, a, b, done):
            while not done.is_set():
                for to in ("", target):
                    with tf.Session(to, graph=graph) as session:
                        session.%s

        for _ in range(10):
            with tf.Graph().as_default() as graph:
                a = tf.placeholder(tf.float32, [])
                b = a + 1.
            done = threading.Event()
            threads = [threading.Thread(target=use, args=(graph, a, b, done))
                       for _ in range(2)]
            threads.append(threading.Thread(target=build,
                                            args=(graph, b, done)))
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        """ % what)


def test_placements_are_told_where_they_are_decided(servers):
    servers.run("""
        config = tf.ConfigProto(log_device_placement=True)
        with tf.device("/job:ps/task:0"):
            a = tf.constant(1., name="told_a")
        with tf.device("/job:worker/task:1"):
            b = tf.negative(a, name="told_b")
        free = tf.constant(2., name="told_free")
        with tf.Session(target, config=config) as session:
            session.run([b, free])
        """)
    servers.master.expect(
        "told_a: (Const): /job:ps/replica:0/task:0/device:CPU:0")
    servers.master.expect(
        "told_b: (Neg): /job:worker/replica:0/task:1/device:CPU:0")
    # Unplaced ops go where TensorFlow 1.15 puts them.
    servers.master.expect(
        "told_free: (Const): /job:ps/replica:0/task:0/device:CPU:0")


def test_callables_take_connections_between_tensors(servers):
    servers.run("""
        from tensorflow.core.protobuf import config_pb2
        a = tf.placeholder(tf.float32, [], name="a")
        with tf.device("/job:ps/task:0"):
            b = tf.add(a, 1., name="b")
        c = tf.placeholder(tf.float32, [], name="c")
        with tf.device("/job:worker/task:1"):
            d = tf.multiply(c, 2., name="d")
        i = tf.constant(3, name="i")

        def make(session, connections, fetch=("d:0",), feed=("a:0",)):
            options = config_pb2.CallableOptions(feed=feed, fetch=fetch)
            for x, y in connections:
                options.tensor_connection.add(from_tensor=x, to_tensor=y)
            return session._make_callable_from_options(options)

        for session in (tf.Session(target), ):
            call = make(session, [("b:0", "c:0")])
            assert call(1.) == [4.] and call(2.) == [6.]
            assert make(session, [("a:0", "c:0")])(5.) == [10.]
            assert make(session, [("b:0", "c:0")],
                        ["d:0", "b:0", "d:0"])(1.) == [4., 2., 4.]
            for kind, text, arguments in [
                    (tf.errors.InvalidArgumentError,
                     "c:0 is both fed and fetched.",
                     ([("b:0", "c:0")], ["c:0"])),
                    (tf.errors.InvalidArgumentError,
                     'Endpoint "c:0" fed more than once.',
                     ([("b:0", "c:0")], ["d:0"], ["a:0", "c:0"])),
                    (tf.errors.InvalidArgumentError,
                     "Requested tensor connection from unknown node",
                     ([("x:0", "c:0")],)),
                    (tf.errors.NotFoundError,
                     "FeedInputs: unable to find feed output x:0",
                     ([("b:0", "x:0")],)),
                    (tf.errors.InvalidArgumentError, "of type int32",
                     ([("i:0", "c:0")],)),
                    (tf.errors.InvalidArgumentError, "would create a cycle",
                     ([("b:0", "a:0")], ["b:0"], []))]:
                try:
                    make(session, *arguments)
                    sys.exit("accepted, but " + text)
                except kind as e:
                    assert text in e.message, e.message
        """)


def test_a_callable_tells_about_its_steps(servers):
    servers.run("""
        from tensorflow.core.protobuf import config_pb2
        a = tf.placeholder(tf.float32, [], name="a")
        b = tf.placeholder(tf.float32, [], name="b")
        c = tf.multiply(b, 2., name="c")
        options = config_pb2.CallableOptions(feed=["a:0"], fetch=["c:0"])
        options.tensor_connection.add(from_tensor="a:0", to_tensor="b:0")
        options.run_options.trace_level = tf.RunOptions.FULL_TRACE
        options.run_options.output_partition_graphs = True
        call = tf.Session(target)._make_callable_from_options(options)
        metadata = tf.RunMetadata()
        assert call(3., run_metadata=metadata) == [6.]
        assert "c" in [node.node_name
                       for device in metadata.step_stats.dev_stats
                       for node in device.node_stats]
        assert metadata.partition_graphs
        """)


def test_a_callable_and_its_session_are_freed_in_any_order(servers,
                                                           monkeypatch):
    # What is freed is overwritten, so that nobody gets away with reading it.
    monkeypatch.setenv("MALLOC_PERTURB_", "165")
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0")
    servers.run("""
        import gc
        from tensorflow.core.protobuf import config_pb2
        a = tf.placeholder(tf.float32, [], name="a")
        b = tf.placeholder(tf.float32, [], name="b")
        c = tf.multiply(b, 2., name="c")
        options = config_pb2.CallableOptions(feed=["a:0"], fetch=["c:0"])
        options.tensor_connection.add(from_tensor="a:0", to_tensor="b:0")
        session = tf.Session(target)
        session.call = session._make_callable_from_options(options)
        assert session.call(3.) == [6.]
        del session
        assert gc.collect() > 0
        """)


def test_options_of_a_session_reach_its_master(servers):
    servers.run("""
        import numpy as np
        x = tf.placeholder(tf.float32, [2])
        with tf.device("/job:ps/task:0"):
            sent = x * 1.
        with tf.device("/job:worker/task:1"):
            same = sent * 1.

            def body(i, y):
                with tf.device("/job:ps/task:0"):
                    return i + 1, y + x
            _, looped = tf.while_loop(lambda i, y: i < 3, body,
                                      [0, tf.zeros([2])])
        value = np.array([1.01, -3.3], np.float32)
        cut = (value.view(np.uint32) & 0xffff0000).view(np.float32)
        config = tf.ConfigProto()
        config.graph_options.enable_bfloat16_sendrecv = True
        for config, expected in ((tf.ConfigProto(), value), (config, cut)):
            with tf.Session(target, config=config) as session:
                got = session.run(same, {x: value})
                assert (got == expected).all(), got
                got = session.run(looped, {x: [1., 2.]})
                assert list(got) == [3., 6.], got

        config = tf.ConfigProto()
        config.experimental.optimize_for_static_graph = True
        config.experimental.disable_output_partition_graphs = True
        with tf.Session(target, config=config) as session:
            session.run(same, {x: value})
            for kind, text, call in [
                    (tf.errors.InvalidArgumentError,
                     "disable_output_partition_graphs is true",
                     lambda: session.run(
                         same, {x: value}, tf.RunOptions(
                             output_partition_graphs=True), tf.RunMetadata())),
                    (tf.errors.FailedPreconditionError,
                     "Extending the graph is not supported when",
                     lambda: session.run(tf.constant(1)))]:
                try:
                    call()
                    sys.exit("accepted, but " + text)
                except kind as e:
                    assert text in e.message, e.message
        """)


@pytest.fixture
def link(servers):
    made = Tap(servers.worker)
    yield made
    made.close()


COUNTER = """
    with tf.device("/job:ps/task:0"):
        begun = tf.get_variable("begun", initializer=0)
        count = tf.get_variable("count", initializer=0)
        queue = tf.FIFOQueue(10, tf.int32, [], shared_name="gate")
        with tf.control_dependencies([tf.assign_add(begun, 1)]):
            passed = queue.dequeue()
        with tf.control_dependencies([passed]):
            add = tf.assign_add(count, 1)
    """

# Lets steps pass, and sees how far they are.
KEEPER = COUNTER + """
    let_one_pass = queue.enqueue(1)
    with tf.Session(target) as session:
        def wait_for(v, value):
            while session.run(tf.report_uninitialized_variables([v])).size or \\
                    session.run(v) < value:
                pass
        for line in sys.stdin:
            words = line.split()
            if words[0] == "open":
                session.run(let_one_pass)
            else:
                wait_for({"begun": begun, "count": count}[words[0]],
                         int(words[1]))
            print("did", line.strip())
    """


def test_a_step_whose_connection_breaks_counts_once(servers, link):
    """While it runs, and again when only its answer is lost."""
    client = servers.client(COUNTER + """
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        for i in range(2):
            print("added", session.run(add))
        print("count", session.run(count), session.run(begun))
    """, target=link.address)
    keeper = servers.client(KEEPER)

    def keep(line):
        keeper.say(line)
        keeper.expect("did " + line)
    keep("begun 1")
    link.cut()
    keep("open 1")
    client.expect("added 1")
    keep("begun 2")
    link.let_through(0)
    keep("open 2")
    keep("count 2")
    link.cut()
    client.expect("added 2")
    client.expect("count 2 2")
    assert client.wait() == 0


def test_the_start_of_a_server_is_told_in_order(processes, addresses):
    """And a session on it, which any client can open."""
    ps, worker = addresses(2)
    server = processes.server({"ps": [ps], "worker": [worker]}, "ps")
    lines = [line.split("] ", 1)[-1] for line in server.output.splitlines()]
    told = [line for line in lines if re.match("Initialize|Started", line)]
    assert told == [
        "Initialize GrpcChannelCache for job ps -> {0 -> %s}" % ps,
        "Initialize GrpcChannelCache for job worker -> {0 -> %s}" % worker,
        "Started server with target: grpc://" + ps]
    client = processes.python("""
        import tensorflow as tf
        server = tf.train.Server.create_local_server()
        print(tf.Session(server.target).run(tf.constant("Hello")))
        remote = server.target.replace("localhost", "Localhost")
        print(tf.Session(remote).run(tf.constant("remote")))
        """)
    assert client.wait() == 0
    assert "b'Hello'" in client.output
    line = client.lines("Start master session")[0]
    assert re.search("Start master session [0-9a-f]{16} with config:", line)


def test_two_servers_of_a_job_live_in_one_process(processes, addresses):
    """The first one's object is dropped; both serve on."""
    first, second = addresses(2)
    client = processes.python("""
        import gc
        import sys
        import tensorflow as tf
        for task in range(2):
            server = tf.train.Server({"local": sys.argv[1:]}, "local", task)
        gc.collect()
        with tf.device("/job:local/task:0"):
            a = tf.constant([1, 2])
        with tf.device("/job:local/task:1"):
            b = a * 10
        print("result", tf.Session(server.target).run(b))
        """, first, second)
    client.expect("result [10 20]")
    assert client.wait() == 0
