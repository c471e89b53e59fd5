"""What a run takes and gives: fetches, feeds, and the errors about them."""

import collections

import numpy as np
import pytest

import sluice as tf
from sluice.client import session as session_lib

Pair = collections.namedtuple("Pair", ["a", "b"])


@pytest.fixture(autouse=True)
def fresh_graph():
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


@pytest.fixture
def sess():
    with tf.Session() as session:
        yield session


def test_a_fetch_has_the_structure_it_was_asked_in(sess):
    x, y = tf.constant(1), tf.constant([2.0, 3.0])
    fetched = sess.run({"p": Pair(x, [y, (x,)]), "q": [x, x], "r": ()})
    assert fetched["p"].a == 1 and isinstance(fetched["p"], Pair)
    np.testing.assert_array_equal(fetched["p"].b[0], [2, 3])
    assert fetched["p"].b[1] == (1,)
    assert fetched["q"] == [1, 1] and fetched["r"] == ()


def test_an_ordered_dict_keeps_its_order(sess):
    wanted = collections.OrderedDict(
        [("z", tf.constant(1)), ("a", tf.constant(2))])
    fetched = sess.run(wanted)
    assert isinstance(fetched, collections.OrderedDict)
    assert list(fetched.items()) == [("z", 1), ("a", 2)]


def test_names_and_operations_can_be_fetched(sess):
    tf.constant(5, name="c")
    done = tf.no_op(name="done")
    assert sess.run(["c:0", done, "done"]) == [5, None, None]
    assert sess.run("c:0") == 5


def test_a_tensor_fetched_twice_is_computed_once(sess):
    r = tf.random_uniform([])
    first, second = sess.run([r, r])
    assert first == second


def test_variables_are_fetched_by_their_value(sess):
    v = tf.Variable([1.0, 2.0])
    w = tf.get_variable("w", initializer=3.0, use_resource=True)
    sess.run(tf.global_variables_initializer())
    got = sess.run({"v": v, "w": w})
    np.testing.assert_array_equal(got["v"], [1, 2])
    assert got["w"] == 3


def test_a_sparse_tensor_is_three_and_comes_back_as_one(sess):
    sp = tf.SparseTensor([[0, 1], [2, 0]], [5.0, 6.0], [3, 2])
    value = sess.run(sp)
    assert isinstance(value, tf.SparseTensorValue)
    np.testing.assert_array_equal(value.indices, [[0, 1], [2, 0]])
    np.testing.assert_array_equal(value.dense_shape, [3, 2])


@pytest.mark.parametrize("as_value", [False, True])
def test_a_sparse_placeholder_is_fed_by_a_tuple(sess, as_value):
    sp = tf.sparse_placeholder(tf.float32)
    fed = ([[0, 1]], [7.0], [2, 2])
    if as_value:
        fed = tf.SparseTensorValue(*fed)
    value = sess.run([sp.values, sp.dense_shape], {sp: fed})
    np.testing.assert_array_equal(value[0], [7])
    np.testing.assert_array_equal(value[1], [2, 2])


def test_slices_are_fetched_and_fed(sess):
    s = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([3]),
                         tf.constant([5, 1]))
    value = sess.run(s)
    np.testing.assert_array_equal(value.indices, [3])
    again = sess.run(s.values * 2, {s: value._replace(values=[[4.0]])})
    np.testing.assert_array_equal(again, [[8]])


def test_any_tensor_can_be_fed(sess):
    a = tf.constant(1) + 1
    b = a * 10
    assert sess.run(b, {a: 5}) == 50
    assert sess.run(b, {"add:0": 6}) == 60
    assert sess.run([a, b], {a: 7}) == [7, 70]


def test_a_fetch_that_is_fed_comes_back(sess):
    p = tf.placeholder(tf.float32, [2])
    np.testing.assert_array_equal(sess.run(p, {p: [1, 2]}), [1, 2])


def test_strings_are_bytes(sess):
    p = tf.placeholder(tf.string, [None])
    out = sess.run(tf.identity(p), {p: ["a", b"b\x00", "\u00e9"]})
    assert list(out) == [b"a", b"b\x00", "\u00e9".encode()]


