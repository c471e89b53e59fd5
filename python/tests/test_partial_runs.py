"""Steps in several calls, through Python."""

import pytest

import sluice as tf


@pytest.fixture(autouse=True)
def fresh_graph():
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


def test_a_partial_run_that_was_not_set_up_is_an_error():
    x = tf.constant(1.0)
    with tf.Session() as sess:
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError,
                               match="Must run 'setup' before performing"):
                sess.partial_run("17", x)
            sess.run(x)


def test_a_sparse_tensor_is_fed_by_its_parts():
    sparse = tf.sparse_placeholder(tf.float32)
    total = tf.reduce_sum(tf.sparse_tensor_to_dense(sparse))
    with tf.Session() as sess:
        run = sess.partial_run_setup([total], [sparse])
        value = tf.SparseTensorValue([[0], [2]], [1.0, 2.0], [3])
        assert sess.partial_run(run, total, {sparse: value}) == 3.0
