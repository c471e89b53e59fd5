"""Gradients and errors of the random functions; numbers are TensorFlow's."""

import os

import numpy as np
import pytest

import sluice as tf

_GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                       "tests", "golden", "random")


def gamma_program(dtype):
    tf.set_random_seed(42)
    alpha = tf.placeholder(dtype, [2])
    beta = tf.constant([1., 3.], dtype)
    samples = tf.random_gamma([3, 2], alpha=alpha, beta=beta, seed=1,
                              dtype=dtype)
    return alpha, samples, tf.gradients(samples, [alpha, beta])


def test_the_gradient_of_gamma_samples_is_built_as_tensorflow_builds_it():
    with tf.Graph().as_default() as graph:
        gamma_program(tf.float32)
        made = ["%s %s %s" % (n.name, n.op, list(n.input))
                for n in graph.as_graph_def().node]
    with open(os.path.join(_GOLDEN, "gamma_gradient.txt")) as f:
        assert made == f.read().splitlines()


def test_the_gradient_of_gamma_samples_has_tensorflows_values():
    with tf.Graph().as_default(), tf.Session() as session:
        alpha, samples, gradients = gamma_program(tf.float64)
        values, d_alpha, d_beta = session.run(
            [samples] + gradients, {alpha: [.5, 20.]})
    np.testing.assert_allclose(values[0], [
        [0.11268377284789326, 3.854707794936216],
        [0.2616611707170828, 6.903344260262898]], rtol=1e-13)
    np.testing.assert_allclose(d_alpha, [5.495020862651263,
                                         1.8558028211537154], rtol=1e-12)
    np.testing.assert_allclose(d_beta, [-1.6936717456604335,
                                        -11.4412639095302], rtol=1e-12)


def test_a_crop_must_fit():
    with tf.Graph().as_default(), tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError) as raised:
            session.run(tf.random_crop([1, 2, 3], [4]))
    assert str(raised.value).startswith(
        "assertion failed: [Need value.shape >= size, got ] [3] [4]")


@pytest.mark.parametrize("kwargs, error", [
    ({}, "You must provide a rate to dropout."),
    ({"rate": 1.0}, "rate must be a scalar tensor or a float in the range "
                    "[0, 1), got 1"),
    ({"keep_prob": 1.5}, "rate must be a scalar tensor or a float in the "
                         "range [0, 1), got -0.5"),
    ({"rate": .3, "keep_prob": .7},
     "Cannot specify both 'keep_prob' and 'rate'"),
    ({"keep_prob": "a"},
     "keep_prob must be a floating point number or Tensor (got 'a')"),
    ({"rate": [.5]}, "Shape (1,) must have rank 0"),
])
def test_dropout_refuses(kwargs, error):
    with tf.Graph().as_default(), pytest.raises(ValueError) as raised:
        if isinstance(kwargs.get("rate"), list):
            kwargs = {"rate": tf.constant(kwargs["rate"])}
        tf.nn.dropout(tf.ones([3]), **kwargs)
    assert str(raised.value) == error


def test_dropout_without_a_rate_to_drop_gives_the_same_tensor():
    with tf.Graph().as_default():
        x = tf.ones([4, 2])
        assert tf.nn.dropout(x, rate=0.0) is x


def test_dropout_fills_sizes_that_the_noise_leaves_open():
    with tf.Graph().as_default(), tf.Session() as session:
        dropped = session.run(tf.nn.dropout(
            tf.ones([40, 6]), rate=0.5, noise_shape=[None, 1], seed=3))
    assert set(dropped.ravel()) == {0.0, 2.0}
    assert (dropped == dropped[:, :1]).all()
    with tf.Graph().as_default(), pytest.raises(ValueError) as raised:
        tf.nn.dropout(tf.placeholder(tf.float32, [None, 3]), rate=0.3,
                      noise_shape=[None, 1])
    assert str(raised.value) == (
        "Cannot convert a partially known TensorShape to a Tensor: (?, 1)")
