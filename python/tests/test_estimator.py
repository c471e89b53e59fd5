"""tf.estimator on one machine. Losses are those of TensorFlow 1.15.5."""

import json
import logging
import os

import numpy as np
import pytest

import sluice as tf


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)


def inputs():
    x = tf.random_uniform([8, 1], seed=1)
    return {"x": x}, 3.0 * x + 1.0


def model(features, labels, mode, params, config):
    w = tf.get_variable("w", [1, 1], initializer=tf.zeros_initializer())
    b = tf.get_variable("b", [1], initializer=tf.zeros_initializer())
    y = tf.matmul(features["x"], w) + b
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"y": y})
    loss = tf.reduce_mean(tf.square(y - labels))
    if mode == tf.estimator.ModeKeys.EVAL:
        total = tf.Variable(0.0, trainable=False, name="total",
                            collections=[tf.GraphKeys.LOCAL_VARIABLES])
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={
            "sum": (total + 0.0, tf.assign_add(total, tf.reduce_sum(y)))})
    train = tf.train.GradientDescentOptimizer(params["lr"]).minimize(
        loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


def estimator(directory, **settings):
    settings = dict(dict(tf_random_seed=3, save_checkpoints_steps=50,
                         log_step_count_steps=40), **settings)
    return tf.estimator.Estimator(
        model, str(directory), tf.estimator.RunConfig(**settings),
        params={"lr": 0.1})


@pytest.fixture
def told(monkeypatch):
    """What is logged."""
    lines = []

    class Keep(logging.Handler):
        def emit(self, record):
            lines.append(record.getMessage())

    logger = logging.getLogger("tensorflow")
    handler = Keep()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield lines
    logger.removeHandler(handler)
    logger.setLevel(level)


def test_trains_evaluates_and_predicts_as_tensorflow_does(tmp_path, told):
    e = estimator(tmp_path)
    e.train(inputs, steps=100)
    assert "loss = 5.7424297, step = 1" in told
    saves = [line for line in told if line.startswith("Saving checkpoints")]
    assert saves == ["Saving checkpoints for %d into %s/model.ckpt." %
                     (n, tmp_path) for n in (0, 50, 100)]
    results = e.evaluate(inputs, steps=3)
    assert results["global_step"] == 100
    np.testing.assert_allclose(results["loss"], 0.023513244, rtol=1e-5)
    np.testing.assert_allclose(results["sum"], 56.761642, rtol=1e-6)
    assert "Evaluation [3/3]" in told
    assert e.get_variable_names() == ["b", "global_step", "w"]
    assert e.latest_checkpoint() == str(tmp_path / "model.ckpt-100")
    predictions = e.predict(inputs)
    np.testing.assert_allclose(next(predictions)["y"], [3.1861057], rtol=1e-5)
    predictions.close()
    values = {v.tag: v.simple_value
              for event in tf.train.summary_iterator(
                  str(next((tmp_path / "eval").iterdir())))
              for v in event.summary.value}
    np.testing.assert_allclose(values["loss"], 0.023513244, rtol=1e-5)


def test_max_steps_that_are_saved_need_no_training(tmp_path, told):
    e = estimator(tmp_path)
    e.train(inputs, max_steps=20)
    e.train(inputs, max_steps=20)
    assert "Skipping training since max_steps has already saved." in told


def test_local_training_evaluates_after_checkpoints(tmp_path, told):
    results, exports = tf.estimator.train_and_evaluate(
        estimator(tmp_path), tf.estimator.TrainSpec(inputs, max_steps=110),
        tf.estimator.EvalSpec(inputs, steps=2, throttle_secs=0))
    assert results["global_step"] == 110 and exports == []
    # After 50, 100 and 110, but not after the first save.
    assert sum(line.startswith("Saving dict") for line in told) == 3


def test_a_predict_that_ends_gives_all(tmp_path):
    e = estimator(tmp_path)
    e.train(inputs, steps=1)

    def ten():
        x = tf.train.range_input_producer(10, num_epochs=1, shuffle=False)
        return {"x": tf.to_float(tf.reshape(x.dequeue(), [1, 1]))}

    assert len(list(e.predict(ten))) == 10


def test_a_model_starts_warm(tmp_path):
    estimator(tmp_path / "first").train(inputs, steps=30)
    warm = tf.estimator.Estimator(
        model, str(tmp_path / "second"),
        tf.estimator.RunConfig(save_checkpoints_steps=50), params={"lr": 0.0},
        warm_start_from=str(tmp_path / "first"))
    warm.train(inputs, steps=1)
    assert warm.get_variable_value("w") == pytest.approx(
        estimator(tmp_path / "first").get_variable_value("w"))


def test_metrics_may_be_summaries(tmp_path):
    def pictures(features, labels, mode, params):
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        summary = tf.summary.scalar("inner", w + 2.0)
        return tf.estimator.EstimatorSpec(
            mode, loss=tf.square(w), train_op=tf.assign_add(
                tf.train.get_global_step(), 1),
            eval_metric_ops={"shown": (summary, tf.no_op())})

    e = tf.estimator.Estimator(pictures, str(tmp_path), params={})
    e.train(inputs, steps=1)
    e.evaluate(inputs, steps=1)
    values = {v.tag: v.simple_value
              for event in tf.train.summary_iterator(
                  str(next((tmp_path / "eval").iterdir())))
              for v in event.summary.value}
    assert values["shown/0"] == 2.0


def events(directory):
    """(step, tag) of all that was recorded."""
    return [(event.step, value.tag) for path in directory.glob("events*")
            for event in tf.train.summary_iterator(str(path))
            for value in event.summary.value]


def test_the_loss_is_recorded_every_few_steps(tmp_path):
    estimator(tmp_path, save_summary_steps=2).train(inputs, steps=10)
    assert [step for step, tag in events(tmp_path) if tag == "loss"] == [
        1, 3, 5, 7, 9]


def test_a_program_may_record_the_loss_itself(tmp_path):
    def recording(features, labels, mode, params, config):
        spec = model(features, labels, mode, params, config)
        tf.summary.scalar("loss", spec.loss * 2.0)
        return spec

    tf.estimator.Estimator(recording, str(tmp_path),
                           params={"lr": 0.1}).train(inputs, steps=1)
    assert [tag for _, tag in events(tmp_path) if "loss" in tag] == ["loss"]


def test_the_path_of_what_was_evaluated_has_one_tag(tmp_path):
    e = estimator(tmp_path)
    for _ in range(2):
        e.train(inputs, steps=5)
        e.evaluate(inputs, steps=1)
    paths = [(step, tag) for step, tag in events(tmp_path / "eval")
             if "checkpoint" in tag]
    assert paths == [(5, "checkpoint_path"), (10, "checkpoint_path")]


def test_saving_listeners_need_a_saver(tmp_path):
    e = estimator(tmp_path, save_checkpoints_steps=None)
    with pytest.raises(ValueError, match="There should be a CheckpointSaver"):
        e.train(inputs, steps=1, saving_listeners=[
            tf.train.CheckpointSaverListener()])


@pytest.mark.parametrize("arguments, text", [
    (dict(mode="train", loss=1.0), "Missing train_op."),
    (dict(mode="eval"), "Missing loss."),
    (dict(mode="infer"), "Missing predictions."),
])
def test_a_spec_must_be_complete(arguments, text):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=text):
        tf.estimator.EstimatorSpec(**arguments)


