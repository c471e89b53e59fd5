"""Coordinator and the threads it stops."""

import threading

import pytest

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
