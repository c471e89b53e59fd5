"""Saving and restoring checkpoints: few large tensors, and many small ones.

TensorFlow leaves the files to the system's cache; Sluice returns when they
would survive a power cut. So there are two rows for a save: as it is, and until
all of it is on the disk. The disk's own rate stands beside them: the same bytes
written by one process and synced."""

import os
import sys
import time

from rows import emit, tf

import numpy as np

LARGE = [("large/%d" % i, [25 << 20]) for i in range(4)]  # 100 MiB each.
SMALL = [("small/%04d" % i, [1024]) for i in range(4000)]  # 4 KiB each.
REPEATS = 3


def sync(folder):
    for name in os.listdir(folder):
        fd = os.open(os.path.join(folder, name), os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
    fd = os.open(folder, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def best(call, before=lambda: None):
    """Milliseconds of the best of some calls."""
    taken = []
    for _ in range(REPEATS):
        before()
        start = time.perf_counter()
        call()
        taken.append((time.perf_counter() - start) * 1e3)
    return min(taken)


def disk(folder, what, size):
    """The same bytes, without an engine."""
    path = os.path.join(folder, "raw")
    block = np.ones(8 << 20, np.uint8).tobytes()

    def write():
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for at in range(0, size, len(block)):
            os.write(fd, block[:size - at])
        os.fsync(fd)
        os.close(fd)
    emit("%s: disk's own write, ms" % what, best(write))
    os.remove(path)


def measure(folder, what, shapes):
    with tf.Graph().as_default():
        with tf.device("/cpu:0"):
            for name, shape in shapes:
                tf.get_variable(name, shape, initializer=tf.ones_initializer())
        saver = tf.train.Saver(max_to_keep=2)
        steps = iter(range(1000))
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())

            def save():
                save.path = saver.save(
                    session, os.path.join(folder, "m"), next(steps),
                    write_meta_graph=False)

            def save_and_sync():
                save()
                sync(folder)

            save_and_sync()  # Plans are made once.
            emit("%s: save, ms" % what, best(save, lambda: sync(folder)))
            sync(folder)
            emit("%s: save until on disk, ms" % what,
                 best(save_and_sync, lambda: sync(folder)))
            emit("%s: restore, ms" % what,
                 best(lambda: saver.restore(session, save.path)))
    for name in os.listdir(folder):
        os.remove(os.path.join(folder, name))


folder = sys.argv[1]
for what, shapes in (("400 MB", LARGE), ("4,000 x 4 KB", SMALL)):
    size = sum(4 * shape[0] for _, shape in shapes)
    disk(folder, what, size)
    measure(folder, what, shapes)
