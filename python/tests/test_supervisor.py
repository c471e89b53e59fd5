"""The Supervisor: when it stops, what its sessions are, and how they recover."""

import threading

import pytest

import sluice as tf
from sluice.training import supervisor as supervisor_lib


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


class Model(object):
    """Counts down from 0 in w, and up in the global step."""

    def __init__(self):
        self.w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        self.step = tf.train.get_or_create_global_step()
        self.train = tf.train.GradientDescentOptimizer(1.0).minimize(
            self.w, global_step=self.step)


def lose(session, error, times=1):
    """Lets the next steps of a session fail."""
    raw = session.raw_session()
    run, left = raw.run, [times]

    def failing(*args, **kwargs):
        if left[0]:
            left[0] -= 1
            raise error
        return run(*args, **kwargs)
    raw.run = failing
    return raw


LOST = [tf.errors.AbortedError(None, None, "lost"),
        tf.errors.UnavailableError(None, None, "gone")]


@pytest.mark.parametrize("error", LOST)
def test_a_step_is_run_again_in_a_new_session(tmp_path, error):
    model = Model()
    sv = tf.train.Supervisor(logdir=str(tmp_path), save_summaries_secs=0,
                             save_model_secs=0, recover=True)
    with sv.managed_session() as session:
        assert not sv.should_stop()
        for _ in range(3):
            session.run(model.train)
        sv.saver.save(session, sv.save_path, global_step=model.step)
        for _ in range(2):
            session.run(model.train)
        lost = lose(session, error)
        session.run(model.train)
        assert session.raw_session() is not lost
        assert session.run([model.step, model.w]) == [4, -4.0]
        assert not sv.should_stop()
        assert model.w.eval(session=session) == -4.0
        sv.request_stop()
        assert sv.should_stop()


def test_what_a_later_session_trained_is_saved_at_the_end(tmp_path):
    model = Model()
    sv = tf.train.Supervisor(logdir=str(tmp_path), save_summaries_secs=0,
                             recover=True)
    with sv.managed_session() as session:
        session.run(model.train)
        lose(session, LOST[0])
        for _ in range(3):
            session.run(model.train)
    at = tf.train.load_variable(str(tmp_path), "global_step")
    assert tf.train.load_variable(str(tmp_path), "w") == -at
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("-%d" % at)
    assert at >= 3


@pytest.mark.parametrize("error", LOST)
def test_without_recovery_the_error_comes_up(tmp_path, error):
    model = Model()
    sv = tf.train.Supervisor(logdir=str(tmp_path), save_summaries_secs=0)
    with pytest.raises(type(error)):
        with sv.managed_session() as session:
            assert isinstance(session, tf.Session)
            session.run(model.train)
            raise error


def test_other_errors_come_up(tmp_path):
    Model()
    sv = tf.train.Supervisor(logdir=str(tmp_path), save_summaries_secs=0,
                             recover=True)
    with pytest.raises(tf.errors.InternalError):
        with sv.managed_session() as session:
            lose(session, tf.errors.InternalError(None, None, "mine"))
            session.run(tf.train.get_global_step())


def test_a_thread_that_lost_its_session_does_not_stop_training(tmp_path):
    model = Model()
    sv = tf.train.Supervisor(logdir=str(tmp_path), save_summaries_secs=0,
                             save_model_secs=0, recover=True)
    began, fail, again = [], threading.Event(), threading.Event()

    def work():
        began.append(1)
        if len(began) == 2:
            again.set()
        elif len(began) == 1:
            fail.wait()
            raise tf.errors.AbortedError(None, None, "lost")
    with sv.managed_session() as session:
        session.run(model.train)
        first = session.raw_session()
        sv.loop(3600, work)
        fail.set()
        sv.wait_for_stop()
        assert not sv.should_stop()  # It has made a new session instead.
        assert session.raw_session() is not first
        assert again.wait(60)
        assert session.run(model.step) == 0


def test_queue_runners_fill_their_queue_again(tmp_path):
    queue = tf.FIFOQueue(2, [tf.int32], shapes=[[]])
    out = queue.dequeue()
    mine = tf.FIFOQueue(2, [tf.int32], shapes=[[]])
    my_out = mine.dequeue()
    tf.train.add_queue_runner(tf.train.QueueRunner(
        queue, [queue.enqueue(7)]))
    my_runner = tf.train.QueueRunner(mine, [mine.enqueue(8)])
    sv = tf.train.Supervisor(logdir=str(tmp_path), save_summaries_secs=0,
                             save_model_secs=0, saver=None, recover=True)
    with sv.managed_session() as session:
        sv.start_queue_runners(session, [my_runner])
        assert session.run([out, my_out]) == [7, 8]
        lose(session, LOST[0])
        assert session.run([out, my_out]) == [7, 8]


def test_threads_of_the_program_do_not_make_sessions(tmp_path):
    model = Model()
    sv = tf.train.Supervisor(logdir=str(tmp_path), save_summaries_secs=0,
                             save_model_secs=0, recover=True)
    seen = []

    def other(session):
        try:
            session.run(model.step)
        except tf.errors.AbortedError as e:
            seen.append(e.message)
    with sv.managed_session() as session:
        before = lose(session, LOST[0])
        thread = threading.Thread(target=other, args=(session,))
        thread.start()
        thread.join()
        assert seen == ["lost"] and session.raw_session() is before


def test_it_is_a_default_session_and_a_context(tmp_path):
    model = Model()
    sv = tf.train.Supervisor(logdir=str(tmp_path), save_summaries_secs=0,
                             save_model_secs=0, recover=True)
    session = sv.prepare_or_wait_for_session()
    assert isinstance(session, supervisor_lib.RecoveringSession)
    with session:
        model.train.run()
        assert model.step.eval() == 1
        assert tf.get_default_session() is session
        add = session.make_callable(model.step)
        assert add() == 1
    assert tf.get_default_session() is None
    sv.stop()


def test_basic_train_loop_begins_anew_after_a_loss(tmp_path):
    model = Model()
    sv = tf.train.Supervisor(logdir=str(tmp_path), save_summaries_secs=0)
    calls = []

    def step(session, last):
        calls.append(session)
        if len(calls) == 3:
            raise LOST[0]
        if session.run([model.train, model.step])[1] >= last:
            sv.request_stop()
    tf.train.basic_train_loop(sv, step, args=[4])
    assert len(set(map(id, calls))) == 2


@pytest.mark.parametrize("call", ["stop", "Stop"])
def test_stopping_tells_all_threads(tmp_path, call):
    Model()
    sv = tf.train.Supervisor(logdir=str(tmp_path), save_summaries_secs=0)
    with sv.managed_session():
        waiting = threading.Thread(target=sv.wait_for_stop)
        waiting.start()
        getattr(sv, call)()
        waiting.join(60)
        assert not waiting.is_alive() and sv.should_stop()
