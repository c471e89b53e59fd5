"""Asserts and some old functions build what TensorFlow's build.

tests/golden/check_ops.txt is what tests/golden/record_check_ops.py printed
there.
"""

import importlib.util
import os
import re
import sys

import numpy as np
import pytest

import sluice as tf

_GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                       "tests", "golden")
_ALIAS = os.path.join(os.path.dirname(os.path.dirname(
    os.path.abspath(tf.__file__))), "alias")


def _recorded():
    with open(os.path.join(_GOLDEN, "check_ops.txt")) as f:
        records = re.split(r"^== ", f.read(), flags=re.MULTILINE)[1:]
    return {r.split("\n")[0]: r.rstrip("\n").split("\n")[1:] for r in records}


RECORDED = _recorded()


@pytest.fixture(scope="module")
def recorder():
    before = {name for name in sys.modules if name.startswith("tensorflow")}
    sys.path.insert(0, _ALIAS)
    spec = importlib.util.spec_from_file_location(
        "record_check_ops", os.path.join(_GOLDEN, "record_check_ops.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(_ALIAS)
    for name in [n for n in sys.modules if n.startswith("tensorflow")]:
        if name not in before:
            del sys.modules[name]


def plain(lines):
    """Without the modules of classes."""
    return [re.sub(r"<class '[\w.]*\.(\w+)'>", r"<class '\1'>", line)
            for line in lines]


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_the_program(recorder, name):
    ours = [line.rstrip() for line in recorder.lines(recorder.PROGRAMS[name])]
    assert plain(ours) == plain(RECORDED[name])


def run(build, feed=None):
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None], name="x")
        with tf.control_dependencies([build(x)]):
            out = tf.identity(x)
        return session.run(out, {x: feed})


@pytest.mark.parametrize("build, good, bad, text", [
    (lambda x: tf.assert_positive(x, message="m"), [1., 2.], [1., 0.],
     "Condition x > 0 did not hold"),
    (lambda x: tf.assert_near(x, [1.0]), [1.0], [1.1], "not equal to tol"),
    (lambda x: tf.assert_rank_in(tf.expand_dims(x, tf.size(x)), [1]), None,
     [1.0], "must have rank"),
    (lambda x: tf.assert_less_equal(x, 2.0), [2.0], [3.0], "x <= y"),
])
def test_asserts_hold_in_the_step(build, good, bad, text):
    if good is not None:
        assert run(build, good).tolist() == good
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError),
                       match=text):
        run(build, bad)


@pytest.mark.parametrize("x, rising, falling_never", [
    ([], True, True), ([1.], True, True), ([1., 2., 3.], True, True),
    ([1., 1., 2.], False, True), ([2., 1.], False, False)])
def test_order_is_seen(x, rising, falling_never):
    with tf.Session() as session:
        x = tf.constant(x, tf.float32)
        assert session.run([tf.is_strictly_increasing(x),
                            tf.is_non_decreasing(x)]) == [rising,
                                                          falling_never]


def test_sparse_tensors_are_turned_and_masked():
    with tf.Session() as session:
        s = tf.SparseTensor([[0, 1], [1, 0], [1, 2]], [1., 2., 3.], [2, 3])
        turned = session.run(tf.sparse_transpose(s))
        assert turned.indices.tolist() == [[0, 1], [1, 0], [2, 1]]
        assert turned.values.tolist() == [2., 1., 3.]
        assert turned.dense_shape.tolist() == [3, 2]
        kept = session.run(tf.sparse_retain(s, [True, False, True]))
        assert kept.values.tolist() == [1., 3.]
        ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0]],
                              tf.constant([2, 0, 1], tf.int64), [2, 2])
        assert session.run(tf.sparse_to_indicator(ids, 3)).tolist() == [
            [True, False, True], [False, True, False]]
        masked = session.run(tf.sparse_mask(tf.IndexedSlices(
            tf.constant([[1.], [2.], [3.]]), tf.constant([4, 7, 9])),
            tf.constant([7])).values)
        assert masked.tolist() == [[1.], [3.]]


def test_a_crop_is_a_part():
    with tf.Session() as session:
        value = np.arange(60.).reshape(5, 4, 3)
        part = session.run(tf.random_crop(value, [2, 2, 3], seed=3))
        found = [(i, j) for i in range(4) for j in range(3)
                 if (value[i:i + 2, j:j + 2] == part).all()]
        assert len(found) == 1


def test_texts_become_numbers():
    with tf.Session() as session:
        assert session.run(tf.string_to_number(["1.5", "-2"])).tolist() == [
            1.5, -2.0]
        assert session.run(tf.reduce_join([["a", "b"], ["c", "d"]], 0)).tolist(
        ) == [b"ac", b"bd"]
        assert session.run(tf.reduce_join([["a", "b"], ["c", "d"]],
                                          separator="-")) == b"a-b-c-d"
        assert session.run(tf.decode_base64(tf.encode_base64("hi"))) == b"hi"
