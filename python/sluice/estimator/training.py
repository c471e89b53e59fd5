"""train_and_evaluate: one program for every task of a cluster."""

import collections
import time

from sluice.estimator import estimator as estimator_lib
from sluice.estimator import run_config
from sluice.platform import tf_logging as logging
from sluice.training import basic_session_run_hooks as basic_hooks
from sluice.training import checkpoint_management
from sluice.training import server_lib
from sluice.training import session_run_hook

TaskType = run_config.TaskType
# How long a worker waits for the chief to make the variables.
_SECONDS_A_WORKER = 5
_MOST_SECONDS = 60


def _check(condition, text, *arguments):
    if not condition:
        raise ValueError(text.format(*arguments))


def _checked(input_fn, hooks):
    if not callable(input_fn):
        raise TypeError("`input_fn` must be callable, given: {}".format(
            input_fn))
    hooks = tuple(hooks or [])
    for hook in hooks:
        if not isinstance(hook, session_run_hook.SessionRunHook):
            raise TypeError("All hooks must be `SessionRunHook` instances, "
                            "given: {}".format(hook))
    return hooks


class TrainSpec(collections.namedtuple(
        "TrainSpec", ["input_fn", "max_steps", "hooks"])):
    """What to train with."""

    def __new__(cls, input_fn, max_steps=None, hooks=None):
        hooks = _checked(input_fn, hooks)
        _check(max_steps is None or max_steps > 0,
               "Must specify max_steps > 0, given: {}", max_steps)
        return super().__new__(cls, input_fn, max_steps, hooks)


class EvalSpec(collections.namedtuple("EvalSpec", [
        "input_fn", "steps", "name", "hooks", "exporters", "start_delay_secs",
        "throttle_secs"])):
    """What to evaluate with."""

    def __new__(cls, input_fn, steps=100, name=None, hooks=None,
                exporters=None, start_delay_secs=120, throttle_secs=600):
        hooks = _checked(input_fn, hooks)
        _check(steps is None or steps > 0,
               "Must specify steps > 0, given: {}", steps)
        if name is not None and not isinstance(name, str):
            raise TypeError("`name` must be string, given: {}".format(name))
        if exporters:
            raise NotImplementedError(
                "exporters: saved models are not part of Sluice yet; restore "
                "the checkpoint instead.")
        _check(start_delay_secs >= 0,
               "Must specify start_delay_secs >= 0, given: {}",
               start_delay_secs)
        _check(throttle_secs >= 0, "Must specify throttle_secs >= 0, given: {}",
               throttle_secs)
        return super().__new__(cls, input_fn, steps, name, hooks, (),
                               start_delay_secs, throttle_secs)


def train_and_evaluate(estimator, train_spec, eval_spec):
    """Does what this process's task is for (TF_CONFIG).

    Without a cluster: trains, evaluating on the way, and returns the last
    metrics and an empty list (of exports).
    """
    for name, value, kind in (
            ("estimator", estimator, estimator_lib.Estimator),
            ("train_spec", train_spec, TrainSpec),
            ("eval_spec", eval_spec, EvalSpec)):
        if not isinstance(value, kind):
            raise TypeError("`%s` must have type `tf.estimator.%s`. Got: %s" %
                            (name, kind.__name__, type(value)))
    config = estimator.config
    logging.info("Not using Distribute Coordinator.")
    if config.task_type == TaskType.EVALUATOR and config.task_id > 0:
        raise ValueError(
            "For distributed training, there can only be one `evaluator` task "
            "(with task id 0).  Given task id {}".format(config.task_id))
    if not config.cluster_spec.as_dict() and \
            config.task_type != TaskType.EVALUATOR:
        logging.info("Running training and evaluation locally "
                     "(non-distributed).")
        return _run_local(estimator, train_spec, eval_spec)
    tasks = {
        TaskType.CHIEF: _run_trainer, TaskType.WORKER: _run_trainer,
        TaskType.MASTER: _run_master, TaskType.PS: _run_ps,
        TaskType.EVALUATOR: _run_evaluator,
    }
    if config.task_type not in tasks:
        raise ValueError("Task type {} is not supported. Supported task types "
                         "are {}".format(config.task_type, sorted(tasks)))
    return tasks[config.task_type](estimator, train_spec, eval_spec)


