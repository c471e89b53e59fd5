"""Sessions themselves: how they are opened, closed and reset."""

import warnings

import pytest

import sluice as tf
from sluice.framework import protos


@pytest.fixture(autouse=True)
def fresh_graph():
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


@pytest.mark.parametrize("target", ["", None])
def test_a_reset_of_no_target_closes_local_sessions(target):
    v = tf.Variable(1.0)
    sess = tf.Session()
    sess.run(v.initializer)
    tf.Session.reset(target)
    with pytest.raises(tf.errors.CancelledError,
                       match="Session has been closed."):
        sess.run(v)
    sess.close()
    with tf.Session() as other:
        other.run(v.initializer)


def test_a_reset_of_an_unknown_kind_of_target_is_an_error():
    with pytest.raises(tf.errors.NotFoundError,
                       match="No session factory registered"):
        tf.Session.reset("elsewhere://x")


def test_a_closed_session_lists_no_devices():
    sess = tf.Session()
    sess.close()
    with pytest.raises(tf.errors.CancelledError,
                       match="Session has been closed."):
        sess.list_devices()


@pytest.mark.parametrize("cpus", [0, -1])
def test_there_is_no_session_or_server_without_a_device(cpus):
    config = tf.ConfigProto(device_count={"CPU": cpus})
    for make in (tf.Session, tf.train.Server.create_local_server):
        with pytest.raises(tf.errors.NotFoundError,
                           match="No CPU devices are available"):
            make(config=config)


def test_a_callable_fetches_a_tensor_twice():
    x, y = tf.constant(1.0), tf.constant(2.0)
    options = protos.CallableOptions(fetch=[x.name, y.name, x.name])
    with tf.Session() as sess:
        assert sess._make_callable_from_options(options)() == [1.0, 2.0, 1.0]


def test_a_second_interactive_session_warns():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        first = tf.InteractiveSession()
        assert not told
        second = tf.InteractiveSession()
        assert "An interactive session is already active" in str(
            told[0].message)
        second.close()
        first.close()
        tf.InteractiveSession().close()
        assert len(told) == 1


def test_partition_graphs_are_given_to_who_asks():
    x = tf.constant(1.0)
    with tf.Session() as sess:
        for wanted in (False, True):
            metadata = tf.RunMetadata()
            sess.run(x, options=tf.RunOptions(output_partition_graphs=wanted),
                     run_metadata=metadata)
            assert len(metadata.partition_graphs) == (1 if wanted else 0)
