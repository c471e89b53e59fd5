"""tf.sparse_tensor_dense_matmul and its gradients; values are TensorFlow's."""

import numpy as np
import pytest

import sluice as tf

# Per (adjoint_a, adjoint_b): product, gradient of the values, of the matrix.
RECORDED = {
    (False, False): ([[6, 8, 10], [0, 3, 6]], [12, 3], [[3] * 3, [2] * 3]),
    (False, True): ([[2, 6, 10], [0, 6, 12]], [9, 6], [[3, 2]] * 3),
    (True, False): ([[9, 12, 15], [0, 2, 4]], [3, 12], [[2] * 3, [3] * 3]),
    (True, True): ([[3, 9, 15], [0, 4, 8]], [6, 9], [[2, 3]] * 3),
}


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("adjoint", sorted(RECORDED))
def test_products_and_gradients(adjoint, known):
    a, b = adjoint
    shape = [3, 2] if b else [2, 3]
    with tf.Graph().as_default(), tf.Session() as session:
        values = tf.placeholder(tf.float32, [2] if known else None)
        dense = tf.placeholder(tf.float32, shape if known else None)
        sparse = tf.SparseTensor([[0, 1], [1, 0]], values, [2, 2])
        y = tf.sparse_tensor_dense_matmul(sparse, dense, adjoint_a=a,
                                          adjoint_b=b)
        assert y.shape.as_list() == [2, 3 if known else None]
        got = session.run([y] + tf.gradients(y, [values, dense]), {
            values: [2, 3], dense: np.arange(6.).reshape(shape)})
    assert tuple(g.tolist() for g in got) == RECORDED[adjoint]


def test_a_value_of_a_session_will_do_and_a_dense_one_not():
    value = tf.SparseTensorValue([[0, 1]], [2.], [1, 2])
    with tf.Graph().as_default(), tf.Session() as session:
        y = tf.sparse.matmul(value, [[1.], [3.]])
        assert session.run(y).tolist() == [[6]]
        with pytest.raises(TypeError, match="Input must be a SparseTensor."):
            tf.sparse_tensor_dense_matmul([[1.]], [[1.]])
