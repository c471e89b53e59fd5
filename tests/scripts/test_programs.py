"""TensorFlow 1 programs, unchanged, through `sluice run` and real processes."""

import os
import re
import subprocess
import sys
import textwrap

import pytest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = os.environ.get("SLUICE_BUILD", os.path.join(ROOT, "build"))
SLUICE = os.path.join(BUILD, "bin", "sluice")
sys.path.insert(0, os.path.join(ROOT, "tools"))

from free_ports import free_ports  # noqa: E402


def run(args, cwd, timeout=120):
    done = subprocess.run([SLUICE, "run"] + args, cwd=cwd, timeout=timeout,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    return done.returncode, done.stdout


def program(tmp_path, text, name="program.py"):
    path = tmp_path / name
    path.write_text(textwrap.dedent(text))
    return str(path)


def test_a_local_server_runs_a_session(tmp_path):
    code, out = run([program(tmp_path, """
        import tensorflow as tf
        c = tf.constant("Hello, distributed TensorFlow!")
        b = tf.get_variable("c", [2, 2], tf.float32,
                            initializer=tf.random_normal_initializer)
        server = tf.train.Server.create_local_server()
        sess = tf.Session(server.target)
        sess.run(tf.global_variables_initializer())
        with tf.device("/job:local/task:1"), tf.device("/cpu:1"):
            print(sess.run(c))
            print(sess.run(b).shape)
        sess.close()
        """)], tmp_path)
    assert code == 0, out
    assert "Started server with target: grpc://localhost:" in out
    assert "b'Hello, distributed TensorFlow!'" in out
    assert "(2, 2)" in out


def test_two_servers_in_one_process_share_a_step(tmp_path):
    ports = free_ports(2)
    code, out = run([program(tmp_path, """
        import tensorflow as tf
        cluster = tf.train.ClusterSpec(
            {"local": ["localhost:%d", "localhost:%d"]})
        server = tf.train.Server(cluster, job_name="local", task_index=0)
        server = tf.train.Server(cluster, job_name="local", task_index=1)
        with tf.device("/job:local/task:0"):
            parts = [tf.random_normal([25, 25]) for _ in range(2)]
        with tf.device("/job:local/task:1"):
            total = tf.add_n([tf.reduce_sum(p) for p in parts])
        with tf.Session(server.target) as sess:
            print("Summed Values:{}".format(sess.run(total)))
        """ % tuple(ports))], tmp_path)
    assert code == 0, out
    assert re.search(r"Summed Values:-?\d", out)


def test_a_missing_gpu_is_an_error_and_soft_placement_helps(tmp_path):
    script = program(tmp_path, """
        import tensorflow as tf
        with tf.device("/gpu:0"):
            b = tf.constant(2.0, name="far") * tf.placeholder_with_default(
                3.0, [])
        print(tf.Session().run(b))
        """)
    code, out = run([script], tmp_path)
    assert code == 1
    assert "InvalidArgumentError" in out
    assert "/device:GPU:0" in out
    assert "/job:localhost/replica:0/task:0/device:CPU:0" in out
    assert "--soft-placement" in out
    code, out = run(["--soft-placement", script], tmp_path)
    assert code == 0, out
    assert "6.0" in out


TRAINER = """
    import argparse
    import sys
    import tensorflow as tf
    FLAGS = None

    def main(_):
        cluster = tf.train.ClusterSpec({
            "ps": FLAGS.ps_hosts.split(","),
            "worker": FLAGS.worker_hosts.split(",")})
        server = tf.train.Server(cluster, job_name=FLAGS.job_name,
                                 task_index=FLAGS.task_index)
        if FLAGS.job_name == "ps":
            server.join()
            return
        with tf.device(tf.train.replica_device_setter(
                worker_device="/job:worker/task:%d" % FLAGS.task_index,
                cluster=cluster)):
            w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
            loss = tf.square(w - 3.0)
            step = tf.contrib.framework.get_or_create_global_step()
            train = tf.train.AdagradOptimizer(0.5).minimize(
                loss, global_step=step)
        with tf.train.MonitoredTrainingSession(
                master=server.target, is_chief=FLAGS.task_index == 0,
                checkpoint_dir="logs",
                hooks=[tf.train.StopAtStepHook(last_step=200)]) as session:
            value = None
            while not session.should_stop():
                _, value = session.run([train, w])
        print("done, w = %.2f" % value)

    if __name__ == "__main__":
        parser = argparse.ArgumentParser()
        parser.add_argument("--ps_hosts", type=str, default="")
        parser.add_argument("--worker_hosts", type=str, default="")
        parser.add_argument("--job_name", type=str, default="")
        parser.add_argument("--task_index", type=int, default=0)
        FLAGS, unparsed = parser.parse_known_args()
        tf.app.run(main=main, argv=[sys.argv[0]] + unparsed)
    """


def test_a_monitored_trainer_ends_by_itself_on_a_cluster(tmp_path):
    script = program(tmp_path, TRAINER)
    code, out = run(["--ps", "1", "--workers", "2", script], tmp_path)
    assert code == 0, out
    assert len(re.findall(r"\[worker/\d\] done, w = ", out)) == 2
    state = (tmp_path / "logs" / "checkpoint").read_text()
    last = int(re.search(r"model.ckpt-(\d+)", state).group(1))
    assert last >= 200
    assert (tmp_path / "logs" / ("model.ckpt-%d.index" % last)).exists()


def test_the_first_failing_task_decides_the_exit_status(tmp_path):
    script = program(tmp_path, """
        import json, os, sys, time
        task = json.loads(os.environ["TF_CONFIG"])["task"]
        if task["type"] == "worker" and task["index"] == 1:
            sys.exit(7)
        time.sleep(600)
        """)
    code, out = run(["--ps", "1", "--workers", "2", script], tmp_path)
    assert code == 7, out


@pytest.mark.parametrize("args, text", [
    (["missing.py"], "cannot read missing.py"),
    (["--workers", "-1", "x.py"], ""),
])
def test_wrong_arguments_are_told(tmp_path, args, text):
    (tmp_path / "x.py").write_text("")
    code, out = run(args, tmp_path)
    assert code != 0
    assert text in out
