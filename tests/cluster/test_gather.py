"""Checkpoints of tasks that share no disk: each parameter server may touch a
folder of its own only, so a shard that it wrote itself would be lost."""

import os

import pytest

# Trains a little on two ps, saves, loses all and restores.
TRAINER = """
    import os
    import sys
    import numpy as np
    import tensorflow as tf

    ps, worker, folder = sys.argv[1].split(","), sys.argv[2], sys.argv[3]
    server = tf.train.Server({"ps": ps, "worker": [worker]}, "worker", 0)
    kinds = [
        ("large", np.arange(3000000, dtype=np.float32)),
        ("flags", np.array([True, False, True])),
        ("texts", np.array([b"", b"a\\0b", b"x" * 300], object)),
        ("empty", np.zeros([0, 3], np.float32)),
        ("long", np.array(2**62, np.int64)),
    ]
    variables, values = [], []
    for i, (name, value) in enumerate(kinds):
        with tf.device("/job:ps/task:%d" % (i % 2)):
            variables.append(tf.Variable(value, name=name,
                                         use_resource=i % 3 == 0))
            values.append(value)
    with tf.device(tf.train.replica_device_setter(ps_tasks=2)):
        parts = tf.get_variable(
            "parts", shape=[10, 4], initializer=tf.ones_initializer(),
            partitioner=tf.fixed_size_partitioner(3))
        for i in range(600):
            variables.append(tf.get_variable(
                "small/%d" % i, initializer=float(i)))
            values.append(np.float32(i))
    saver = tf.train.Saver()
    assert os.environ.get("SLUICE_GATHER_CHECKPOINTS") or \\
        not saver.saver_def.sharded
    with tf.Session(server.target) as session:
        session.run(tf.global_variables_initializer())
        path = saver.save(session, os.path.join(folder, "m"), global_step=1)
        print("saved", path, sorted(os.listdir(folder)))
        for v in variables[:3] + variables[4:5]:
            session.run(tf.assign(v, tf.zeros_like(v)) if v.dtype.base_dtype
                        != tf.string else tf.assign(v, [b"", b"", b""]))
        session.run([tf.assign(p, tf.zeros_like(p)) for p in parts])
        saver.restore(session, path)
        for v, value in zip(variables, values):
            np.testing.assert_array_equal(session.run(v), value)
        np.testing.assert_array_equal(session.run(parts.as_tensor()),
                                      np.ones([10, 4]))
        print("restored")
        reader = tf.train.NewCheckpointReader(path)
        np.testing.assert_array_equal(reader.get_tensor("large"), values[0])
        tf.get_variable("more", initializer=1.)
        try:
            tf.train.Saver().restore(session, path)
        except tf.errors.NotFoundError as e:
            print("missing:", "Key more not found in checkpoint" in str(e))
        with open(path + ".data-00000-of-00002", "r+b") as f:
            f.seek(5000000)
            f.write(b"?")
        try:
            saver.restore(session, path)
        except tf.errors.DataLossError as e:
            print("damaged:", e.message.replace("\\n", " "))
        os.remove(path + ".data-00000-of-00002")
        try:
            saver.restore(session, path)
        except tf.errors.NotFoundError as e:
            print("gone")
    """


def cluster(processes, addresses, tmp_path):
    ps, (worker,) = addresses(2), addresses(1)
    for task in range(2):
        os.mkdir(tmp_path / ("disk%d" % task))
        processes.server({"ps": ps, "worker": [worker]}, "ps", task,
                         env=dict(os.environ, SLUICE_ALLOW_FILES=str(
                             tmp_path / ("disk%d" % task))))
    os.mkdir(tmp_path / "chief")
    return ",".join(ps), worker, tmp_path / "chief"


@pytest.mark.parametrize("how", ["1", "/job:worker/task:0"])
def test_shards_travel_to_the_task_of_the_directory_and_back(
        processes, addresses, tmp_path, how):
    trainer = processes.python(
        TRAINER, *cluster(processes, addresses, tmp_path),
        env=dict(os.environ, SLUICE_GATHER_CHECKPOINTS=how))
    assert trainer.wait() == 0, trainer.output
    assert "m-1.data-00001-of-00002" in trainer.lines("saved")[0]
    assert "_temp" not in trainer.lines("saved")[0]
    assert trainer.lines("restored")
    assert "Checksum does not match" in trainer.lines("damaged:")[0]
    assert trainer.lines("gone")
    assert trainer.lines("missing: True")
    for task in range(2):
        assert os.listdir(tmp_path / ("disk%d" % task)) == []


def test_without_gathering_it_is_an_error(processes, addresses, tmp_path):
    trainer = processes.python(
        TRAINER.replace("tf.train.Saver()", "tf.train.Saver(sharded=True)", 1)
        .replace("not saver.saver_def.sharded", "True"),
        *cluster(processes, addresses, tmp_path))
    assert trainer.wait() != 0
    assert "PermissionDeniedError" in trainer.output


def test_the_task_must_be_known(processes):
    program = processes.python("""
        import tensorflow as tf
        tf.get_variable("v", [])
        try:
            tf.train.Saver(gather_shards=True)
        except ValueError as e:
            print("error:", e)
        """)
    assert program.wait() == 0, program.output
    assert "gather_shards='/job:worker/task:0'" in program.lines("error:")[0]


def test_a_ps_that_dies_while_it_sends_ends_the_save(processes, addresses,
                                                     tmp_path):
    ps, worker, folder = cluster(processes, addresses, tmp_path)
    victim = processes._started[0]
    trainer = processes.python("""
        import os, sys
        import tensorflow as tf
        ps, worker, folder = sys.argv[1].split(","), sys.argv[2], sys.argv[3]
        server = tf.train.Server({"ps": ps, "worker": [worker]}, "worker", 0)
        for i in range(2):
            with tf.device("/job:ps/task:%d" % i):
                tf.Variable(tf.zeros([20000000]), name="v%d" % i)
        saver = tf.train.Saver(gather_shards=True)
        with tf.Session(server.target) as session:
            session.run(tf.global_variables_initializer())
            first = saver.save(session, os.path.join(folder, "m"),
                               global_step=0)
            print("first", flush=True)
            step = 0
            try:
                while True:
                    step += 1
                    saver.save(session, os.path.join(folder, "m"),
                               global_step=step)
            except (tf.errors.UnavailableError, tf.errors.AbortedError) as e:
                print("ended:", type(e).__name__)
            latest = tf.train.latest_checkpoint(folder)
            reader = tf.train.NewCheckpointReader(latest)
            print("latest is whole:", reader.get_tensor("v1").sum() == 0)
        os._exit(0)
        """, ps, worker, folder)
    trainer.expect("first")
    victim.kill()
    assert trainer.wait() == 0, trainer.output
    assert trainer.lines("ended:")
    assert trainer.lines("latest is whole: True")
