"""tf.losses and tf.metrics; their graphs are among the golden ones."""

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


L = np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)
P = np.array([[0.8, 0.4], [-0.5, 3.0]], np.float32)


@pytest.mark.parametrize("name, expected", [
    ("absolute_difference", np.abs(P - L).mean()),
    ("mean_squared_error", np.square(P - L).mean()),
    ("huber_loss", np.mean([0.02, 0.08, 0.125, 1.5])),
    ("hinge_loss", np.mean([0.2, 1.4, 0.5, 0.0])),
])
def test_losses_are_means(name, expected):
    loss = getattr(tf.losses, name)(L, P)
    assert tf.losses.get_losses() == [loss]
    assert value(loss) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("reduction, expected", [
    (tf.losses.Reduction.SUM, 2 * 1 + 1 * 4),
    (tf.losses.Reduction.MEAN, 6 / 3),
    (tf.losses.Reduction.SUM_BY_NONZERO_WEIGHTS, 6 / 2),
    (tf.losses.Reduction.SUM_OVER_BATCH_SIZE, 6 / 3),
])
def test_reductions(reduction, expected):
    loss = tf.losses.mean_squared_error(
        [0.0, 0.0, 0.0], [1.0, 2.0, 3.0], weights=[2.0, 1.0, 0.0],
        reduction=reduction)
    assert value(loss) == pytest.approx(expected)


def test_cross_entropies_agree():
    logits = tf.constant([[1.0, 2.0, 0.5], [0.1, 0.2, 0.9]])
    onehot = tf.losses.softmax_cross_entropy([[0, 1, 0], [0, 0, 1]], logits)
    sparse = tf.losses.sparse_softmax_cross_entropy([[1], [2]], logits)
    a, b = value([onehot, sparse])
    assert a == pytest.approx(b)
    assert a == pytest.approx(np.mean([0.4643687, 0.66573]), rel=1e-4)


CROSS_ENTROPIES = [tf.nn.softmax_cross_entropy_with_logits,
                   tf.nn.softmax_cross_entropy_with_logits_v2]


@pytest.mark.parametrize("function", CROSS_ENTROPIES)
@pytest.mark.parametrize("name", ["axis", "dim"])
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
@pytest.mark.parametrize("known", [True, False])
def test_a_cross_entropy_sums_over_the_axis_it_is_given(function, name, axis,
                                                        known):
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4) % 5
    labels = np.float32(x == 2) / 2
    logits = tf.placeholder(tf.float32, x.shape if known else None)
    loss = function(labels=labels, logits=logits, **{name: axis})
    expected = (labels * (np.log(np.exp(x).sum(axis, keepdims=True)) -
                          x)).sum(axis)
    if known:
        assert loss.shape == expected.shape
    np.testing.assert_allclose(value(loss, {logits: x}), expected, rtol=1e-5)


def test_the_gradient_of_a_cross_entropy_follows_its_axis():
    x = tf.constant(np.arange(6, dtype=np.float32).reshape(3, 2))
    loss = tf.nn.softmax_cross_entropy_with_logits_v2(
        labels=[[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], logits=x, axis=0)
    # As TensorFlow 1.15 has it.
    np.testing.assert_allclose(
        value(tf.gradients(loss, x)[0]),
        [[-0.9841238, 0.0158762], [0.1173104, -0.8826896],
         [0.8668134, 0.8668134]], atol=1e-6)


def test_a_cross_entropy_has_no_axis_that_its_logits_lack():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Axis \(3\)"):
        tf.nn.softmax_cross_entropy_with_logits_v2(labels=L, logits=P, axis=3)


def test_the_total_has_regularization():
    w = tf.get_variable("w", [2], initializer=tf.ones_initializer(),
                        regularizer=lambda v: 0.5 * tf.reduce_sum(v * v))
    tf.losses.absolute_difference([0.0, 0.0], w)
    total = tf.losses.get_total_loss()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(total) == pytest.approx(2.0)


def test_weights_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match="weights can not be broadcast"):
        tf.losses.mean_squared_error(np.zeros([2, 3]), np.zeros([2, 3]),
                                     weights=np.ones([3, 3]))
    y = tf.placeholder(tf.float32, [None])
    weights = tf.placeholder_with_default([1.0, 1.0, 1.0], [None])
    loss = tf.losses.mean_squared_error(y, y, weights=weights)
    with pytest.raises(tf.errors.InvalidArgumentError,
                       match="weights can not be broadcast"):
        value(loss, {y: [1.0, 2.0]})
    assert value(loss, {y: [1.0, 2.0, 3.0]}) == 0


def test_unknown_reductions_are_named():
    with pytest.raises(ValueError, match="Invalid Reduction Key median."):
        tf.losses.compute_weighted_loss([1.0], reduction="median")


def gathered(metric, *batches):
    """The value after all batches; each is (labels, predictions)."""
    labels = tf.placeholder(tf.float32, [None])
    predictions = tf.placeholder(tf.float32, [None])
    result, update = metric(labels, predictions)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        for l, p in batches:
            last = session.run(update, {labels: l, predictions: p})
        assert session.run(result) == pytest.approx(last)
        return last


BATCHES = [([1, 0, 1], [1, 1, 0]), ([1], [1])]


@pytest.mark.parametrize("name, expected", [
    ("accuracy", 2 / 4), ("mean_squared_error", 2 / 4),
    ("mean_absolute_error", 2 / 4), ("root_mean_squared_error", 0.5 ** 0.5),
    ("true_positives", 2), ("true_negatives", 0), ("false_positives", 1),
    ("false_negatives", 1), ("precision", 2 / 3), ("recall", 2 / 3),
])
def test_metrics_gather_batches(name, expected):
    assert gathered(getattr(tf.metrics, name), *BATCHES) == pytest.approx(
        expected)


def test_a_mean_of_nothing_is_zero():
    result, _ = tf.metrics.mean(tf.placeholder(tf.float32, [None]))
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        assert session.run(result) == 0
    assert [v.op.name for v in tf.get_collection(
        tf.GraphKeys.METRIC_VARIABLES)] == ["mean/total", "mean/count"]


def test_metrics_take_weights_and_collections():
    result, update = tf.metrics.mean(
        [1.0, 5.0], weights=[3.0, 1.0], metrics_collections=["m"],
        updates_collections=["u"])
    assert tf.get_collection("m") == [result]
    assert tf.get_collection("u") == [update]
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        assert session.run(update) == 2.0
