"""Starting and stopping leaves nothing behind."""

import os

# After so many everything is warm; the next ones are compared with that.
CYCLES = 100
# A pool may grow by the threads that happened to wait at once.
MOST_MORE = 2
# What allocators and logs may keep: 80 KB a cycle. A leaked session has a
# variable of 200 KB, a leaked server has more than 1 MB.
MOST_GROWTH_KB = 8 * 1024

USE = """
    import os

    # Its pools grow to a bound of its own when the machine is busy.
    GRPCS = ("default-executo", "event_engine", "grpc_global_tim")

    def name(thread):
        try:
            with open("/proc/self/task/%s/comm" % thread) as comm:
                return comm.read().strip()
        except OSError:
            return GRPCS[0]  # It has ended.

    def threads():
        return sum(name(thread) not in GRPCS
                   for thread in os.listdir("/proc/self/task"))

    def descriptors():
        return len(os.listdir("/proc/self/fd"))

    def memory():
        with open("/proc/self/status") as status:
            return int(next(line for line in status
                            if line.startswith("VmRSS")).split()[1])

    def use():
        return threads(), descriptors(), memory()
    """


def compare(before, after):
    assert after[0] <= before[0] + MOST_MORE, "threads"
    assert after[1] <= before[1] + MOST_MORE, "descriptors"
    assert after[2] - before[2] <= MOST_GROWTH_KB, "memory"


def numbers(line):
    return [int(n) for n in line.split()[1:]]


def test_servers_that_were_stopped_leave_nothing(processes, addresses, way):
    client = processes.python(USE + """
    import gc
    import sys
    import tensorflow as tf
    spec = {"a": sys.argv[2:3], "b": sys.argv[3:4]}

    def cycle():
        server = tf.train.Server(spec, "a", 0)
        peer = tf.train.Server(spec, "b", 0)
        # By direct calls, and through the network. The variable goes from one
        # server to the other, by a connection of their own.
        config = tf.ConfigProto()
        for config.rpc_options.use_rpc_for_inprocess_master in (False, True):
            with tf.Graph().as_default(), \
                    tf.Session(server.target, config=config) as session:
                with tf.device("/job:b/task:0"):
                    v = tf.Variable(tf.zeros([1000]))
                with tf.device("/job:a/task:0"):
                    total = tf.reduce_sum(v + 1)
                session.run(v.initializer)
                assert session.run(total) == 1000
        peer.stop()
        server.stop()

    for when in ("before", "after"):
        for i in range(int(sys.argv[1])):
            cycle()
        gc.collect()
        print(when, *use())
    """, CYCLES, *addresses(2))
    before = numbers(client.expect("before ", 300))
    after = numbers(client.expect("after ", 600))
    assert client.wait() == 0
    compare(before, after)


def of(process):
    """Threads, descriptors and memory (KB) of a process."""
    folder = "/proc/%d/" % process.pid
    with open(folder + "status") as status:
        memory = next(int(line.split()[1]) for line in status
                      if line.startswith("VmRSS"))
    return (len(os.listdir(folder + "task")), len(os.listdir(folder + "fd")),
            memory)


def test_sessions_that_were_closed_leave_nothing(processes, addresses):
    ps, worker = addresses(2)
    spec = {"ps": [ps], "worker": [worker]}
    servers = [processes.server(spec, job) for job in ("ps", "worker")]
    client = processes.python(USE + """
    import sys
    import tensorflow as tf

    def cycle(i):
        config = tf.ConfigProto(isolate_session_state=True)
        with tf.Graph().as_default(), \\
                tf.Session("grpc://" + sys.argv[1], config=config) as session:
            with tf.device("/job:ps/task:0"):
                v = tf.Variable(tf.zeros([50000]))
            with tf.device("/job:worker/task:0"):
                total = tf.reduce_sum(v)
            session.run(v.initializer)
            session.run(total)

    for when in ("before", "after"):
        for i in range(int(sys.argv[2])):
            cycle(i)
        print(when, *use())
        sys.stdin.readline()
    """, worker, CYCLES)
    before = numbers(client.expect("before ", 300))
    servers_before = [of(server) for server in servers]
    client.say("go on")
    after = numbers(client.expect("after ", 600))
    servers_after = [of(server) for server in servers]
    client.say("go on")
    assert client.wait() == 0
    for a, b in zip([before] + servers_before, [after] + servers_after):
        compare(a, b)
