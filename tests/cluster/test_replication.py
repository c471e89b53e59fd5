"""Steps that span real processes: in-graph replication, loops and conds."""

import pytest

pytestmark = pytest.mark.usefixtures("way")


@pytest.fixture
def cluster(processes, addresses):
    """2 ps and 2 workers; the address of the first worker."""
    ps, workers = addresses(2), addresses(2)
    spec = {"ps": ps, "worker": workers}
    for job in ("ps", "worker"):
        for task in range(2):
            processes.server(spec, job, task)
    return workers[0]


def test_in_graph_replication_trains_as_one_process_does(processes, cluster):
    """Two towers on two workers, variables on two ps, one client; the losses
    are those of the same sums in NumPy."""
    client = processes.python("""
        import sys
        import numpy as np
        import tensorflow as tf

        rng = np.random.RandomState(0)
        inputs = rng.rand(2, 16, 3).astype(np.float32)
        labels = inputs.dot([[1.], [-2.], [3.]]).astype(np.float32) + 0.5

        setter = tf.train.replica_device_setter(
            ps_tasks=2, worker_device="/job:worker/task:0")
        with tf.device(setter):
            w = tf.get_variable("w", [3, 1],
                                initializer=tf.zeros_initializer())
            b = tf.get_variable("b", [1], initializer=tf.zeros_initializer())
            step = tf.train.get_or_create_global_step()
        assert w.device == "/job:ps/task:0" and b.device == "/job:ps/task:1"
        optimizer = tf.train.GradientDescentOptimizer(0.5)
        x = tf.placeholder(tf.float32, [2, 16, 3])
        y = tf.placeholder(tf.float32, [2, 16, 1])
        losses, towers = [], []
        for i in range(2):
            with tf.device("/job:worker/task:%d" % i):
                error = tf.matmul(x[i], w) + b - y[i]
                losses.append(tf.reduce_mean(tf.square(error)))
                towers.append(optimizer.compute_gradients(losses[i], [w, b]))
        averaged = []
        for pairs in zip(*towers):
            v = pairs[0][1]
            with tf.device(v.device):
                averaged.append((tf.add_n([g for g, _ in pairs]) / 2., v))
        train = optimizer.apply_gradients(averaged, step)
        loss = tf.add_n(losses) / 2.

        nw, nb = np.zeros([3, 1]), np.zeros([1])
        with tf.Session("grpc://" + sys.argv[1]) as session:
            session.run(tf.global_variables_initializer())
            for i in range(50):
                got, _ = session.run([loss, train], {x: inputs, y: labels})
                errors = inputs.dot(nw) + nb - labels
                np.testing.assert_allclose(got, (errors ** 2).mean(),
                                           rtol=1e-3, atol=1e-6)
                nw -= 0.5 * 2 * np.einsum("tni,tno->io", inputs,
                                          errors) / 32
                nb -= 0.5 * 2 * errors.mean()
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE,
                                    output_partition_graphs=True)
            metadata = tf.RunMetadata()
            session.run(train, {x: inputs, y: labels}, options, metadata)
            devices = {d.device for d in metadata.step_stats.dev_stats
                       if d.node_stats}
            tasks = ["/job:%s/replica:0/task:%d" % (job, task)
                     for job in ("ps", "worker") for task in range(2)]
            assert devices == {t + "/device:CPU:0" for t in tasks}, devices
            graphs = [{n.device for n in g.node}
                      for g in metadata.partition_graphs]
            assert sorted(map(sorted, graphs)) == [
                [t + "/device:CPU:0"] for t in tasks], graphs
            print("steps", session.run(step))
        """, cluster)
    client.expect("steps 51")
    assert client.wait() == 0


def test_loops_and_conds_span_tasks(processes, cluster):
    """A body on two tasks, 10 000 times, nested once; a branch elsewhere."""
    client = processes.python("""
        import sys
        import tensorflow as tf

        def turn(i, x):
            with tf.device("/job:ps/task:0"):
                return i + 1, x + 1.
        with tf.device("/job:worker/task:0"):
            n = tf.placeholder(tf.int32, [])
            _, flat = tf.while_loop(lambda i, x: i < n, turn, [0, 0.])

            def outer(i, x):
                return i + 1, tf.while_loop(lambda j, y: j < 10, turn,
                                            [0, x])[1]
            _, nested = tf.while_loop(lambda i, x: i < n, outer, [0, 0.])
            p = tf.placeholder(tf.bool, [])

            def elsewhere():
                with tf.device("/job:ps/task:1"):
                    return flat * 2.
            branch = tf.cond(p, elsewhere, lambda: flat - 1.)
        with tf.Session("grpc://" + sys.argv[1]) as session:
            print("flat", session.run(flat, {n: 10000}))
            print("nested", session.run(nested, {n: 50}))
            print("none", session.run(nested, {n: 0}))
            print("taken", session.run(branch, {n: 3, p: True}))
            print("not taken", session.run(branch, {n: 3, p: False}))
        """, cluster)
    for line in ("flat 10000.0", "nested 500.0", "none 0.0", "taken 6.0",
                 "not taken 2.0"):
        client.expect(line)
    assert client.wait() == 0


def test_a_read_on_another_task_comes_after_what_it_waits_for(
        processes, cluster):
    """And a step that keeps an array for a while drops nothing else."""
    client = processes.python("""
        import sys
        import tensorflow as tf

        with tf.device("/job:ps/task:0"):
            w = tf.get_variable("w", [], initializer=tf.ones_initializer())
        with tf.device("/job:worker/task:0"):
            gradient = tf.placeholder(tf.float32, []) * 2.
        with tf.device("/job:ps/task:0"):
            update = w.assign_add(gradient)
            kept = tf.TensorArray(tf.float32, 1).write(0, w).read(0)
        with tf.device("/job:worker/task:0"):
            with tf.control_dependencies([update]):
                read = w.read_value()
        with tf.Session("grpc://" + sys.argv[1]) as session:
            session.run(w.initializer)
            values = [session.run([update, read], {"Placeholder:0": 1.})
                      for _ in range(3)]
            print("values", values == [[3., 3.], [5., 5.], [7., 7.]], values)
            print("kept", session.run(kept), session.run(w))
        """, cluster)
    client.expect("values True")
    client.expect("kept 7.0 7.0")
    assert client.wait() == 0


def test_a_loop_without_end_keeps_no_server_from_others(processes, cluster):
    """It was short the first time, so the ps takes it for cheap."""
    client = processes.python("""
        import sys
        import tensorflow as tf

        limit = tf.placeholder(tf.float32, [])
        with tf.device("/job:ps/task:0"):
            end = tf.while_loop(lambda i: i < limit, lambda i: i + 1., [0.])
            other = tf.constant(2.) * limit
        with tf.Session("grpc://" + sys.argv[1]) as session:
            print("short", session.run(end, {limit: 3.}))
            try:
                session.run(end, {limit: 1e30},
                            options=tf.RunOptions(timeout_in_ms=500))
            except tf.errors.DeadlineExceededError:
                print("ended")
            print("other", session.run(other, {limit: 4.}))
            print("again", session.run(end, {limit: 5.}))
        """, cluster)
    for line in ("short 3.0", "ended", "other 8.0", "again 5.0"):
        client.expect(line)
    assert client.wait() == 0, client.output
