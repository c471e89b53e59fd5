"""tf.math and its like: second names of functions."""

import pytest

import sluice as tf


@pytest.mark.parametrize("there, root", [
    ("math.add", "add"), ("math.reduce_sum", "reduce_sum"),
    ("random.normal", "random_normal"), ("random.shuffle", "random_shuffle"),
    ("initializers.zeros", "zeros_initializer"),
    ("initializers.global_variables", "global_variables_initializer"),
    ("linalg.matmul", "matmul"), ("sparse.SparseTensor", "SparseTensor"),
    ("queue.FIFOQueue", "FIFOQueue"), ("dtypes.cast", "cast"),
    ("io.write_graph", "train.write_graph"), ("math.softmax", "nn.softmax"),
    ("math.log_softmax", "nn.log_softmax"),
])
def test_a_function_has_two_names(there, root):
    def find(path):
        value = tf
        for part in path.split("."):
            value = getattr(value, part)
        return value
    assert find(there) is find(root)
    namespace, name = there.split(".")
    assert name in dir(getattr(tf, namespace))


def test_a_namespace_has_nothing_else():
    assert not hasattr(tf.math, "Session")
    assert not hasattr(tf, "no_such_namespace")
