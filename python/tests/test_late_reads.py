"""A variable's value is read where it is used, as late as in TensorFlow 1: its
read op hands on what the variable holds, also into conds and loops."""

import sluice as tf
import pytest


@pytest.fixture
def v():
    with tf.Graph().as_default():
        yield tf.get_variable("v", initializer=[1.], use_resource=False)


def run(v, fetch, feed=None):
    with tf.Session() as session:
        session.run(v.initializer)
        return session.run(fetch, feed).tolist()


def doubled_after_an_update(v):
    with tf.control_dependencies([tf.assign_add(v, [1.])]):
        return v * 2.


def test_of_an_update_before_it(v):
    assert run(v, doubled_after_an_update(v)) == [4.]


def test_of_an_update_in_the_same_branch(v):
    p = tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: doubled_after_an_update(v), lambda: v * 3.)
    assert run(v, y, {p: True}) == [4.]
    assert run(v, y, {p: False}) == [3.]


def test_of_an_update_in_a_branch_of_a_branch(v):
    p = tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.cond(p, lambda: doubled_after_an_update(v),
                                   lambda: v * 3.), lambda: v * 5.)
    assert run(v, y, {p: True}) == [4.]


def test_of_an_update_in_the_same_iteration(v):
    def body(i, x):
        with tf.control_dependencies([x]):
            update = tf.assign_add(v, [1.])
        with tf.control_dependencies([update]):
            return i + 1, tf.reduce_max(v * 2.)

    _, x = tf.while_loop(lambda i, x: i < 3, body,
                         [tf.constant(0), tf.constant(0.)],
                         parallel_iterations=1)
    assert run(v, x) == 8.


def test_of_a_flag_that_decides(v):
    flag = tf.get_variable("flag", initializer=True, use_resource=False)
    y = tf.cond(flag, lambda: v * 2., lambda: v * 3.)
    with tf.Session() as session:
        session.run([v.initializer, flag.initializer])
        assert session.run(y).tolist() == [2.]
        session.run(tf.assign(flag, False))
        assert session.run(y).tolist() == [3.]


def test_nothing_is_no_value_in_a_branch_either(v):
    p = tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: v * 2., lambda: v * 3.)
    with tf.Session() as session, pytest.raises(
            tf.errors.FailedPreconditionError, match="uninitialized value v"):
        session.run(y, {p: True})
