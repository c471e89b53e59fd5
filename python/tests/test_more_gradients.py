"""Gradients of less common ops; values and nodes are TensorFlow's."""

import numpy as np
import pytest

import sluice as tf

REORDER = [
    ("Shape", "Shape"),
    ("strided_slice/stack", "Const"),
    ("strided_slice/stack_1", "Const"),
    ("strided_slice/stack_2", "Const"),
    ("strided_slice", "StridedSlice"),
    ("range/start", "Const"),
    ("range/delta", "Const"),
    ("range", "Range"),
    ("SparseReorder", "SparseReorder"),
    None,
    ("InvertPermutation", "InvertPermutation"),
    ("GatherV2/axis", "Const"),
    ("GatherV2", "GatherV2"),
]


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.mark.parametrize("known, shape_node", [
    (True, ("SparseTensor_1/dense_shape", "Const")),
    (False, ("Identity", "Identity"))])
def test_reordered_values_send_their_gradients_back(graph, known, shape_node):
    values = tf.placeholder(tf.float32, [None])
    indices = tf.placeholder(tf.int64, [None, 2])
    shape = (tf.constant([3, 3], tf.int64) if known
             else tf.placeholder_with_default(np.int64([3, 3]), [2]))
    y = tf.sparse_reorder(tf.SparseTensor(indices, values, shape)).values
    gradient, = tf.gradients(y, values, [[10., 100., 1000.]])
    scope = "gradients/SparseReorder_grad/"
    assert [(op.name[len(scope):], op.type) for op in graph.get_operations()
            if op.name.startswith(scope)] == [
                node or shape_node for node in REORDER]
    with tf.Session() as session:
        assert session.run(gradient, {
            values: [1, 2, 3],
            indices: [[2, 0], [1, 2], [0, 1]]}).tolist() == [1000, 100, 10]


@pytest.mark.parametrize("op, make", [
    ("ScatterUpdate", lambda v, a: tf.scatter_update(v, [0], a)),
    ("ScatterMin", lambda v, a: tf.scatter_min(v, [0], a)),
    ("ScatterMax", lambda v, a: tf.scatter_max(v, [0], a)),
    ("RandomPoissonV2", lambda v, a: tf.random_poisson(a, [2]))])
def test_some_ops_have_no_gradient_and_are_not_constant_either(op, make):
    a = tf.placeholder(tf.float32, [1])
    y = make(tf.Variable([1., 1.], name="v"), a)
    with pytest.raises(LookupError, match="No gradient defined for operation "
                       r"'.*%s' \(op type: %s\)" % (op, op)):
        tf.gradients(y, a)


@pytest.mark.parametrize("make", [
    lambda v, a: tf.scatter_add(v, [0], a),
    lambda v, a: tf.scatter_nd_update(v, [[0]], a)])
def test_other_updates_are_constant(make):
    a = tf.placeholder(tf.float32, [1])
    assert tf.gradients(make(tf.Variable([1., 1.]), a), a) == [None]


def test_a_loop_variable_without_use_leaves_the_others_their_gradients():
    x = tf.constant(1.)
    start = x * 3.
    loop = tf.while_loop(lambda i, a, b: i < 2,
                         lambda i, a, b: (i + 1, a * 2., b), [0, start, start])
    elements = tf.constant([1., 2.])
    scanned = tf.scan(lambda a, b: b, elements)
    with tf.Session() as session:
        assert session.run(tf.gradients(loop[1], x)) == [12.]
        np.testing.assert_array_equal(
            session.run(tf.gradients(scanned, elements))[0], [1., 1.])
