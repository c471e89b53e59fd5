"""Queues and accumulators that live on a ps, used by two clients."""

import pytest


@pytest.fixture
def run(processes, addresses):
    """Runs a program on a ps and a worker; `target` is the worker's."""
    ps, worker = addresses(2)
    spec = {"ps": [ps], "worker": [worker]}
    for job in ("ps", "worker"):
        processes.server(spec, job)

    def run(text):
        path = processes.program(text, head=HEAD)
        client = processes.sluice("run", path, "grpc://" + worker)
        assert client.wait() == 0, client.output
    return run


HEAD = '''
import sys
import threading
import numpy as np
import tensorflow as tf
target = sys.argv[1]


def raises(kind, text, call):
    try:
        call()
    except kind as e:
        assert text in e.message, e.message
    else:
        raise AssertionError("no " + kind.__name__)


class Running(object):
    """A step on a thread of its own, waiting in a queue when this returns."""

    def __init__(self, session, fetch, is_waiting):
        self.error = self.result = None

        def run():
            try:
                self.result = session.run(fetch)
            except tf.errors.OpError as e:
                self.error = e
        self._thread = threading.Thread(target=run)
        self._thread.start()
        while not is_waiting():
            pass

    def end(self):
        self._thread.join()
        if self.error is not None:
            raise self.error
        return self.result


def new_queue(capacity, name):
    """A queue on the ps by name, for any graph."""
    with tf.device("/job:ps/task:0"):
        return tf.FIFOQueue(capacity, tf.float32, [[]], shared_name=name)


def begins(fetch):
    """The fetch after a note that it has begun, and how to see the note."""
    with tf.device("/job:ps/task:0"):
        note = tf.FIFOQueue(100, tf.bool, [[]])
        with tf.control_dependencies([note.enqueue(True)]):
            after = fetch()
        return after, note.size()
'''


def test_a_closed_queue_gives_what_is_left(run):
    run("""
        q = new_queue(10, "closed")
        with tf.Session(target) as session, tf.Session(target) as other:
            session.run(q.enqueue_many([[1., 2., 3.]]))
            assert other.run(q.size()) == 3
            other.run(q.close())
            assert session.run(q.is_closed())
            raises(tf.errors.CancelledError, "FIFOQueue 'closed' is closed.",
                   lambda: session.run(q.enqueue(4.)))
            raises(tf.errors.OutOfRangeError,
                   "is closed and has insufficient elements (requested 5, "
                   "current size 3)",
                   lambda: session.run(q.dequeue_many(5)))
            assert session.run(q.dequeue()) == 1.
            assert list(session.run(q.dequeue_up_to(5))) == [2., 3.]
            raises(tf.errors.OutOfRangeError,
                   "(requested 1, current size 0)",
                   lambda: session.run(q.dequeue()))
            raises(tf.errors.CancelledError,
                   "Queue 'closed' is already closed.",
                   lambda: session.run(q.close()))
        """)


def test_close_ends_the_waits_of_other_clients(run):
    run("""
        empty, full = new_queue(1, "empty"), new_queue(1, "full")
        take, taking = begins(empty.dequeue)
        put, putting = begins(lambda: tf.group(full.enqueue(2.)))
        late, later = begins(lambda: tf.group(full.enqueue(3.)))
        with tf.Session(target) as session, tf.Session(target) as other:
            waits = Running(session, take, lambda: session.run(taking))
            other.run(empty.close())
            raises(tf.errors.OutOfRangeError, "insufficient elements",
                   waits.end)
            # A close lets enqueues that came before it complete.
            session.run(full.enqueue(1.))
            waits = Running(session, put, lambda: session.run(putting))
            closing = Running(other, full.close(),
                              lambda: session.run(full.size()) == 1)
            assert session.run(full.dequeue()) == 1.
            waits.end()
            closing.end()
            assert session.run(full.dequeue()) == 2.
        """)


def test_close_may_cancel_the_waits_of_other_clients(run):
    run("""
        full = new_queue(1, "cancelled")
        put, putting = begins(lambda: tf.group(full.enqueue(2.)))
        with tf.Session(target) as session, tf.Session(target) as other:
            session.run(full.enqueue(1.))
            waits = Running(session, put, lambda: session.run(putting))
            other.run(full.close(cancel_pending_enqueues=True))
            raises(tf.errors.CancelledError, "Enqueue operation was cancelled",
                   waits.end)
            assert session.run(full.dequeue()) == 1.
        """)


def test_a_timeout_leaves_the_session_usable(run):
    """And the dequeue that timed out takes no element any more."""
    run("""
        q = new_queue(10, "timeout")
        take = q.dequeue()
        with tf.Session(target) as session:
            for i in range(5):
                # It is the ps that it waits for; the master is well.
                raises(tf.errors.DeadlineExceededError,
                       "Operation timed out. The step still ran on "
                       "/job:ps/replica:0/task:0",
                       lambda: session.run(
                           take, options=tf.RunOptions(timeout_in_ms=100)))
            session.run(q.enqueue_many([[1., 2., 3.]]))
            assert [session.run(take) for _ in range(3)] == [1., 2., 3.]
        """)