def test_a_tuple_of_tensors_is_fed_by_a_tuple(sess):
    a, b = tf.placeholder(tf.int32), tf.placeholder(tf.int32)
    assert sess.run(a - b, {(a, b): (5, 3)}) == 2


class Doubled(object):
    """A kind of feed of a program's own."""

    def __init__(self, tensor):
        self.tensor = tensor


@pytest.fixture
def doubling():
    session_lib.register_session_run_conversion_functions(
        Doubled, lambda fetch: ([fetch.tensor], lambda values: values[0]),
        lambda feed, value: [(feed.tensor, 2 * value)])
    yield
    session_lib._registered[:] = [entry for entry in session_lib._registered
                                  if entry[0] is not Doubled]


def test_a_registered_feed_is_converted_each_time(sess, doubling):
    x = tf.placeholder(tf.float32)
    y, feed = x + 0.0, Doubled(x)
    assert [sess.run(y, {feed: 1.0}) for _ in range(3)] == [2.0] * 3
    assert [sess.run(y, {x: 1.0}) for _ in range(3)] == [1.0] * 3


def test_a_tuple_of_one_is_fed_each_time(sess):
    x = tf.placeholder(tf.float32)
    y, key = x + 0.0, (x,)
    for _ in range(3):
        fed = sess.run(y, {key: (1.0,)})
        assert fed == 1.0 and fed.shape == ()


@pytest.mark.parametrize("dtype, numbers, fed", [
    (tf.uint8, [-1, 300], [255, 44]), (tf.uint8, [[1.5], [-2]], [[1], [254]]),
    (tf.int8, [200], [-56]), (tf.int32, [2**40 + 3], [3]),
    (tf.uint64, [-1], [2**64 - 1])])
def test_integers_in_a_list_wrap_around_as_those_of_an_array(sess, dtype,
                                                             numbers, fed):
    x = tf.placeholder(dtype)
    y = tf.identity(x)
    for _ in range(2):
        np.testing.assert_array_equal(sess.run(y, {x: numbers}), fed)


@pytest.mark.parametrize("dtype, number", [
    (tf.int32, 2**63), (tf.int64, 2**70), (tf.float32, 10**400)])
def test_numbers_that_no_type_holds_are_refused(sess, dtype, number):
    x = tf.placeholder(dtype)
    with pytest.raises(OverflowError, match="too large"):
        sess.run(tf.identity(x), {x: [number]})


ERRORS = [
    ("tf.Session().run(None)", TypeError,
     "Fetch argument None has invalid type <class 'NoneType'>"),
    ("tf.Session().run([None])", TypeError,
     "Fetch argument None has invalid type <class 'NoneType'>"),
    ("tf.Session().run('nosuch:0')", ValueError,
     "Fetch argument 'nosuch:0' cannot be interpreted as a Tensor. "),
    ("p = tf.placeholder(tf.float32, [2]); tf.Session().run(p * 2, [p])",
     TypeError, "input must be a dictionary"),
    ("p = tf.placeholder(tf.float32, [2], name='p'); "
     "tf.Session().run(p * 2, {p: [1]})", ValueError,
     "Cannot feed value of shape (1,) for Tensor 'p:0', which has shape "
     "'(2,)'"),
    ("p = tf.placeholder(tf.int8, []); tf.Session().run(p + 1, {p: 300})",
     TypeError, "Type of feed value 300 with type <class 'int'> is not "
     "compatible with Tensor type <class 'numpy.int8'>."),
    ("p = tf.placeholder(tf.float32); "
     "tf.Session().run(p, {p: tf.constant(1.0)})", TypeError,
     "The value of a feed cannot be a tf.Tensor object."),
    ("c = tf.constant(1); tf.get_default_graph().prevent_feeding(c); "
     "tf.Session().run(c, {c: 2})", ValueError,
     "Tensor Tensor(\"Const:0\", shape=(), dtype=int32) may not be fed."),
    ("c = tf.constant(1); tf.get_default_graph().prevent_fetching(c.op); "
     "tf.Session().run(c)", tf.errors.InaccessibleTensorError,
     "Operation 'Const' has been marked as not fetchable."),
    ("s = tf.Session(); tf.constant(1); s.close(); s.run('Const:0')",
     RuntimeError, "Attempted to use a closed Session."),
    ("tf.Session().run('a')", RuntimeError, "The Session graph is empty."),
]


