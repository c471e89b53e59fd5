"""Optimizers whose workers have variables of their own train as TensorFlow's.

tests/golden/averaging.json is what tests/golden/record_averaging.py printed
there: names, devices and the values after each step of two workers.
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

with open(os.path.join(_GOLDEN, "averaging.json")) as _f:
    RECORDED = json.load(_f)


@pytest.fixture(scope="module")
def recorder():
    before = {name for name in sys.modules if name.startswith("tensorflow")}
    sys.path.insert(0, _ALIAS)
    spec = importlib.util.spec_from_file_location(
        "record_averaging", os.path.join(_GOLDEN, "record_averaging.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(_ALIAS)
    for name in [n for n in sys.modules if n.startswith("tensorflow")]:
        if name not in before:
            del sys.modules[name]


def flat(value):
    return [x for v in value for x in flat(v)] if isinstance(value, list) \
        else [value]


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_values_and_names_are_tensorflows(recorder, name):
    ours, theirs = recorder.PROGRAMS[name](), RECORDED[name]
    assert ours["names"] == theirs["names"]
    assert ours["start"] == theirs["start"]
    for step, (a, b) in enumerate(zip(ours["steps"], theirs["steps"])):
        np.testing.assert_allclose(flat(a), flat(b), rtol=2e-6, atol=2e-6,
                                   err_msg="step %d" % step)
    assert len(ours["steps"]) == len(theirs["steps"])


def trained(kind, graph, **options):
    """(optimizer, variable) with one variable v and a gradient of ones."""
    contrib = tf.contrib.opt
    getter = getattr(contrib, kind + "CustomGetter")(worker_device="")
    with tf.variable_scope("", custom_getter=getter):
        v = tf.get_variable("v", initializer=[1.0, 2.0])
    sgd = tf.train.GradientDescentOptimizer(0.5)
    if kind == "ModelAverage":
        opt = contrib.ModelAverageOptimizer(sgd, 1, True, getter, **options)
    else:
        opt = getattr(contrib, kind + "Optimizer")(
            sgd, num_worker=1, **dict(
                {"ElasticAverage": {"ea_custom_getter": getter},
                 "AGN": {"custom_getter": getter}}[kind], **options))
    return opt, v


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def test_what_is_missing_is_named(graph):
    step = tf.train.get_or_create_global_step()
    opt, v = trained("ModelAverage", graph)
    with pytest.raises(ValueError, match="Global step is required"):
        opt.apply_gradients([(tf.ones([2]), v)])
    with pytest.raises(ValueError, match="Must supply at least one variable"):
        opt.apply_gradients([], step)
    with pytest.raises(ValueError, match="before using the hook"):
        opt.make_session_run_hook().begin()


@pytest.mark.parametrize("kind, options", [
    ("ModelAverage", {"interval_steps": 2}),
    ("ElasticAverage", {"communication_period": 2}),
    ("AGN", {"communication_period": 2})])
def test_a_worker_goes_on_from_the_centers_of_a_checkpoint(
        graph, tmp_path, kind, options):
    step = tf.train.get_or_create_global_step()
    opt, v = trained(kind, graph, **options)
    train = opt.apply_gradients([(tf.ones([2]), v)], step)
    hook = opt.make_session_run_hook() if kind == "ModelAverage" else \
        opt.make_session_run_hook(True, 0)
    center = [c for c in tf.global_variables()
              if c.op.name == "global_center_variable/v"][0]

    def session():
        return tf.train.MonitoredTrainingSession(
            checkpoint_dir=str(tmp_path), hooks=[hook],
            save_summaries_steps=None, save_summaries_secs=None,
            log_step_count_steps=0)
    with session() as s:
        for _ in range(4):
            s.run(train)
        before = s.run(center)
        assert s.run(step) == 2
    assert not np.array_equal(before, [1.0, 2.0])
    with session() as s:
        np.testing.assert_array_equal(s.run(v), before)
        np.testing.assert_array_equal(s.run(center), before)


def test_centers_are_saved_under_the_names_of_variables(graph, tmp_path):
    opt, v = trained("ElasticAverage", graph, communication_period=1)
    train = opt.apply_gradients([(tf.ones([2]), v)])
    saver = opt.swapping_saver()
    center = opt._global_map[v]
    with tf.Session() as s:
        s.run([tf.global_variables_initializer(),
               tf.local_variables_initializer()])
        s.run(train)
        path = saver.save(s, str(tmp_path / "m"))
        saved = tf.train.load_variable(path, "v")
        np.testing.assert_array_equal(saved, s.run(center))
        assert not np.array_equal(saved, s.run(v))


def test_gradients_of_rows_are_summed(graph):
    opt, v = trained("AGN", graph, communication_period=2)
    rows = tf.IndexedSlices(tf.constant([1.0, 3.0]), tf.constant([0, 0]),
                            tf.constant([2]))
    train = opt.apply_gradients([(rows, v)])
    with tf.Session() as s:
        s.run([tf.global_variables_initializer(),
               tf.local_variables_initializer()])
        s.run(opt.get_init_op(0))
        s.run(train)
        assert s.run(v).tolist() == [-1.0, 2.0]
        s.run(train)
        assert s.run(v).tolist() == [-1.0, 2.0]  # 1 - 0.5 * mean(4, 4)


def test_a_variable_is_shared_by_reuse(graph):
    getter = tf.contrib.opt.ElasticAverageCustomGetter(worker_device="")
    with tf.variable_scope("a", custom_getter=getter):
        v = tf.get_variable("v", [2])
        plain = tf.get_variable("plain", [2], trainable=False)
    with tf.variable_scope("a", custom_getter=getter, reuse=True):
        assert tf.get_variable("v", [2]) is v
    assert [x.op.name for x in tf.global_variables()] == [
        "global_center_variable/a/v", "a/plain"]
    assert plain in tf.global_variables()
