"""Functions of a program whose graph runs on a cluster."""

PROGRAM = '''
import sys
import tensorflow as tf

spec = tf.train.ClusterSpec({"ps": [sys.argv[1]], "worker": [sys.argv[2]]})
server = tf.train.Server(spec, job_name="worker", task_index=0)


def double(x):
    return 2 * x


with tf.device("/job:ps/task:0"):
    v = tf.Variable([1., 2.])
    there = tf.py_func(double, [v], tf.float32)
with tf.device("/job:worker/task:0"):
    here = tf.py_func(double, [v], tf.float32)
with tf.Session(server.target) as session:
    session.run(v.initializer)
    assert session.run(here).tolist() == [2, 4]
    try:
        session.run(there)
    except tf.errors.InvalidArgumentError as e:
        print(e.message)
'''


def test_a_function_runs_in_its_own_process_only(processes, addresses):
    ps, worker = addresses(2)
    server = processes.server({"ps": [ps], "worker": [worker]}, "ps")
    client = processes.sluice("run", processes.program(PROGRAM), ps, worker)
    assert client.wait() == 0, client.output
    assert "callback pyfunc_0 is not found" in client.output
    assert "/job:ps/replica:0/task:0" in client.output
    assert "another process (This process runs no Python" in client.output
    assert not server.exited()


def test_a_python_server_does_not_mistake_a_function_for_its_own(
        processes, addresses):
    ps, worker = addresses(2)
    server = processes.sluice("run", processes.program('''
        import sys
        import tensorflow as tf
        tf.py_func(lambda x: x - 1, [1.], tf.float32)  # pyfunc_0 here, too.
        spec = tf.train.ClusterSpec({"ps": [sys.argv[1]],
                                     "worker": [sys.argv[2]]})
        server = tf.train.Server(spec, job_name="ps", task_index=0)
        print("serves", flush=True)
        server.join()
    ''', "server.py"), ps, worker)
    server.expect("serves")
    client = processes.sluice("run", processes.program(PROGRAM), ps, worker)
    assert client.wait() == 0, client.output
    assert "callback pyfunc_0 is not found" in client.output
    assert "another process (it has no function of that token" in client.output
