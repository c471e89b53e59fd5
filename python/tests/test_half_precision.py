"""Halves and bfloat16 are trained, summed and computed with.

tests/golden/half_optimizers.json is what tests/golden/record_half_optimizers.py
printed under TensorFlow. That rounds after every operation inside of a kernel,
Sluice once for each kernel: values may differ by some units in the last place.
"""

import importlib.util
import json
import os
import sys

import numpy as np
import pytest

import sluice as tf

_GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                       "tests", "golden")
_ALIAS = os.path.join(os.path.dirname(os.path.dirname(
    os.path.abspath(tf.__file__))), "alias")
# A unit in the last place, of 1.
ULP = {"float16": 2.0 ** -10, "bfloat16": 2.0 ** -7}

with open(os.path.join(_GOLDEN, "half_optimizers.json")) as _f:
    RECORDED = json.load(_f)


@pytest.fixture(scope="module")
def ours():
    before = {name for name in sys.modules if name.startswith("tensorflow")}
    sys.path.insert(0, _ALIAS)
    spec = importlib.util.spec_from_file_location(
        "record_half_optimizers",
        os.path.join(_GOLDEN, "record_half_optimizers.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module.results()
    sys.path.remove(_ALIAS)
    for name in [n for n in sys.modules if n.startswith("tensorflow")]:
        if name not in before:
            del sys.modules[name]


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_training_goes_as_in_tensorflow(ours, name):
    expected, got = RECORDED[name], ours[name]
    assert "error" not in got, got
    if "error" in expected:
        return  # TensorFlow has no kernel; Sluice has.
    ulp = ULP[name.split()[1]]
    if isinstance(expected, list):
        for a, b in zip(got, expected):
            np.testing.assert_allclose(a, b, rtol=ulp)
        return
    assert sorted(got) == sorted(expected)
    for slot in expected:
        np.testing.assert_allclose(got[slot], expected[slot], rtol=6 * ulp,
                                   atol=6 * ulp, err_msg=slot)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def rounded(value, dtype):
    with tf.Session() as session:
        return session.run(tf.cast(tf.cast(
            np.asarray(value, np.float32), dtype), tf.float32))


UNARY = {"Neg": np.negative, "Square": np.square, "Sqrt": np.sqrt,
         "Exp": np.exp, "Abs": np.abs, "Sign": np.sign, "Tanh": np.tanh}
BINARY = {"AddV2": np.add, "Sub": np.subtract, "Mul": np.multiply,
          "RealDiv": np.divide, "Maximum": np.maximum, "Pow": np.power}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_arithmetic_rounds_once(dtype):
    x = rounded([0.1, 1.7, 3.14159], dtype)
    y = rounded([2.5, 0.3, 1.1], dtype)
    narrow = [tf.cast(t, dtype) for t in (x, y)]
    results = {op: getattr(tf.raw_ops, op)(x=narrow[0]) for op in UNARY}
    results.update({op: getattr(tf.raw_ops, op)(x=narrow[0], y=narrow[1])
                    for op in BINARY})
    assert all(t.dtype.name == dtype for t in results.values())
    with tf.Session() as session:
        values = session.run({op: tf.cast(t, tf.float32)
                              for op, t in results.items()})
    for op, function in list(UNARY.items()) + list(BINARY.items()):
        exact = function(x) if op in UNARY else function(x, y)
        np.testing.assert_allclose(values[op], rounded(exact, dtype),
                                   rtol=ULP[dtype] / 2, err_msg=op)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_lose_nothing_on_the_way(dtype):
    # 1 + 4096 times half a unit: a sum of halves would stay at 1.
    part = ULP[dtype] / 2
    x = tf.cast(np.concatenate([[1.0], np.full(4096, part)]), dtype)
    with tf.Session() as session:
        total, mean, product = session.run([tf.cast(t, tf.float32) for t in (
            tf.reduce_sum(x), tf.reduce_mean(x),
            tf.matmul([x], [tf.ones_like(x)], transpose_b=True))])
    expected = rounded(1 + 4096 * part, dtype)
    assert total == expected and product == expected
    assert mean == rounded((1 + 4096 * part) / 4097, dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("resource", [False, True])
def test_a_model_is_trained(dtype, resource):
    w = tf.get_variable("w", [2, 1], dtype, tf.ones_initializer(),
                        use_resource=resource)
    x = tf.cast([[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]], dtype)
    y = tf.cast([[0.0], [3.5], [0.25]], dtype)  # x * (1, -0.5)
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
    step = tf.train.get_or_create_global_step()
    train = tf.train.MomentumOptimizer(0.0625, 0.5).minimize(loss, step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(60):
            session.run(train)
        found = session.run(tf.cast(w, tf.float32))
    np.testing.assert_allclose(found, [[1.0], [-0.5]], atol=0.05)


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_variables_are_updated_in_place(dtype, resource):
    v = tf.get_variable("v", initializer=tf.cast([1.0, 2.0, 4.0], dtype),
                        use_resource=resource)
    with tf.Session() as session:
        session.run(v.initializer)
        for update, expected in (
                (lambda: v.assign_add(tf.cast([1.0, 1.0, 1.0], dtype)),
                 [2.0, 3.0, 5.0]),
                (lambda: v.assign_sub(tf.cast([0.5, 0.5, 0.5], dtype)),
                 [1.5, 2.5, 4.5]),
                (lambda: tf.scatter_add(v, [0, 2, 0],
                                        tf.cast([1.0, 2.0, 4.0], dtype)),
                 [6.5, 2.5, 6.5]),
                (lambda: tf.scatter_sub(v, [1], tf.cast([0.5], dtype)),
                 [6.5, 2.0, 6.5]),
                (lambda: tf.scatter_mul(v, [1], tf.cast([3.0], dtype)),
                 [6.5, 6.0, 6.5])):
            session.run(update())
            assert session.run(tf.cast(v, tf.float32)).tolist() == expected


def test_synchronous_replicas_train_halves():
    w = tf.get_variable("w", [2], tf.float16, tf.zeros_initializer())
    step = tf.train.get_or_create_global_step()
    opt = tf.train.SyncReplicasOptimizer(
        tf.train.GradientDescentOptimizer(1.0), replicas_to_aggregate=2,
        total_num_replicas=1)
    scale = tf.placeholder(tf.float16, [])
    train = opt.apply_gradients([(tf.ones([2], tf.float16) * scale, w)], step)
    hook = opt.make_session_run_hook(is_chief=True, num_tokens=1)
    with tf.train.MonitoredTrainingSession(hooks=[hook],
                                           stop_grace_period_secs=5) as s:
        for k, factor in enumerate((1.0, 2.0, 3.0, 4.0)):
            s.run(train, {scale: factor})
        np.testing.assert_array_equal(s.run(w), [-5.0, -5.0])