def test_a_loss_is_a_number():
    with tf.Graph().as_default(), \
            pytest.raises(ValueError, match="Loss must be scalar"):
        tf.estimator.EstimatorSpec("eval", loss=tf.constant([1.0, 2.0]))


@pytest.mark.parametrize("function, text", [
    (lambda x: None, "must include features argument"),
    (lambda features: None, "does not include params argument"),
    (lambda features, params, more: None, "not expected args"),
])
def test_model_functions_take_what_is_known(tmp_path, function, text):
    with pytest.raises(ValueError, match=text):
        tf.estimator.Estimator(function, str(tmp_path), params={"lr": 1})


CLUSTER = {"chief": ["c:1"], "ps": ["p:1", "p:2"],
           "worker": ["w:1", "w:2", "w:3"]}


def config(monkeypatch, **environment):
    monkeypatch.setenv("TF_CONFIG", json.dumps(environment))
    return tf.estimator.RunConfig()


@pytest.mark.parametrize("task, number, master, filters", [
    (("chief", 0), 0, "grpc://c:1", ["/job:ps", "/job:chief"]),
    (("worker", 1), 2, "grpc://w:2", ["/job:ps", "/job:worker/task:1"]),
    (("ps", 1), 5, "grpc://p:2",
     ["/job:ps", "/job:worker", "/job:chief", "/job:master"]),
])
def test_tf_config_says_who_we_are(monkeypatch, task, number, master, filters):
    c = config(monkeypatch, cluster=CLUSTER,
               task={"type": task[0], "index": task[1]})
    assert (c.task_type, c.task_id) == task
    assert c.global_id_in_cluster == number
    assert c.master == master
    assert c.is_chief == (task[0] == "chief")
    assert (c.num_ps_replicas, c.num_worker_replicas) == (2, 4)
    assert list(c.session_config.device_filters) == filters


