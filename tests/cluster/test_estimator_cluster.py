"""tf.estimator.train_and_evaluate on a cluster given by TF_CONFIG."""

import json
import os

PROGRAM = """
    import sys

    import tensorflow as tf

    tf.logging.set_verbosity(tf.logging.INFO)

    def inputs():
        x = tf.random_uniform([8, 1], seed=1)
        return {"x": x}, 3.0 * x + 1.0

    def model(features, labels, mode):
        w = tf.get_variable("w", [1, 1], initializer=tf.zeros_initializer())
        y = tf.matmul(features["x"], w) + 1.0
        loss = tf.reduce_mean(tf.square(y - labels))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(
            loss, global_step=tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    estimator = tf.estimator.Estimator(model, sys.argv[1],
        tf.estimator.RunConfig(save_checkpoints_steps=100,
                               experimental_max_worker_delay_secs=0))
    result = tf.estimator.train_and_evaluate(
        estimator, tf.estimator.TrainSpec(inputs, max_steps=300),
        tf.estimator.EvalSpec(inputs, steps=2, start_delay_secs=0,
                              throttle_secs=1))
    print("finished", result, flush=True)
"""


def test_every_task_does_its_part(processes, addresses, tmp_path):
    chief, ps, worker = addresses(3)
    cluster = {"chief": [chief], "ps": [ps], "worker": [worker]}
    directory = str(tmp_path / "model")

    def start(job):
        environment = dict(os.environ, TF_CONFIG=json.dumps(
            {"cluster": cluster, "task": {"type": job, "index": 0}}))
        return processes.python(PROGRAM, directory, env=environment)

    tasks = {job: start(job) for job in ("ps", "chief", "worker", "evaluator")}
    for job in ("chief", "worker", "evaluator"):
        tasks[job].expect("finished")
        assert tasks[job].wait() == 0
    # The first and the last; while it waits for a processor, the worker may take
    # all the steps between.
    assert len(tasks["chief"].lines("Saving checkpoints for")) >= 2
    assert tasks["worker"].lines("Saving checkpoints") == []
    # The last checkpoint may be a step or two later than asked for.
    last = tasks["evaluator"].lines("Saving dict for global step")[-1]
    assert 300 <= int(last.split("global step ")[1].split(":")[0]) <= 302
    assert not tasks["ps"].exited(), tasks["ps"].output
    tasks["ps"].kill()
