"""Prints the nodes, and the error if there is one, of each call in calls.txt.

Run by TensorFlow 1.15.5 it makes calls_recorded.txt; test_recorded_calls.py
compares with that.
"""

import os


def describe(node):
    """Name, op, inputs, and the attributes that calls choose."""
    parts = [node.name, node.op] + list(node.input)
    for key in ("adjoint_a", "adjoint_b", "summarize", "first_n", "message",
                "begin_mask", "end_mask", "shrink_axis_mask"):
        if key in node.attr:
            parts.append("%s=%s" % (key, str(node.attr[key]).strip()))
    if node.op == "Const":
        parts += [repr(s) for s in node.attr["value"].tensor.string_val]
    return " ".join(parts)


def record(tf, call):
    """The lines of one call."""
    names = {
        "tf": tf,
        "f": lambda: tf.placeholder(tf.float32, [2], name="a"),
        "i": lambda: tf.placeholder(tf.int32, None, name="i"),
        "unknown": lambda: tf.placeholder(tf.float32),
        "scalar": lambda: tf.placeholder(tf.int32, []),
        "product": lambda a, b: product(tf, a, b),
    }
    error = ""
    with tf.Graph().as_default() as graph:
        try:
            eval(call, names)
        except Exception as e:
            error = "%s: %s" % (type(e).__name__, e)
        lines = [describe(n) for n in graph.as_graph_def().node]
    return ["== " + call] + lines + ["! " + line
                                     for line in error.splitlines()]


def product(tf, adjoint_a, adjoint_b):
    """A sparse matrix times a dense one, and the gradients of both."""
    values = tf.placeholder(tf.float32, [2])
    dense = tf.placeholder(tf.float32, [3, 2] if adjoint_b else [2, 3])
    sparse = tf.SparseTensor([[0, 1], [1, 0]], values, [2, 2])
    y = tf.sparse_tensor_dense_matmul(sparse, dense, adjoint_a=adjoint_a,
                                      adjoint_b=adjoint_b)
    tf.gradients(y, [values, dense])


def calls():
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, "calls.txt")) as f:
        return f.read().splitlines()


if __name__ == "__main__":
    import tensorflow
    for each in calls():
        print("\n".join(record(tensorflow, each)))