def test_accumulators_drop_what_is_stale_and_average_the_rest(run):
    run("""
        with tf.device("/job:ps/task:0"):
            dense = tf.ConditionalAccumulator(tf.float32, [2],
                                              shared_name="dense")
            sparse = tf.SparseConditionalAccumulator(
                tf.float32, [4, 1], shared_name="sparse")
        value = tf.placeholder(tf.float32, [2])
        step = tf.placeholder(tf.int64, [])
        apply = dense.apply_grad(value, step)
        mean = dense.take_grad(2)
        with tf.Session(target) as session, tf.Session(target) as other:
            session.run(apply, {value: [1., 2.], step: 0})
            other.run(apply, {value: [3., 6.], step: 0})
            assert list(session.run(mean)) == [2., 4.]
            # The accumulator is at step 1 now.
            session.run(apply, {value: [100., 100.], step: 0})
            assert session.run(dense.num_accumulated()) == 0
            session.run(apply, {value: [5., 5.], step: 1})
            other.run(apply, {value: [7., 9.], step: 2})
            assert list(other.run(mean)) == [6., 7.]
            raises(tf.errors.InvalidArgumentError,
                   "Argument num_required must be positive, but was 0",
                   lambda: session.run(dense.take_grad(0)))

            # Each row is divided by how many gradients had it.
            def slices(indices, values):
                return tf.IndexedSlices(tf.constant(values, shape=[len(values),
                                                                   1]),
                                        tf.constant(indices, tf.int64))
            session.run(sparse.apply_indexed_slices_grad(
                slices([0, 2], [2., 8.])))
            other.run(sparse.apply_indexed_slices_grad(slices([2], [4.])))
            got = session.run(sparse.take_indexed_slices_grad(2))
            assert list(got.indices) == [0, 2], got
            assert list(got.values.flatten()) == [2., 6.], got
        """)


def test_tables_and_barriers_are_shared_by_name(run):
    run("""
        from tensorflow.python.ops import data_flow_ops

        def on_ps(build):
            with tf.device("/job:ps/task:0"):
                return build()
        raw = tf.raw_ops
        table = on_ps(lambda: raw.MutableHashTableV2(
            key_dtype=tf.string, value_dtype=tf.int64, shared_name="words"))
        again = on_ps(lambda: raw.MutableHashTableV2(
            key_dtype=tf.string, value_dtype=tf.int64, shared_name="words"))
        other_types = on_ps(lambda: raw.MutableHashTableV2(
            key_dtype=tf.int64, value_dtype=tf.int64, shared_name="words"))
        barrier = on_ps(lambda: data_flow_ops.Barrier(
            (tf.float32, tf.int32), ((), ()), shared_name="barrier"))
        same = on_ps(lambda: data_flow_ops.Barrier(
            (tf.float32, tf.int32), ((), ()), shared_name="barrier"))
        insert = raw.LookupTableInsertV2(
            table_handle=table, keys=["a"], values=tf.constant([7], tf.int64))
        find = raw.LookupTableFindV2(
            table_handle=again, keys=["a", "b"],
            default_value=tf.constant(-1, tf.int64))
        with tf.Session(target) as session, tf.Session(target) as other:
            session.run(insert)
            assert list(other.run(find)) == [7, -1]
            raises(tf.errors.InvalidArgumentError,
                   "Conflicting key/value dtypes int64->int64 with "
                   "string-int64 for table words",
                   lambda: other.run(other_types.op))
            session.run(barrier.insert_many(0, ["x", "y"], [1.0, 2.0]))
            other.run(same.insert_many(1, ["x"], [10]))
            assert session.run(barrier.incomplete_size()) == 1
            keys = other.run(same.take_many(1)[1])
            assert list(keys) == [b"x"], keys
            # A take that waits ends when another client closes.
            with tf.device("/job:ps/task:0"):
                take, taking = begins(lambda: same.take_many(2)[1])
            waits = Running(other, take, lambda: other.run(taking))
            session.run(barrier.close(cancel_pending_enqueues=True))
            raises(tf.errors.OutOfRangeError, "insufficient elements",
                   waits.end)
        """)


def test_session_reset_drops_what_is_shared(run):
    run("""
        raw = tf.raw_ops
        with tf.device("/job:ps/task:0"):
            queue = tf.FIFOQueue(5, tf.float32, [[]], shared_name="kept")
            table = raw.MutableHashTableV2(
                key_dtype=tf.string, value_dtype=tf.int64,
                shared_name="kept_too")
        insert = raw.LookupTableInsertV2(
            table_handle=table, keys=["a"], values=tf.constant([7], tf.int64))
        sizes = [queue.size(), raw.LookupTableSizeV2(table_handle=table)]
        with tf.Session(target) as session:
            session.run([insert, queue.enqueue(1.0)])
            assert session.run(sizes) == [1, 1]
        # They outlive the session,
        with tf.Session(target) as session:
            assert session.run(sizes) == [1, 1]
        # but not a reset.
        tf.Session.reset(target)
        with tf.Session(target) as session:
            assert session.run(sizes) == [0, 0]
        """)
