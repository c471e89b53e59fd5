"""Prints the nodes of asserts and of some old functions, or their errors.

Run by TensorFlow 1.15.5, for tests/golden/check_ops.txt: a line `== PROGRAM`,
then `->` and what it returned or `!!` and its error, and the nodes it built
with inputs and, of constants, values.
"""

import sys

import tensorflow as tf

# Of x and y, vectors of any size, u of any shape, and k, an int.
PROGRAMS = {
    "equal": lambda x, y, u, k: tf.assert_equal(x, y),
    "equal same": lambda x, y, u, k: tf.assert_equal(x, x),
    "equal message": lambda x, y, u, k:
        tf.assert_equal(x, y, message="m", summarize=5, name="nm"),
    "equal data": lambda x, y, u, k:
        tf.assert_equal(x, y, data=[x], message="m"),
    "equal static bad": lambda x, y, u, k:
        tf.assert_equal([1, 2], [1, 3], message="m"),
    "none_equal": lambda x, y, u, k: tf.assert_none_equal(x, y),
    "less": lambda x, y, u, k: tf.assert_less(x, y),
    "less_equal": lambda x, y, u, k: tf.assert_less_equal(x, y),
    "greater": lambda x, y, u, k: tf.assert_greater(x, y),
    "greater static": lambda x, y, u, k: tf.assert_greater([1.], [2.]),
    "greater_equal": lambda x, y, u, k: tf.assert_greater_equal(x, y),
    "negative": lambda x, y, u, k: tf.assert_negative(x),
    "positive": lambda x, y, u, k: tf.assert_positive(x, message="m"),
    "positive static": lambda x, y, u, k: tf.assert_positive([-1.]),
    "non_negative": lambda x, y, u, k: tf.assert_non_negative(x),
    "non_positive": lambda x, y, u, k: tf.assert_non_positive(x),
    "near": lambda x, y, u, k: tf.assert_near(x, y),
    "near tol": lambda x, y, u, k:
        tf.assert_near(x, y, rtol=0.1, atol=0.2, message="m"),
    "rank ok": lambda x, y, u, k: tf.assert_rank(x, 1),
    "rank bad": lambda x, y, u, k: tf.assert_rank(x, 2, message="m"),
    "rank dyn": lambda x, y, u, k: tf.assert_rank(u, 2),
    "rank dyn2": lambda x, y, u, k: tf.assert_rank(x, k),
    "rank_at_least": lambda x, y, u, k: tf.assert_rank_at_least(x, 2),
    "rank_at_least dyn": lambda x, y, u, k: tf.assert_rank_at_least(u, 2),
    "rank_in": lambda x, y, u, k: tf.assert_rank_in(x, [2, 3]),
    "rank_in ok": lambda x, y, u, k: tf.assert_rank_in(x, [1, 3]),
    "rank_in dyn": lambda x, y, u, k: tf.assert_rank_in(u, [1, 3]),
    "integer": lambda x, y, u, k: tf.assert_integer(k),
    "integer bad": lambda x, y, u, k: tf.assert_integer(x, message="m"),
    "type": lambda x, y, u, k: tf.assert_type(x, tf.float32),
    "type bad": lambda x, y, u, k: tf.assert_type(x, tf.int32),
    "proper": lambda x, y, u, k: tf.assert_proper_iterable([1]),
    "proper bad": lambda x, y, u, k: tf.assert_proper_iterable(x),
    "proper bad2": lambda x, y, u, k: tf.assert_proper_iterable(3),
    "same float": lambda x, y, u, k: tf.assert_same_float_dtype([x, y]),
    "same float bad": lambda x, y, u, k: tf.assert_same_float_dtype([x, k]),
    "same float bad2": lambda x, y, u, k:
        tf.assert_same_float_dtype([x], tf.float64),
    "same float none": lambda x, y, u, k: tf.assert_same_float_dtype(),
    "same float nonfloat": lambda x, y, u, k: tf.assert_same_float_dtype([k]),
    "scalar": lambda x, y, u, k: tf.assert_scalar(k),
    "scalar bad": lambda x, y, u, k: tf.assert_scalar(x, message="m"),
    "scalar dyn": lambda x, y, u, k: tf.assert_scalar(u),
    "count_nonzero": lambda x, y, u, k: tf.count_nonzero(x),
    "logsumexp": lambda x, y, u, k:
        tf.reduce_logsumexp(x, reduction_indices=[0], keep_dims=True),
    "random_crop": lambda x, y, u, k:
        tf.random_crop(tf.zeros([5, 4, 3]), [2, 2, 3], seed=1),
    "truncatemod": lambda x, y, u, k: tf.truncatemod(x, y),
    "matrix_diag": lambda x, y, u, k: tf.matrix_diag(x),
    "matrix_set_diag": lambda x, y, u, k:
        tf.matrix_set_diag(tf.zeros([2, 2]), [1.,2.]),
    "reduce_join": lambda x, y, u, k:
        tf.reduce_join(tf.constant([["a","b"]]), 0),
    "reduce_join all": lambda x, y, u, k:
        tf.reduce_join(tf.constant([["a","b"]])),
    "string_to_number": lambda x, y, u, k: tf.string_to_number("1"),
    "decode_base64": lambda x, y, u, k: tf.decode_base64("1"),
    "decode_compressed": lambda x, y, u, k: tf.decode_compressed("1"),
    "sparse_segment_sum": lambda x, y, u, k:
        tf.sparse_segment_sum(tf.zeros([3, 2]), [0, 1], [0, 2],
            num_segments=4),
    "sparse_segment_mean": lambda x, y, u, k:
        tf.sparse_segment_mean(tf.zeros([3, 2]), [0, 1], [0, 2],
            num_segments=4),
    "sparse_segment_sqrt_n": lambda x, y, u, k:
        tf.sparse_segment_sqrt_n(tf.zeros([3, 2]), [0, 1], [0, 2],
            num_segments=4),
    "sparse_fill_empty_rows": lambda x, y, u, k:
        tf.sparse_fill_empty_rows(tf.SparseTensor([[0, 0]], [1.], [2, 2]),
            0.)[1],
    "is_numeric": lambda x, y, u, k: tf.is_numeric_tensor(x),
    "non_decr": lambda x, y, u, k: tf.is_non_decreasing(x),
    "strictly": lambda x, y, u, k: tf.is_strictly_increasing(x),
}


def lines(program):
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None], name="x")
        y = tf.placeholder(tf.float32, [None], name="y")
        u = tf.placeholder(tf.float32, name="u")
        k = tf.placeholder(tf.int32, [], name="k")
        try:
            result = program(x, y, u, k)
        except Exception as e:
            yield "!! %s %s" % (type(e).__name__,
                                " | ".join(str(e).split("\n")))
            return
        yield "-> %s" % getattr(result, "name", result)
        for node in graph.as_graph_def().node:
            if node.name in "xyuk":
                continue
            extra = ""
            if node.op == "Const":
                value = tf.make_ndarray(node.attr["value"].tensor)
                extra = repr(value.tolist())
            elif node.op == "Assert":
                extra = str(node.attr["summarize"].i)
            yield " ".join([node.name, node.op] + list(node.input) + [extra])


def main():
    for name, program in PROGRAMS.items():
        print("== " + name)
        for line in lines(program):
            print(line.rstrip())


if __name__ == "__main__":
    sys.exit(main())
