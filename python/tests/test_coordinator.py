"""Coordinator and the threads it stops."""

import threading

import pytest

import scenarios
import sluice as tf


def start(target, *args):
    thread = threading.Thread(target=target, args=args)
    thread.start()
    return thread


def test_threads_stop_when_one_asks():
    coord = tf.train.Coordinator()
    threads = [start(coord.wait_for_stop) for _ in range(3)]
    assert not coord.should_stop()
    coord.request_stop()
    coord.join(threads)
    assert coord.should_stop() and coord.joined


def test_join_raises_the_first_error():
    coord = tf.train.Coordinator()

    def fail():
        with coord.stop_on_exception():
            raise RuntimeError("first")
    thread = start(fail)
    coord.wait_for_stop()
    coord.request_stop(ValueError("second"))
    with pytest.raises(RuntimeError, match="first"):
        coord.join([thread])


def test_an_exception_object_works_outside_of_except():
    coord = tf.train.Coordinator()
    coord.request_stop(ValueError("x"))
    with pytest.raises(ValueError, match="x"):
        coord.join()


def test_the_end_of_input_is_no_error():
    coord = tf.train.Coordinator()
    coord.request_stop(tf.errors.OutOfRangeError(None, None, "done"))
    coord.join()


def test_stragglers_are_named():
    coord = tf.train.Coordinator()
    release = threading.Event()
    thread = threading.Thread(target=release.wait, name="slow")
    thread.start()
    coord.request_stop()
    with pytest.raises(RuntimeError, match="still running: slow"):
        coord.join([thread], stop_grace_period_secs=0.01)
    release.set()
    thread.join()


def test_after_join_an_error_is_raised_at_once():
    coord = tf.train.Coordinator()
    coord.join()
    with pytest.raises(ValueError):
        coord.request_stop(ValueError("late"))
    coord.clear_stop()
    coord.request_stop(ValueError("kept"))
    with pytest.raises(ValueError, match="kept"):
        coord.raise_requested_exception()


def test_a_looper_runs_until_told_to_stop():
    coord = tf.train.Coordinator()
    calls = []

    def call():
        calls.append(1)
        if len(calls) == 3:
            coord.request_stop()
    tf.train.LooperThread.loop(coord, None, call)
    coord.join()
    assert len(calls) == 3


# ---- The tables that C++ is held against too (tests/scenarios) ----

@pytest.mark.parametrize("name, threads, asked, stops, result",
                         scenarios.table("coordinator"))
def test_coordinator_scenario(name, threads, asked, stops, result):
    coord = tf.train.Coordinator()
    release = threading.Event()

    def body(kind):
        with coord.stop_on_exception():
            if kind == "waits":
                coord.wait_for_stop()
            elif kind == "stubborn":
                release.wait()
            elif kind != "ok":
                raise scenarios.error_of(kind)
    started = [threading.Thread(target=body, args=(kind,), name=kind)
               for kind in threads.split() if kind != "-"]
    for thread in started:
        thread.start()
    for act in asked.split(", "):
        if act == "stop":
            coord.request_stop()
        elif act == "clear":
            coord.clear_stop()
        elif act.startswith("error "):
            coord.request_stop(scenarios.error_of(act[6:]))
    got = "OK"
    try:
        coord.join(started, stop_grace_period_secs=0.01
                   if "stubborn" in threads else 60)
    except RuntimeError as e:
        got = str(e)
    except tf.errors.OpError as e:
        got = scenarios.code_of(e)
    release.set()
    for thread in started:
        thread.join()
    assert got.endswith(result)
    assert coord.should_stop() == (stops == "yes")


@pytest.mark.parametrize("name, sources, act, taken, state, result",
                         scenarios.table("queue_runner"))
def test_queue_runner_scenario(name, sources, act, taken, state, result):
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(2, tf.float32, [[]])

        def source(kind):
            one = tf.constant(1.0)
            if kind.isdigit():
                # As many, then the end: an epoch has no zero elements.
                if kind == "0":
                    counter = tf.Variable(0, collections=["local_variables"],
                                          trainable=False)
                    with tf.control_dependencies([counter.count_up_to(0)]):
                        return tf.identity(one)
                return tf.train.limit_epochs(one, int(kind))
            if kind == "forever":
                return one
            return tf.check_numerics(tf.log(-one), "of a scenario")
        runner = tf.train.QueueRunner(
            queue, [queue.enqueue(source(kind)) for kind in sources.split()])
        dequeue, closed = queue.dequeue(), queue.is_closed()
        with tf.Session() as sess:
            sess.run(tf.local_variables_initializer())
            coord = tf.train.Coordinator()
            threads = runner.create_threads(sess, coord, start=True)
            count = 0
            try:
                while act == "take":
                    sess.run(dequeue)
                    count += 1
            except tf.errors.OutOfRangeError:
                pass
            if act == "wait":
                assert coord.wait_for_stop(60)
            coord.request_stop()
            got = "OK"
            try:
                coord.join(threads)
            except tf.errors.OpError as e:
                got = scenarios.code_of(e)
            assert got == result
            assert sess.run(closed) == (state == "closed")
            if taken != "-":
                assert count == int(taken)


def test_a_runner_has_one_set_of_threads_in_a_session():
    with tf.Graph().as_default(), tf.Session() as sess:
        queue = tf.FIFOQueue(2, tf.float32, [[]])
        runner = tf.train.QueueRunner(queue, [queue.enqueue(1.0)])
        coord = tf.train.Coordinator()
        threads = runner.create_threads(sess, coord, start=True)
        assert sorted(t.name for t in threads) == [
            "QueueRunnerThread-fifo_queue-close_on_stop",
            "QueueRunnerThread-fifo_queue-fifo_queue_enqueue"]
        assert runner.create_threads(sess, coord, start=True) == []
        coord.request_stop()
        coord.join(threads)
        assert len(runner.create_threads(sess, coord, start=True)) == 2