class _EvaluateOnSave(basic_hooks.CheckpointSaverListener):
    """Evaluates after saves, but not after the first of this run and not more
    often than the spec allows."""

    def __init__(self, estimator, spec):
        self._estimator = estimator
        self._spec = spec
        self._first = True
        self._last = None
        self.result = None

    def after_save(self, session, global_step_value):
        if self._first:
            self._first = False
            return
        if self._last is not None and \
                time.monotonic() - self._last < self._spec.throttle_secs:
            logging.info("Skip the current checkpoint eval due to throttle "
                         "secs (%s secs).", self._spec.throttle_secs)
            return
        self._evaluate()

    def end(self, session, global_step_value):
        # The last checkpoint counts whatever the throttle says.
        latest = self._estimator.latest_checkpoint()
        if latest is not None and latest != self._evaluated:
            self._evaluate()

    _evaluated = None

    def _evaluate(self):
        spec = self._spec
        self._evaluated = self._estimator.latest_checkpoint()
        self.result = self._estimator.evaluate(
            spec.input_fn, steps=spec.steps, hooks=spec.hooks, name=spec.name)
        self._last = time.monotonic()


def _train_with_evaluation(estimator, train_spec, eval_spec):
    listener = _EvaluateOnSave(estimator, eval_spec)
    estimator.train(train_spec.input_fn, hooks=train_spec.hooks,
                    max_steps=train_spec.max_steps,
                    saving_listeners=[listener])
    if listener.result is None:
        logging.warning("There was no new checkpoint after the training. "
                        "Eval status: missing checkpoint")
    return listener.result, []


def _run_local(estimator, train_spec, eval_spec):
    config = estimator.config
    logging.info(
        "Start train and evaluate loop. The evaluate will happen after every "
        "checkpoint. Checkpoint frequency is determined based on RunConfig "
        "arguments: save_checkpoints_steps {} or save_checkpoints_secs {}."
        .format(config.save_checkpoints_steps, config.save_checkpoints_secs))
    return _train_with_evaluation(estimator, train_spec, eval_spec)


def _start_server(config):
    if sum(map(len, config.cluster_spec.as_dict().values())) == 1:
        logging.info("Skip starting Tensorflow server as there is only one "
                     "node in the cluster.")
        return None
    _check(config.master,
           "Could not start server; be sure to specify master in RunConfig or "
           "set the TF_CONFIG environment variable.")
    logging.info("Start Tensorflow server.")
    return server_lib.Server(
        config.cluster_spec, job_name=config.task_type,
        task_index=config.task_id, config=config.session_config,
        protocol=config.protocol)


def _run_trainer(estimator, train_spec, eval_spec):
    config = estimator.config
    server = _start_server(config)
    if config.task_type == TaskType.WORKER:
        most = config.experimental_max_worker_delay_secs
        most = _MOST_SECONDS if most is None else most
        delay = min(most, _SECONDS_A_WORKER * (config.task_id + 1))
        if delay > 0:
            logging.info("Waiting %d secs before starting training.", delay)
            time.sleep(delay)
    estimator.train(train_spec.input_fn, hooks=train_spec.hooks,
                    max_steps=train_spec.max_steps)
    del server  # It goes on serving; this only says that it lived until here.
    return None


def _run_master(estimator, train_spec, eval_spec):
    server = _start_server(estimator.config)
    result = _train_with_evaluation(estimator, train_spec, eval_spec)
    del server
    return result


def _run_ps(estimator, train_spec, eval_spec):
    _start_server(estimator.config).join()


def _run_evaluator(estimator, train_spec, eval_spec):
    """Evaluates new checkpoints until training has reached its last step."""
    if eval_spec.start_delay_secs:
        logging.info("Waiting %f secs before starting eval.",
                     eval_spec.start_delay_secs)
        time.sleep(eval_spec.start_delay_secs)
    evaluated = None
    result = None
    while True:
        began = time.monotonic()
        latest = checkpoint_management.latest_checkpoint(estimator.model_dir)
        if latest is not None and latest != evaluated:
            result = estimator.evaluate(
                eval_spec.input_fn, steps=eval_spec.steps,
                hooks=eval_spec.hooks, checkpoint_path=latest,
                name=eval_spec.name)
            evaluated = latest
            step = int(result["global_step"])
            if train_spec.max_steps and step >= train_spec.max_steps:
                logging.info("Exiting evaluation, global_step=%s >= train "
                             "max_steps=%s", step, train_spec.max_steps)
                return result, []
        # At least a second, so that an empty directory is not polled hot.
        pause = max(eval_spec.throttle_secs - (time.monotonic() - began), 1)
        logging.info("Waiting %f secs before starting next eval run.", pause)
        time.sleep(pause)
