"""Optimizers, schedules and moving averages give TensorFlow 1.15's numbers.

tests/golden/optimizers has 20 steps of every configuration, of dense and
sparse gradients, ref and resource variables, in single and double precision.
"""

import builtins
import json
import os

import numpy as np
import pytest

import sluice as tf

_HERE = os.path.dirname(os.path.abspath(__file__))
_GOLDEN = os.path.join(_HERE, "..", "..", "tests", "golden", "optimizers")

with open(os.path.join(_GOLDEN, "index.json")) as _f:
    INDEX = json.load(_f)
CASES = [(name, variant) for name in sorted(INDEX)
         for variant in sorted(INDEX[name].get("variants", ()))]
# TensorFlow forgets to cast the rate of these to the variable's type.
NO_ERROR_HERE = ("proximal_adagrad", "proximal_sgd", "proximal_sgd_plain")


def load(name):
    return np.load(os.path.join(_GOLDEN, name + ".npz"))


def same(ours, theirs):
    tolerance = 1e-11 if theirs.dtype == np.float64 else 2e-6
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.fixture(autouse=True)
def fresh_graph():
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


def optimizer_class(name):
    module = tf.contrib.opt if name.startswith("contrib_") else tf.train
    return getattr(module, INDEX[name]["class"])


def _check_doubles_are_taken(name, variant):
    density, kind, dtype = variant.split("_")
    v = tf.get_variable("v", [2], dtype, tf.ones_initializer(),
                        use_resource=kind == "resource")
    grad = tf.constant([1.0, 1.0], dtype)
    if density == "sparse":
        grad = tf.IndexedSlices(grad, tf.constant([0, 1]), tf.constant([2]))
    train = optimizer_class(name)(**INDEX[name]["args"]).apply_gradients(
        [(grad, v)])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        assert (sess.run(v) < 1).all()


@pytest.mark.parametrize("name,variant", CASES)
def test_twenty_steps_of(name, variant):
    density, kind, dtype = variant.split("_")
    expected = INDEX[name]["variants"][variant]
    if "error" in expected and name in NO_ERROR_HERE:
        return _check_doubles_are_taken(name, variant)
    inputs, golden = load("inputs"), load(name)
    with tf.variable_scope("model"):
        v = tf.get_variable(
            "v", initializer=inputs[density + "_init"].astype(dtype),
            use_resource=kind == "resource")
    if density == "dense":
        grad = values = tf.placeholder(dtype, [5])
        feeds = [{values: g} for g in inputs["dense_grads"].astype(dtype)]
    else:
        values = tf.placeholder(dtype, [None, 2])
        indices = tf.placeholder(tf.int64, [None])
        grad = tf.IndexedSlices(values, indices, tf.constant([6, 2]))
        feeds = [{values: g, indices: i} for g, i in
                 zip(inputs["sparse_values"].astype(dtype),
                     inputs["sparse_indices"])]
    step = None
    arguments = dict(INDEX[name]["args"])
    if name == "adagrad_da":
        step = arguments["global_step"] = tf.train.get_or_create_global_step()
    opt = optimizer_class(name)(**arguments)
    if "error" in expected:
        kind, message = expected["error"].split(": ", 1)
        with pytest.raises(getattr(builtins, kind)) as raised:
            opt.apply_gradients([(grad, v)], step)
        assert str(raised.value) == message
        return
    train = opt.apply_gradients([(grad, v)], step)
    assert [train.type, train.name] == expected["train_op"]
    assert [x.name for x in tf.global_variables()] == \
        expected["variable_order"]
    assert {s: opt.get_slot(v, s).name for s in opt.get_slot_names()} == \
        expected["slots"]
    update = train.name + "/update"
    assert sorted({op.type for op in tf.get_default_graph().get_operations()
                   if op.name.startswith(update) and op.type != "Const"}) == \
        expected["update_ops"]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for feed, values in zip(feeds, golden[variant + ".values"]):
            sess.run(train, feed)
            same(sess.run(v), values)
        for other in tf.global_variables()[1:]:
            same(sess.run(other), golden[variant + ".final." + other.name])


@pytest.mark.parametrize("call", [k for k in load("schedules").files
                                  if k != "steps"])
def test_the_schedule(call):
    golden = load("schedules")
    step = tf.placeholder(tf.int64, [])
    rate = eval("tf.train." + call, {"tf": tf, "step": step})
    with tf.Session() as sess:
        same(np.array([sess.run(rate, {step: s}) for s in golden["steps"]]),
             golden[call])


AVERAGES = {
    "plain": ({}, False), "num_updates": ({"num_updates": True}, False),
    "zero_debias_tensor": ({"zero_debias": True}, True),
    "plain_tensor": ({}, True),
    "zero_debias_variable": ({"zero_debias": True}, False),
}


@pytest.mark.parametrize("kind", ["ref", "resource"])
@pytest.mark.parametrize("name", sorted(AVERAGES))
def test_the_moving_average(name, kind):
    arguments, of_tensor = AVERAGES[name]
    resource = kind == "resource"
    x = tf.get_variable("x", initializer=np.float32([1, -2, 0]),
                        use_resource=resource)
    n = tf.get_variable("n", initializer=0, trainable=False,
                        use_resource=resource)
    grow = tf.group(x.assign_add([1, .5, -.25]), n.assign_add(1))
    target = tf.multiply(x, 2, name="target") if of_tensor else x
    if "num_updates" in arguments:
        arguments = {"num_updates": n}
    ema = tf.train.ExponentialMovingAverage(0.9, **arguments)
    apply = ema.apply([target])
    average = ema.average(target)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        rows = [sess.run(average)]
        for _ in range(15):
            sess.run(grow)
            sess.run(apply)
            rows.append(sess.run(average))
        expected = INDEX["ExponentialMovingAverage"]["%s_%s" % (name, kind)]
        assert [v.name for v in tf.global_variables()] == \
            [v[0] for v in expected["variables"]]
        for variable, (_, value) in zip(tf.global_variables(),
                                        expected["variables"]):
            same(sess.run(variable), np.array(value, np.float32))
    assert ema.average_name(target) == expected["average_name"]
    assert [v.name for v in tf.moving_average_variables()] == \
        expected["collection_moving_average_variables"]
    same(np.array(rows), load("moving_averages")["%s_%s" % (name, kind)])


def test_assign_moving_average():
    from sluice.training import moving_averages
    v = tf.Variable([0.0, 0.0], name="v")
    value = tf.placeholder(tf.float32, [2])
    debiased = moving_averages.assign_moving_average(v, value, 0.9)
    v2 = tf.Variable([1.0, 0.0], name="v2")
    plain = moving_averages.assign_moving_average(v2, value, 0.9,
                                                  zero_debias=False)
    assert [x.name for x in tf.global_variables()] == \
        INDEX["assign_moving_average"]["variables"]
    golden = load("moving_averages")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        rows = [sess.run([debiased, plain], {value: [i + 1, -i]})
                for i in range(6)]
    same(np.array([r[0] for r in rows]),
         golden["assign_moving_average_zero_debias"])
    same(np.array([r[1] for r in rows]),
         golden["assign_moving_average_plain"])
