"""Loops give TensorFlow 1.15's numbers, gradients and nodes.

tests/golden/loops has the programs, and what TensorFlow made of them.
"""

import importlib.util
import json
import os

import numpy as np
import pytest

import sluice as tf
from sluice.framework import protos

_GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                       "tests", "golden", "loops")
_spec = importlib.util.spec_from_file_location(
    "loop_programs", os.path.join(_GOLDEN, "programs.py"))
_programs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_programs)
with open(os.path.join(_GOLDEN, "recorded.json")) as _f:
    RECORDED = json.load(_f)


@pytest.fixture(autouse=True)
def fresh_graph():
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


def evaluate(fetches, feeds=None):
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(fetches, feeds)


@pytest.mark.parametrize("program", _programs.PROGRAMS,
                         ids=lambda p: p.__name__)
def test_values_and_gradients_of(program):
    values = evaluate(*program(tf))
    expected = RECORDED[program.__name__]["values"]
    assert len(values) == len(expected)
    for ours, theirs in zip(values, expected):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("program", _programs.PROGRAMS,
                         ids=lambda p: p.__name__)
def test_the_nodes_of(program):
    program(tf)
    made = [" ".join([n.name, n.op] + list(n.input))
            for n in tf.get_default_graph().as_graph_def().node]
    for ours, theirs in zip(made, RECORDED[program.__name__]["nodes"]):
        assert ours == theirs
    assert len(made) == len(RECORDED[program.__name__]["nodes"])


@pytest.mark.parametrize("program", ["power", "nested", "cond_in_while",
                                     "while_in_cond"])
def test_a_loop_of_a_meta_graph_has_its_gradient(program):
    fetches, feeds = getattr(_programs, program)(tf)
    values = evaluate(fetches, feeds)
    meta = tf.train.export_meta_graph()
    names = [f.name for f in fetches]
    feeds = {key.name: value for key, value in feeds.items()}
    with tf.Graph().as_default() as graph:
        # The gradient is left out and built anew.
        kept = [n for n in meta.graph_def.node
                if not n.name.startswith("gradients")]
        del meta.graph_def.node[:]
        meta.graph_def.node.extend(kept)
        for n in meta.graph_def.node:
            inputs = [i for i in n.input if not i.startswith("^gradients")]
            del n.input[:]
            n.input.extend(inputs)
        for key in ("while_context", "cond_context"):
            _forget_gradients(meta, key)
        tf.train.import_meta_graph(meta)
        forward = [n for n in names if not n.startswith("gradients")]
        y = graph.get_tensor_by_name(forward[-1])
        xs = {"power": ["w:0"], "nested": ["Const:0"],
              "cond_in_while": ["Const:0", "v:0"],
              "while_in_cond": ["Const:0"]}[program]
        again = tf.gradients(tf.reduce_sum(y),
                             [graph.get_tensor_by_name(x) for x in xs])
        got = evaluate(again, feeds)
    for ours, theirs in zip(got, values[len(forward):]):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def _forget_gradients(meta, key):
    """Takes what gradients added to contexts out of a meta graph."""
    message = {"while_context": protos.WhileContextDef,
               "cond_context": protos.CondContextDef}[key]
    contexts = meta.collection_def[key].bytes_list.value
    kept = []
    for data in contexts:
        context = message.FromString(data)
        if not context.context_name.startswith("gradients"):
            _clean(context)
            kept.append(context.SerializeToString())
    del contexts[:]
    contexts.extend(kept)
    if not kept:
        del meta.collection_def[key]


def _clean(context):
    def keep(names):
        kept = [n for n in names if not n.startswith("gradients")]
        del names[:]
        names.extend(kept)
    if hasattr(context, "loop_exit_names"):
        keep(context.loop_exit_names)
        keep(context.loop_enter_names)
    keep(context.values_def.values)
    external = context.values_def.external_values
    for outside, inside in list(external.items()):
        if "gradients" in outside + inside:
            del external[outside]
    nested = [n for n in context.nested_contexts if not getattr(
        n, n.WhichOneof("ctxt")).context_name.startswith("gradients")]
    del context.nested_contexts[:]
    context.nested_contexts.extend(nested)
    for n in context.nested_contexts:
        _clean(getattr(n, n.WhichOneof("ctxt")))


