"""A chief that was started anew, and a model that is in the cluster already."""

import threading

import pytest

import sluice as tf


@pytest.fixture
def target():
    return tf.train.Server.create_local_server().target


def model():
    step = tf.train.get_or_create_global_step()
    return step, tf.assign_add(step, 1, use_locking=True)


def begins_at(target, **kwargs):
    """The step at which a new chief goes on."""
    with tf.Graph().as_default():
        step, _ = model()
        with tf.train.MonitoredTrainingSession(
                target, save_checkpoint_steps=1000, log_step_count_steps=0,
                save_summaries_steps=None, save_checkpoint_secs=None,
                **kwargs) as session:
            return session.run(step)


@pytest.fixture
def trained(target, tmp_path):
    """An earlier chief saved step 3 and came to 5."""
    with tf.Graph().as_default():
        _, count = model()
        saver = tf.train.Saver()
        session = tf.Session(target)
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(count)
        saver.save(session, str(tmp_path / "model.ckpt"), global_step=3)
        for _ in range(2):
            session.run(count)
        yield session, count


def test_it_goes_on_from_a_model_that_is_ahead_of_the_checkpoint(
        target, trained, tmp_path):
    assert begins_at(target, checkpoint_dir=str(tmp_path)) == 5


def test_it_restores_if_it_is_told_to(target, trained, tmp_path):
    assert begins_at(target, checkpoint_dir=str(tmp_path),
                     continue_live_training=False) == 3


def test_it_initializes_a_model_that_nobody_trains(target, trained):
    assert begins_at(target) == 0


def test_it_goes_on_from_a_model_that_others_train(target, trained):
    session, count = trained
    enough = threading.Event()

    def train():
        while not enough.is_set():
            session.run(count)
    other = threading.Thread(target=train)
    other.start()
    try:
        assert begins_at(target) > 5
    finally:
        enough.set()
        other.join()


def test_a_model_that_is_not_whole_is_restored(target, trained, tmp_path):
    with tf.Graph().as_default():
        step, _ = model()
        w = tf.Variable(1.0, name="w")
        saver = tf.train.Saver()
        with tf.Session(target) as session:
            session.run([step.initializer, w.initializer])
            saver.save(session, str(tmp_path / "other"), global_step=0)
        tf.Session.reset(target)
        with tf.Session(target) as session:
            session.run(step.assign(7))
        with tf.train.MonitoredTrainingSession(
                target, checkpoint_dir=str(tmp_path),
                save_checkpoint_steps=1000,
                save_checkpoint_secs=None) as session:
            assert session.run([step, w]) == [0, 1.0]
