"""A checkpoint that cannot be written costs nothing but itself."""

import resource
import shutil
import subprocess

import pytest

from conftest import SLUICE

# Saves a small model, then one that does not fit, and looks what is left.
SAVER = """
    import os
    import sys
    import tensorflow as tf

    target = sys.argv[1] if len(sys.argv) > 1 else ""
    if target == "own":
        target = tf.train.Server.create_local_server().target
    size = tf.placeholder(tf.int32, [])
    v = tf.get_variable("v", initializer=tf.zeros([1]), validate_shape=False)
    set_v = tf.assign(v, tf.ones([size]), validate_shape=False)
    step = tf.train.get_or_create_global_step()
    saver = tf.train.Saver()
    os.makedirs("disk", exist_ok=True)
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        session.run(set_v, {size: 10})
        print("saved", saver.save(session, "disk/model", global_step=1))
        session.run(set_v, {size: 1000000})
        try:
            saver.save(session, "disk/model", global_step=2)
            print("saved too much")
        except tf.errors.OpError as e:
            print("failed:", type(e).__name__, e.message.replace("\\n", " | "))
        print("latest", tf.train.latest_checkpoint("disk"))
        print("left", sorted(os.listdir("disk")))
        saver.restore(session, tf.train.latest_checkpoint("disk"))
        print("restored", session.run(v).sum())
        session.run(set_v, {size: 20})
        print("again", saver.save(session, "disk/model", global_step=3))
    """


def check(program, error):
    assert program.wait() == 0, program.output
    line = program.lines("failed: ")[0]
    assert error in line
    assert "disk/model-2" in line
    assert program.lines("latest")[0] == "latest disk/model-1"
    assert "model-2" not in program.lines("left [")[0]
    assert program.lines("restored")[0] == "restored 10.0"
    assert program.lines("again")[0] == "again disk/model-3"


LIMIT = 200 * 1024


@pytest.mark.parametrize("target", ["local", "server"])
def test_a_file_that_may_not_grow_leaves_the_last_checkpoint(processes,
                                                             target):
    program = processes.python(
        SAVER, *(["own"] if target == "server" else []),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE,
                                              (LIMIT, LIMIT)))
    check(program, "File too large")


# Python ignores the signal that comes with it; this server is not Python's.
def test_a_file_that_may_not_grow_ends_no_server(processes, addresses):
    server, = addresses(1)
    processes.server({"local": [server]}, "local",
                     within=["prlimit", "--fsize=%d" % LIMIT])
    check(processes.python(SAVER, "grpc://" + server), "File too large")


def may_mount():
    return shutil.which("unshare") and subprocess.run(
        ["unshare", "-r", "-m", "mount", "-t", "tmpfs", "none", "/mnt"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


@pytest.mark.skipif(not may_mount(), reason="mounting is not allowed here")
def test_a_full_disk_leaves_the_last_checkpoint(processes):
    script = processes.program(SAVER)
    program = processes.start(
        ["unshare", "-r", "-m", "sh", "-c",
         "mkdir disk && mount -t tmpfs -o size=200k none disk && "
         'exec "$0" run "$1"', SLUICE, script])
    check(program, "No space left on device")
