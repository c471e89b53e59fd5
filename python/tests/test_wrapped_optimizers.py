"""Optimizers of tf.contrib.opt around another one."""

import numpy as np
import pytest

import sluice as tf


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


def sgd(rate=1.0):
    return tf.train.GradientDescentOptimizer(rate)


def test_gradients_that_are_too_old_are_left_out():
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    step = tf.train.create_global_step()
    optimizer = tf.contrib.opt.DropStaleGradientOptimizer(sgd(), staleness=1)
    grads = optimizer.compute_gradients(1.0 * w)
    # Stands for other workers that train between the two halves of a step.
    others = tf.placeholder(tf.int64, [])
    with tf.control_dependencies([grads[0][0]]):
        with tf.control_dependencies([tf.assign_add(step, others)]):
            grads = [(tf.identity(g), v) for g, v in grads]
    train = optimizer.apply_gradients(grads, step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for age, w_now, stale in ((0, -1, 0), (1, -2, 0), (2, -2, 1),
                                  (7, -2, 2), (0, -3, 2)):
            assert session.run(train, {others: age}) == stale
            assert session.run(w) == w_now
    stale, = [v for v in tf.global_variables() if v.op.name == "stale_counter"]
    assert not stale.trainable


def test_staleness_needs_a_step():
    w = tf.get_variable("w", [])
    optimizer = tf.contrib.opt.DropStaleGradientOptimizer(sgd(), 1)
    with pytest.raises(ValueError, match="Global step is required"):
        optimizer.apply_gradients([(tf.constant(1.0), w)])


@pytest.mark.parametrize("sequential", [True, False])
def test_a_swapping_saver_writes_averages(tmp_path, sequential):
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    other = tf.get_variable("other", [], initializer=tf.ones_initializer(),
                            trainable=False)
    optimizer = tf.contrib.opt.MovingAverageOptimizer(
        sgd(), average_decay=0.5, sequential_update=sequential)
    with pytest.raises(RuntimeError, match="Must call apply_gradients"):
        optimizer.swapping_saver()
    train = optimizer.minimize(1.0 * w)
    assert train.name == "train_with_avg"
    saver = optimizer.swapping_saver()
    with pytest.raises(ValueError, match="is not part of variables to save"):
        optimizer.swapping_saver([w])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        path = saver.save(session, str(tmp_path / "model"))
        average = session.run("w/ExponentialMovingAverage:0")
        if sequential:
            assert average == -0.5
        assert tf.train.load_variable(path, "w") == average
        assert tf.train.load_variable(path, "w/ExponentialMovingAverage") == -1
        assert tf.train.load_variable(path, "other") == session.run(other)


def test_variables_are_clipped_after_an_update():
    dense = tf.get_variable("dense", initializer=[[3.0, 4.0], [0.3, 0.4]])
    table = tf.get_variable("table", initializer=[[6.0, 8.0], [6.0, 8.0]])
    optimizer = tf.contrib.opt.VariableClippingOptimizer(
        sgd(0.0), {dense: [1], table: [1]}, 1.0)
    train = optimizer.apply_gradients([
        (tf.zeros([2, 2]), dense),
        (tf.IndexedSlices(tf.zeros([1, 2]), tf.constant([1]),
                          tf.constant([2, 2])), table)])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_allclose(session.run(dense),
                                   [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)
        # Row 0 had no gradient.
        np.testing.assert_allclose(session.run(table),
                                   [[6.0, 8.0], [0.6, 0.8]], rtol=1e-6)