@pytest.mark.parametrize("program,error,message", ERRORS)
def test_mistakes_have_the_known_errors(program, error, message):
    if "empty" not in message:
        tf.constant(0, name="other")
    with pytest.raises(error) as caught:
        exec(program, {"tf": tf})
    assert str(caught.value).startswith(message)


def test_every_registered_op_is_a_raw_op():
    names = dir(tf.raw_ops)
    assert len(names) > 300 and "MatMul" in names
    for name in names:
        assert callable(getattr(tf.raw_ops, name))
    y = tf.raw_ops.Add(x=tf.constant(1), y=tf.constant(2), name="sum")
    assert y.op.type == "Add" and y.op.name == "sum"
    with pytest.raises(AttributeError):
        tf.raw_ops.NoSuchOp


GRADIENT_ERRORS = [
    ("v = tf.get_variable('p', [4], partitioner="
     "tf.fixed_size_partitioner(2)); tf.gradients(tf.reduce_sum("
     "tf.convert_to_tensor(v)), v)", NotImplementedError,
     "PartitionedVariable doesn't support being used as a reference."),
    ("x = tf.constant(1.0); tf.gradients(tf.raw_ops.PreventGradient("
     "input=x, message='why'), x)", LookupError,
     "Gradient explicitly disabled. Reason: b'why'"),
    ("x = tf.Variable(1.0); tf.gradients(tf.cast(x, tf.complex64), x)",
     TypeError, "Gradients of complex tensors must set grad_ys "
     "(y.dtype = tf.complex64)"),
    ("x = tf.constant('a'); tf.gradients(x, x)", TypeError,
     "Expected string, got 1 of type 'int' instead."),
]


@pytest.mark.parametrize("program,error,message", GRADIENT_ERRORS)
def test_gradients_raise_what_tensorflow_raises(program, error, message):
    with pytest.raises(error) as caught:
        exec(program, {"tf": tf})
    assert str(caught.value).startswith(message)


def test_constants_without_elements_and_defaults_of_unknown_shape():
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(tf.zeros([1, 0])).shape == (1, 0)
        assert session.run(tf.constant("a", shape=[0])).shape == (0,)
        p = tf.placeholder_with_default([1.0, 2.0], None)
        assert p.shape.ndims is None
        assert session.run(p).tolist() == [1.0, 2.0]
        assert session.run(p, {p: [[3.0]]}).tolist() == [[3.0]]


@pytest.mark.parametrize("size", [3, 100000])
@pytest.mark.parametrize("kind", ["ref", "resource", "constant", "slice"])
def test_writing_to_a_fetched_array_changes_nothing_else(kind, size):
    value = np.arange(size, dtype=np.float32)
    fed = tf.placeholder(tf.float32, [size])
    v = tf.Variable(fed, use_resource=kind == "resource")
    fetch = {"constant": tf.constant(value), "slice": v[1:] * 1.0}.get(kind, v)
    with tf.Session() as sess:
        sess.run(v.initializer, {fed: value})
        for fetches in (fetch, [fetch], [fetch, v], fetch):
            first = sess.run(fetches)
            first = first[0] if isinstance(fetches, list) else first
            expected = first.copy()
            first += 1
            np.testing.assert_array_equal(sess.run(fetch), expected)
            np.testing.assert_array_equal(sess.run(v), value)
        held = sess.run(v)
        sess.run(v.assign_add(tf.ones([size])))
        np.testing.assert_array_equal(held, value)


def test_a_tensor_fetched_twice_is_one_array():
    x = tf.Variable([1.0, 2.0])
    with tf.Session() as sess:
        sess.run(x.initializer)
        for _ in range(2):
            a, b = sess.run([x, x])
            assert a is b
