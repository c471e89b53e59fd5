"""A trainer under a Supervisor as programs of 2016 have it, on 1 ps and 2
workers: old names, an unnamed step that is trainable, a loss that is no scalar,
flags with one dash, a loop that never ends."""

import re
import signal

import numpy as np

from conftest import gone

TRAINER = """
    import tensorflow as tf
    import numpy as np
    from sklearn.utils import shuffle

    tf.app.flags.DEFINE_string("ps_hosts", "", "hostname:port pairs")
    tf.app.flags.DEFINE_string("worker_hosts", "", "hostname:port pairs")
    tf.app.flags.DEFINE_string("job_name", "", "'ps' or 'worker'")
    tf.app.flags.DEFINE_integer("task_index", 0, "Index within the job")
    FLAGS = tf.app.flags.FLAGS

    def main(_):
        cluster = tf.train.ClusterSpec({
            "ps": FLAGS.ps_hosts.split(","),
            "worker": FLAGS.worker_hosts.split(",")})
        server = tf.train.Server(cluster, job_name=FLAGS.job_name,
                                 task_index=FLAGS.task_index)
        if FLAGS.job_name == "ps":
            server.join()
        with tf.device(tf.train.replica_device_setter(
                worker_device="/job:worker/task:%d" % FLAGS.task_index,
                cluster=cluster)):
            rng = np.random.RandomState(FLAGS.task_index)
            xs = np.linspace(-1, 1, 101)
            ys = 2 * xs + rng.randn(101) * 0.4 + 0.2
            X = tf.placeholder("float", name="X")
            Y = tf.placeholder("float", name="Y")
            w = tf.Variable(-1.0, name="b0")
            b = tf.Variable(-2.0, name="b1")
            loss = tf.pow(Y - (tf.mul(X, w) + b), 2)
            step = tf.Variable(0)
            train = tf.train.AdagradOptimizer(0.8).minimize(
                loss, global_step=step)
            saver = tf.train.Saver()
            summaries = tf.merge_all_summaries()
            init = tf.initialize_all_variables()
        assert summaries is None
        sv = tf.train.Supervisor(
            is_chief=FLAGS.task_index == 0, logdir="logs", init_op=init,
            summary_op=summaries, saver=saver, global_step=step,
            save_model_secs=1)
        with sv.managed_session(server.target) as sess:
            print("begins at %d" % sess.run(step))
            while not sv.should_stop():
                xs, ys = shuffle(xs, ys, random_state=0)
                for x, y in zip(xs, ys):
                    _, at = sess.run([train, step], feed_dict={X: x, Y: y})
                print("Partial result from node: " + str(FLAGS.task_index) +
                      ", w: " + str(w.eval(session=sess)) +
                      ", b0: " + str(b.eval(session=sess)))
        sv.stop()

    if __name__ == "__main__":
        tf.app.run()
    """

# What the program needs of scikit-learn.
SHUFFLE = """
    import numpy as np

    def shuffle(*arrays, random_state):
        order = np.random.RandomState(random_state).permutation(len(arrays[0]))
        return [a[order] for a in arrays]
    """


def start(processes, addresses):
    ps, workers = addresses(1), addresses(2)
    hosts = ["-ps_hosts=" + ps[0], "-worker_hosts=" + ",".join(workers)]
    return [processes.sluice("run", "trainer.py", *hosts, "-job_name=" + job,
                             "-task_index=%d" % task)
            for job, task in (("ps", 0), ("worker", 0), ("worker", 1))]


# What follows a text in its line may be another thread's.
def results(worker):
    return [[float(x) for x in found] for found in re.findall(
        r"Partial result.*, w: (-?[\d.]+), b0: (-?[\d.]+)", worker.output)]


def beginning(worker):
    return int(re.search(r"begins at (\d+)", worker.output).group(1))


def test_a_trainer_of_2016_finds_the_line_and_goes_on(processes, addresses,
                                                      tmp_path):
    processes.program(TRAINER, "trainer.py")
    (tmp_path / "sklearn").mkdir()
    processes.program("", "sklearn/__init__.py")
    processes.program(SHUFFLE, "sklearn/utils.py")
    ps, chief, worker = start(processes, addresses)
    for task in (chief, worker):
        task.expect("Partial result", after=20)
    # The least squares of all points: both workers have the same xs.
    xs = np.linspace(-1, 1, 101)
    fits = [np.polyfit(xs, 2 * xs + np.random.RandomState(i).randn(101) * 0.4 +
                       0.2, 1) for i in range(2)]
    expected = np.mean(fits, axis=0)
    for task in (chief, worker):
        np.testing.assert_allclose(np.mean(results(task)[-5:], axis=0),
                                   expected, atol=0.1)
    logs = tmp_path / "logs"
    for task in (chief, worker, ps):
        task.signal(signal.SIGTERM if task is ps else signal.SIGINT)
        task.wait()
        assert gone(task.pid)
    names = {path.name for path in logs.iterdir()}
    assert "graph.pbtxt" in names
    assert any(n.startswith("events.out.tfevents.") for n in names)
    saved = max(int(re.search(r"-(\d+)\.index", n).group(1)) for n in names
                if n.endswith(".index"))
    graph = (logs / "graph.pbtxt").read_text()
    for slot in ("b0/Adagrad", "b1/Adagrad"):
        assert 'name: "%s"' % slot in graph
    events = b"".join(path.read_bytes() for path in logs.glob("events.*"))
    assert b"Variable/sec" in events
    assert saved > 2000  # Stopping, it has saved.
    # Started again it goes on from there.
    ps, chief, worker = start(processes, addresses)
    for task in (chief, worker):
        task.expect("Partial result", after=1)
        assert beginning(task) >= saved, task.output
        np.testing.assert_allclose(results(task)[0], expected, atol=0.3)
    assert chief.lines("Restoring parameters from logs/model.ckpt-"), \
        chief.output