def test_an_evaluator_stands_beside_the_cluster(monkeypatch):
    c = config(monkeypatch, cluster=CLUSTER,
               task={"type": "evaluator", "index": 0})
    assert c.master == "" and c.cluster_spec.as_dict() == {}
    assert not c.is_chief and c.num_worker_replicas == 0


@pytest.mark.parametrize("environment, text", [
    (dict(cluster={"ps": ["a:1"]}, task={"type": "ps", "index": 0}),
     'must have one "chief" node'),
    (dict(cluster={"chief": ["a:1", "b:1"]}), 'only one "chief" node'),
    (dict(cluster=CLUSTER), "task type must be set"),
    (dict(cluster=CLUSTER, task={"type": "worker"}), "task index must be set"),
    (dict(cluster=CLUSTER, task={"type": "worker", "index": 7}),
     "7 is not a valid task_id"),
    (dict(cluster=CLUSTER, task={"type": "x", "index": 0}),
     "x is not a valid task_type"),
    (dict(cluster=CLUSTER, task={"type": "worker", "index": -1}),
     "non-negative"),
    (dict(cluster=dict(CLUSTER, master=["m:1"])), "`chief` is not supported"),
    (dict(task={"type": "chief"}), "task type must be WORKER"),
    (dict(task={"index": 1}), "task index must be 0"),
    (dict(service=3), '"service" is set in TF_CONFIG'),
])
def test_a_wrong_tf_config_is_named(monkeypatch, environment, text):
    with pytest.raises(ValueError, match=text):
        config(monkeypatch, **environment)


@pytest.mark.parametrize("settings, text", [
    (dict(save_checkpoints_steps=1, save_checkpoints_secs=1),
     "cannot be both set"),
    (dict(model_dir=""), "non-empty"),
    (dict(log_step_count_steps=0), "> 0"),
    (dict(tf_random_seed=1.5), "must be integer"),
    (dict(protocol="smoke"), "grpc"),
])
def test_wrong_settings_are_named(settings, text):
    with pytest.raises(ValueError, match=text):
        tf.estimator.RunConfig(**settings)


def test_replace_gives_a_copy():
    first = tf.estimator.RunConfig()
    second = first.replace(save_checkpoints_steps=5)
    assert (first.save_checkpoints_steps, first.save_checkpoints_secs) == (
        None, 600)
    assert (second.save_checkpoints_steps, second.save_checkpoints_secs) == (
        5, None)
    with pytest.raises(ValueError, match="Replacing master is not supported"):
        first.replace(master="x")


def test_slim_trains_to_its_last_step(tmp_path, told):
    slim = tf.contrib.slim
    with tf.Graph().as_default():
        w = tf.get_variable("w", [], initializer=tf.ones_initializer())
        train_op = slim.learning.create_train_op(
            tf.square(w), tf.train.GradientDescentOptimizer(0.1),
            clip_gradient_norm=1.0, gradient_multipliers={"w": 0.5})
        loss = slim.learning.train(train_op, str(tmp_path), number_of_steps=5,
                                   log_every_n_steps=2, trace_every_n_steps=4)
    assert loss < 1.0
    assert "Finished training! Saving model to disk." in told
    assert tf.train.load_variable(str(tmp_path), "w") == pytest.approx(
        0.9 ** 5, rel=1e-5)
    assert any(name.startswith("tf_trace-") for name in os.listdir(tmp_path))


def test_checkpoints_are_evaluated_as_they_come(tmp_path):
    with tf.Graph().as_default():
        w = tf.get_variable("w", [], initializer=tf.ones_initializer())
        tf.train.get_or_create_global_step()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            tf.train.Saver().save(session, str(tmp_path / "model.ckpt-1"))
    with tf.Graph().as_default():
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        tf.train.get_or_create_global_step()
        count = tf.Variable(0.0, collections=[tf.GraphKeys.LOCAL_VARIABLES])
        values = tf.contrib.training.evaluate_repeatedly(
            str(tmp_path), eval_ops=tf.assign_add(count, w),
            final_ops={"sum": count + 0.0}, max_number_of_evaluations=1,
            hooks=[tf.contrib.training.StopAfterNEvalsHook(4)])
    assert values == {"sum": 4.0}
