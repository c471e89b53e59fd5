"""custom_gradient of functions that use variables, as in TensorFlow 1.15."""

import pytest

import sluice as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


def value(tensors):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(tensors)


def scaled(name="w", seen=None, **settings):
    """x * w, with gradients that are ten times as large as they should be."""
    @tf.custom_gradient
    def f(x):
        w = tf.get_variable(name, initializer=3.0, use_resource=True,
                            **settings)

        def grad(dy, variables=None):
            if seen is not None:
                seen.append(variables)
            return dy * w * 10.0, [dy * x * 10.0 for _ in variables or ()]
        return x * w, grad
    return f


def test_a_variable_that_is_made_inside_has_the_gradient_given_for_it():
    seen = []
    x = tf.constant(2.0)
    y = scaled(seen=seen)(x)
    w, = tf.trainable_variables()
    assert value([y] + tf.gradients(y, [x, w])) == [6.0, 30.0, 20.0]
    assert len(seen) == 1 and seen[0] == [w]
    # An optimizer sees it, too.
    (grad, var), = tf.train.GradientDescentOptimizer(1.0).compute_gradients(y)
    assert var is w and value(grad) == 20.0


@pytest.mark.parametrize("resource", [True, False])
def test_a_variable_from_outside_has_the_gradient_given_for_it(resource):
    w = tf.get_variable("w", initializer=3.0, use_resource=resource)

    @tf.custom_gradient
    def f(x):
        def grad(dy, **kwargs):
            return dy, [dy * 7.0 for v in kwargs["variables"]]
        return tf.exp(x * w), grad

    y = f(tf.constant(1.0))
    assert value(tf.gradients(y, w)) == [7.0]
    # What uses it beside the function adds to that.
    assert value(tf.gradients(y + w * w, w)) == [13.0]


def test_several_variables_are_asked_for_together():
    @tf.custom_gradient
    def f(x):
        a, b = (tf.get_variable(n, initializer=2.0, use_resource=True)
                for n in "ab")

        def grad(dy, variables):
            assert {v.op.name for v in variables} == {"a", "b"}
            return dy, [dy * (5.0 if v is a else 6.0) for v in variables]
        return x * a + tf.sin(b), grad

    y = f(tf.constant(1.0))
    assert value(tf.gradients(y, tf.trainable_variables())) == [5.0, 6.0]


def test_functions_with_variables_stand_in_each_other():
    @tf.custom_gradient
    def outer(x):
        def grad(dy, variables=None):
            return dy, [dy * 100.0 for _ in variables]
        return scaled()(x) + 1.0, grad

    y = outer(tf.constant(2.0))
    assert value(tf.gradients(y, tf.trainable_variables())) == [100.0]


def test_a_variable_in_a_loop_has_the_gradient_given_for_it():
    w = tf.get_variable("w", initializer=3.0, use_resource=True)

    @tf.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            return dy, [dy for _ in variables]
        return x * w, grad

    _, y = tf.while_loop(lambda i, x: i < 4, lambda i, x: (i + 1, f(x)),
                         [0, tf.constant(1.0)])
    assert value([y] + tf.gradients(y, w)) == [81.0, 4.0]


@pytest.mark.parametrize("use", [
    lambda x, w: x * tf.stop_gradient(w), lambda x, w: w + x - w.value() + x])
def test_a_variable_that_is_read_inside_is_asked_for_whatever_for(use):
    w = tf.get_variable("w", initializer=3.0, use_resource=True)
    x = tf.constant(1.0)
    y = tf.custom_gradient(lambda t: (
        use(t, w), lambda dy, variables: (dy * 5.0, [dy * 6.0])))(x)
    assert value(tf.gradients(y, [x, w])) == [5.0, 6.0]


def test_a_variable_that_nothing_reads_is_not_asked_for():
    w = tf.get_variable("w", initializer=3.0, use_resource=True)
    x, outside = tf.constant(1.0), tf.stop_gradient(w * 2.0)

    @tf.custom_gradient
    def f(t):
        tf.get_variable("unused", initializer=1.0, use_resource=True)
        return t * outside, lambda dy: dy * 5.0

    y = f(x)
    assert value(tf.gradients(y, x)) == [5.0]
    assert tf.gradients(y, tf.trainable_variables()) == [None, None]


def test_neither_is_one_that_is_an_argument_or_not_trained():
    w = tf.get_variable("w", initializer=3.0, use_resource=True)
    y = tf.custom_gradient(lambda t: (t * t, lambda dy: dy * 5.0))(w)
    assert value(tf.gradients(y, w)) == [5.0]
    fixed = tf.get_variable("f", initializer=3.0, trainable=False,
                            use_resource=True)
    x = tf.constant(1.0)
    y = tf.custom_gradient(lambda t: (t * fixed, lambda dy: dy * 6.0))(x)
    assert value(tf.gradients(y, x)) == [6.0]


def test_a_gradient_function_has_to_take_variables():
    w = tf.get_variable("w", initializer=3.0, use_resource=True)
    f = tf.custom_gradient(lambda x: (x * w, lambda dy: dy))
    with pytest.raises(TypeError, match="must accept a keyword argument "
                                        "'variables'"):
        f(tf.constant(1.0))


def test_a_variable_that_is_made_inside_is_behind_a_handle():
    @tf.custom_gradient
    def f(x):
        w = tf.get_variable("w", initializer=3.0, use_resource=False)
        return x * w, lambda dy: dy

    with pytest.raises(TypeError, match="must be `ResourceVariable`s"):
        f(tf.constant(1.0))


def test_each_variable_has_to_have_a_gradient():
    w = tf.get_variable("w", initializer=3.0, use_resource=True)
    f = tf.custom_gradient(
        lambda x: (x * w, lambda dy, variables=None: (dy, [])))
    with pytest.raises(ValueError, match="gradient for each variable"):
        tf.gradients(f(tf.constant(1.0)), w)
