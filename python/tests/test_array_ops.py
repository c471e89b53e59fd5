"""Functions on arrays whose arguments decide which operations they make."""

import numpy as np
import pytest

import sluice as tf


def value(tensor, feed=None):
    with tf.Session() as session:
        return session.run(tensor, feed)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


PARAMS = np.arange(24).reshape(2, 4, 3)


@pytest.mark.parametrize("axis", [None, 1, -2])
def test_gather_takes_each_entry_of_a_batch_from_its_own_rows(axis):
    rows = [[1, 0], [2, 2]]
    got = tf.gather(PARAMS, rows, axis=axis, batch_dims=1)
    assert got.shape == (2, 2, 3)
    np.testing.assert_array_equal(
        value(got), [PARAMS[b][rows[b]] for b in range(2)])


def test_gather_may_take_another_axis_of_a_batch():
    columns = [[2], [0]]
    got = tf.gather(PARAMS, columns, axis=2, batch_dims=1)
    np.testing.assert_array_equal(
        value(got), [PARAMS[b][:, columns[b]] for b in range(2)])


def test_gather_of_a_variable_has_batches_too():
    v = tf.get_variable("v", initializer=PARAMS, use_resource=True)
    with tf.Session() as session:
        session.run(v.initializer)
        np.testing.assert_array_equal(
            session.run(tf.gather(v, [[1], [2]], batch_dims=1)),
            [PARAMS[0][[1]], PARAMS[1][[2]]])


@pytest.mark.parametrize("fed", [False, True])
@pytest.mark.parametrize("dims, indices, expected", [
    (1, [[1], [2]], [PARAMS[0, 1], PARAMS[1, 2]]),
    (1, [[1, 0], [2, 2]], [PARAMS[0, 1, 0], PARAMS[1, 2, 2]]),
    (1, [[[3], [1]], [[0], [2]]], [PARAMS[0, [3, 1]], PARAMS[1, [0, 2]]]),
    (2, np.ones([2, 4, 1], np.int64), PARAMS[:, :, 1]),
    (2, [[[[2], [0]]] * 4] * 2, PARAMS[:, :, [2, 0]])])
def test_gather_nd_has_batches_of_any_depth(fed, dims, indices, expected):
    indices = np.array(indices)
    if not fed:
        got = tf.gather_nd(PARAMS, indices, batch_dims=dims)
        assert got.shape == np.shape(expected)
        np.testing.assert_array_equal(value(got), expected)
        return
    params = tf.placeholder(tf.int64, [None] * 3)
    at = tf.placeholder(tf.int64, [None] * indices.ndim)
    np.testing.assert_array_equal(
        value(tf.gather_nd(params, at, batch_dims=dims),
              {params: PARAMS, at: indices}), expected)


def test_gather_nd_with_a_batch_has_a_gradient():
    params = tf.constant(PARAMS, tf.float32)
    got = tf.gather_nd(params, [[1], [2]], batch_dims=1)
    expected = np.zeros([2, 4, 3])
    expected[0, 1] = expected[1, 2] = 1
    np.testing.assert_array_equal(value(tf.gradients(got, params)[0]),
                                  expected)


@pytest.mark.parametrize("dims, text", [
    (-1, "negative"), (2, r"rank\(indices\) = 2")])
def test_gather_nd_says_which_batches_it_cannot_take(dims, text):
    with pytest.raises(ValueError, match=text):
        tf.gather_nd(PARAMS, [[1], [2]], batch_dims=dims)


@pytest.mark.parametrize("perm", [None, [1, 0]])
def test_transposing_conjugates_complex_numbers_if_told(perm):
    z = np.array([[1 + 2j, 3 - 1j]])
    np.testing.assert_array_equal(
        value(tf.transpose(z, perm, conjugate=True)), z.conj().T)
    np.testing.assert_array_equal(value(tf.transpose(z, perm)), z.T)
    x = tf.transpose(tf.constant([[1.0, 2.0]]), perm, conjugate=True)
    assert x.op.type == "Transpose"
    np.testing.assert_array_equal(value(x), [[1], [2]])