ERRORS = [
    ("tf.while_loop(lambda i: i < 3, lambda i: i + 1, [])", ValueError,
     "No loop variables provided"),
    ("tf.while_loop(lambda i: i < 3, 5, [tf.constant(0)])", TypeError,
     "body must be callable."),
    ("tf.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)], "
     "parallel_iterations=0)", TypeError,
     "parallel_iterations must be a positive integer."),
    ("tf.while_loop(lambda i: i, lambda i: i + 1, [tf.constant(0)])",
     TypeError, "Input 'input' of 'LoopCond' Op has type int32 that does not "
     "match expected type of bool."),
    ("tf.while_loop(lambda x: tf.size(x) < 3, lambda x: tf.concat([x, x], 0),"
     " [tf.ones([1])])", ValueError,
     "Input tensor 'ones:0' enters the loop with shape (1,), but has shape "
     "(2,) after one iteration."),
    ("tf.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)], "
     "shape_invariants=[tf.TensorShape([2])])", ValueError,
     "The shape invariant specified for Const:0 is not compatible with the "
     "initial shape of the loop variable. It enters the loop with shape (), "
     "but the specified shape invariant is (2,)."),
    ("h = []; tf.while_loop(lambda i: i < 3, lambda i: (h.append(i * 2), "
     "i + 1)[1], [tf.constant(0)]); tf.add(h[0], 1)", ValueError,
     "Cannot use 'while/mul' as input to 'Add' because 'while/mul' is in a "
     "while loop. See info log for more details."),
    ("x = tf.constant(1.0); tf.while_loop(lambda i, y: i < 3, lambda i, y: "
     "(i + 1, tf.gradients(y * y, x)[0]), [tf.constant(0), x])", ValueError,
     "Cannot compute gradient inside while loop with respect to op 'Const'."),
    ("x = tf.Variable(1.0); i, y = tf.while_loop(lambda i, y: i < 3, "
     "lambda i, y: (i + 1, y * x), [tf.constant(0), x._ref() * 1.0]); "
     "g = tf.gradients(y, x)[0]; tf.gradients(g, x)", TypeError,
     "Second-order gradient for while loops not supported."),
]


@pytest.mark.parametrize("program,error,message", ERRORS)
def test_mistakes_have_the_known_errors(program, error, message):
    with pytest.raises(error) as caught:
        exec(program, {"tf": tf})
    assert str(caught.value).startswith(message)


def _scaled(sparse, factor):
    return tf.SparseTensor(sparse.indices, sparse.values * factor,
                           sparse.dense_shape)


@pytest.mark.parametrize("arguments", [
    {}, {"maximum_iterations": 9},
    {"shape_invariants": (tf.TensorShape([]), tf.TensorShape([1]))}])
def test_a_loop_carries_a_sparse_tensor(arguments):
    x = tf.constant([1.0, 5.0])
    _, s = tf.while_loop(lambda i, s: i < 3,
                         lambda i, s: (i + 1, _scaled(s, 2.0)),
                         (0, tf.SparseTensor([[0], [2]], x, [4])),
                         **arguments)
    assert s.indices.shape.as_list() == [None, 1]
    with tf.Session() as session:
        got, dx = session.run([s, tf.gradients(s.values, x)[0]])
    np.testing.assert_array_equal(got.indices, [[0], [2]])
    np.testing.assert_array_equal(got.values, [8, 40])
    np.testing.assert_array_equal(got.dense_shape, [4])
    np.testing.assert_array_equal(dx, [8, 8])


def test_a_sparse_tensor_grows_in_a_loop():
    def doubled(i, s):
        return i + 1, tf.SparseTensor(tf.concat([s.indices, s.indices + 1], 0),
                                      tf.concat([s.values, s.values], 0),
                                      s.dense_shape * 2)

    _, s = tf.while_loop(lambda i, s: i < 2, doubled,
                         (0, tf.SparseTensor([[0]], [1], [1])))
    with tf.Session() as session:
        got = session.run(s)
    np.testing.assert_array_equal(got.indices, [[0], [1], [1], [2]])
    np.testing.assert_array_equal(got.values, [1, 1, 1, 1])
    np.testing.assert_array_equal(got.dense_shape, [4])


def test_a_branch_returns_a_sparse_tensor():
    which = tf.placeholder(tf.bool, [])
    x = tf.constant([2.0])
    one = tf.SparseTensor([[0]], x, [3])
    # In a structure, and of one alone.
    s, (t, n) = tf.cond(
        which, lambda: (one, (_scaled(one, 2.0), 1)),
        lambda: (tf.SparseTensor([[1], [2]], [7.0, 8.0], [3]), (one, 2)))
    u = tf.cond(which, lambda: one, lambda: s)
    dx = tf.gradients(t.values, x)[0]
    with tf.Session() as session:
        for choice, values, doubled, number in [
                (True, [2], [4], 1), (False, [7, 8], [2], 2)]:
            got = session.run([s, t, n, u, dx], {which: choice})
            np.testing.assert_array_equal(got[0].values, values)
            np.testing.assert_array_equal(got[1].values, doubled)
            assert got[2] == number
            np.testing.assert_array_equal(got[3].values, values)
            np.testing.assert_array_equal(got[4], [2.0 if choice else 1.0])


@pytest.mark.parametrize("build", [
    lambda s: tf.cond(tf.constant(True), lambda: s, lambda: s.values),
    lambda s: tf.while_loop(lambda i, s: i < 3, lambda i, s: (i, s.values),
                            (0, s))])
def test_a_sparse_tensor_stays_one(build):
    with pytest.raises(TypeError, match="same nested structure"):
        build(tf.SparseTensor([[0]], [1.0], [2]))


def test_what_is_in_a_loop_cannot_be_fetched():
    inside = []
    tf.while_loop(lambda i: i < 3, lambda i: (inside.append(i), i + 1)[1],
                  [tf.constant(0)])
    with pytest.raises(ValueError, match="marked as not fetchable"):
        evaluate(inside[0])
