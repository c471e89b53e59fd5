"""What errors of steps tell of the operations they name.

The texts are TensorFlow 1.15.5's, but for the places, where it names its own
files.
"""

import inspect
import pickle

import pytest

import sluice as tf
from sluice.framework import errors


def _line():
    return inspect.currentframe().f_back.f_lineno


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


def _error(fetch, feeds=None):
    with tf.Session() as sess:
        with pytest.raises(tf.errors.OpError) as caught:
            sess.run(fetch, feeds)
    return caught.value


def test_the_sources_of_inputs_are_told():
    x = tf.constant([1.0, 2.0], name="x"); x_line = _line()
    y = tf.placeholder(tf.float32, name="y"); y_line = _line()
    z = tf.add(x, y, name="z"); z_line = _line()
    error = _error(z, {y: [1.0, 2.0, 3.0]})
    assert error.message == (
        "Incompatible shapes: [2] vs. [3]\n"
        "\t [[node z (defined at {file}:{z}) ]]\n\n"
        "Errors may have originated from an input operation.\n"
        "Input Source operations connected to node z:\n"
        " x (defined at {file}:{x})\t\n"
        " y (defined at {file}:{y})".format(
            file=__file__, x=x_line, y=y_line, z=z_line))


def test_inputs_of_the_same_line_are_not_told():
    y = tf.placeholder(tf.float32, name="y")
    z = tf.add(tf.constant([1.0, 2.0]), tf.identity(y), name="z")
    assert "Input Source" not in _error(z, {y: [1.0, 2.0, 3.0]}).message


def test_a_gradient_tells_of_its_operation():
    q = tf.placeholder(tf.float32, name="q")
    p = tf.multiply(q, q, name="p"); line = _line()
    start = tf.placeholder_with_default([1.0, 2.0, 3.0], [None])
    gradient = tf.gradients(p, q, grad_ys=start)[0]
    assert gradient.op.type == "AddN"
    assert gradient.op._original_op is None
    assert gradient.op.inputs[0].op._original_op is p.op
    text = str(_error(gradient, {q: [1.0, 2.0]}))
    first, second = text.split(
        "\n...which was originally created as op 'p', defined at:\n")
    assert "Original stack trace for 'gradients/p_grad/Mul" in first
    assert 'File "%s", line %d' % (__file__, line) in second
    assert "[elided " in second and " identical lines from previous " \
        "traceback]\n" in second


def test_the_gradient_of_a_gradient_tells_of_both():
    x = tf.placeholder(tf.float32, [], name="x")
    first = tf.gradients(tf.sigmoid(x, name="s"), x, name="one")[0]
    second = tf.gradients(first, x, name="two")[0]
    ops = tf.get_default_graph().get_operations()
    chains = set()
    for op in ops:
        chain = []
        while op is not None:
            chain.append(op.name.split("/")[0])
            op = op._original_op
        chains.add(tuple(chain))
    assert ("two", "one", "s") in chains
    del second


def _on_cpu(op):
    return "/cpu:0"


def test_colocations_and_their_devices_are_told():
    with tf.device(_on_cpu):
        with tf.device("/cpu:0"):
            c = tf.constant(1.0, name="c"); line = _line()
    with tf.device(None), tf.device("/gpu:1"):
        with tf.colocate_with(c):
            with tf.device("/cpu:0"):
                d = tf.identity(c, name="d")
    d.op._set_device("/device:GPU:1")
    message = _error(d).message
    lines = {"file": __file__, "fun": _on_cpu.__code__.co_firstlineno,
             "outer": line - 2, "c": line, "inner": line - 1,
             "coloc": line + 2, "cpu": line + 3, "d": line + 4}
    d_devices = ("Device assignments active during op 'd' creation:\n"
                 "  with tf.device(/cpu:0): <{file}:{cpu}>")
    c_devices = ("Device assignments active during op 'c' creation:\n"
                 "  with tf.device(/cpu:0): <{file}:{inner}>\n"
                 "  with tf.device(_on_cpu<{file}, {fun}>): <{file}:{outer}>")
    assert message.startswith((
        "Cannot colocate nodes node d (defined at {file}:{d}) placed on "
        "device " + d_devices + "  and node c (defined at {file}:{c}) placed "
        "on device " + c_devices + " : Cannot merge devices").format(**lines))
    assert message.endswith((
        "Additional information about colocations:"
        "Node-device colocations active during op 'd' creation:\n"
        "  with tf.colocate_with(c): <{file}:{coloc}>\n" + d_devices +
        "\nNo node-device colocations were active during op 'c' creation.\n" +
        c_devices).format(**lines))


def test_an_unknown_code_is_an_unknown_error_with_a_warning():
    with pytest.warns(UserWarning, match="Unknown error code: 99"):
        error = errors._make(99, "m")
    assert type(error) is tf.errors.UnknownError
    assert error.error_code == 99
    for same in (pickle.loads(pickle.dumps(error)),
                 errors.locate(error, tf.get_default_graph())):
        assert type(same) is tf.errors.UnknownError
        assert (same.message, same.error_code) == ("m", 99)
    known = tf.errors.UnknownError(None, None, "m")
    assert known.error_code == tf.errors.UNKNOWN
    assert pickle.loads(pickle.dumps(known)).error_code == tf.errors.UNKNOWN


def test_a_status_that_is_not_ok_raises_its_error():
    with tf.errors.raise_exception_on_not_ok_status() as status:
        assert status.code == tf.errors.OK
    with pytest.raises(tf.errors.NotFoundError, match="gone"):
        with tf.errors.raise_exception_on_not_ok_status() as status:
            status.code, status.message = tf.errors.NOT_FOUND, "gone"
