"""Estimators: a model function, a directory, and ways to run them."""

import collections
import copy
import inspect
import os
import tempfile

from sluice.platform.lazy_numpy import np

from sluice.estimator import model_fn as model_fn_lib
from sluice.estimator import run_config
from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework import protos
from sluice.ops import control_flow_ops
from sluice.ops import init_ops
from sluice.ops import math_ops
from sluice.ops import random_ops
from sluice.ops import state_ops
from sluice.ops import variable_scope
from sluice.platform import gfile
from sluice.platform import tf_logging as logging
from sluice.summary import summary as summary_ops
from sluice.training import basic_session_run_hooks as basic_hooks
from sluice.training import checkpoint_management
from sluice.training import checkpoint_utils
from sluice.training import device_setter
from sluice.training import evaluation
from sluice.training import monitored_session
from sluice.training import saver as saver_lib
from sluice.training import session_run_hook
from sluice.training import training_util

ModeKeys = model_fn_lib.ModeKeys
_GraphKeys = ops.GraphKeys
_MODEL_FN_ARGS = {"features", "labels", "mode", "params", "self", "config"}

WarmStartSettings = collections.namedtuple("WarmStartSettings", [
    "ckpt_to_initialize_from", "vars_to_warm_start",
    "var_name_to_vocab_info", "var_name_to_prev_var_name"])
WarmStartSettings.__new__.__defaults__ = (".*", None, None)


class Estimator(object):
    """Trains and evaluates the model that `model_fn` builds."""

    def __init__(self, model_fn, model_dir=None, config=None, params=None,
                 warm_start_from=None):
        if model_fn is None:
            raise ValueError("model_fn must be provided to Estimator.")
        _check_model_fn(model_fn, params)
        self._model_fn = model_fn
        self._params = copy.deepcopy(params or {})
        if isinstance(warm_start_from, str):
            warm_start_from = WarmStartSettings(warm_start_from)
        elif warm_start_from is not None and not isinstance(
                warm_start_from, WarmStartSettings):
            raise ValueError("warm_start_from must be a string or a "
                             "WarmStartSettings, instead got {}".format(
                                 type(warm_start_from)))
        self._warm_start = warm_start_from
        self._config = _config_with_directory(config, model_dir)
        self._model_dir = self._config.model_dir
        logging.info("Using config: %s", str(vars(self._config)))
        self._device_fn = self._config.device_fn or _device_fn(self._config)

    # ---- What it is ----

    @property
    def model_dir(self):
        return self._model_dir

    @property
    def config(self):
        return copy.deepcopy(self._config)

    @property
    def params(self):
        return copy.deepcopy(self._params)

    @property
    def model_fn(self):
        def public(features, labels, mode, config):
            return self._call_model_fn(features, labels, mode, config)
        return public

    def get_variable_value(self, name):
        self._check_checkpoint()
        return checkpoint_utils.load_variable(self._model_dir, name)

    def get_variable_names(self):
        self._check_checkpoint()
        return [name for name, _ in
                checkpoint_utils.list_variables(self._model_dir)]

    def latest_checkpoint(self):
        return checkpoint_management.latest_checkpoint(self._model_dir)

    def eval_dir(self, name=None):
        return os.path.join(self._model_dir,
                            "eval" if not name else "eval_" + name)

    def _check_checkpoint(self):
        if self.latest_checkpoint() is None:
            raise ValueError("Could not find trained model in model_dir: {}."
                             .format(self._model_dir))

    # ---- Training ----

    def train(self, input_fn, hooks=None, steps=None, max_steps=None,
              saving_listeners=None):
        """Trains for `steps` more steps or until `max_steps`; self."""
        if self._config.task_type in (run_config.TaskType.EVALUATOR,
                                      run_config.TaskType.PS):
            raise ValueError(
                "Train has been called wrong configuration. Please use "
                "tf.estimator.train_and_evaluate which calls proper API "
                "according to given configuration. Current configuration: "
                "{}.".format(self._config))
        if steps is not None and max_steps is not None:
            raise ValueError("Can not provide both steps and max_steps.")
        _check_positive("steps", steps)
        _check_positive("max_steps", max_steps)
        if max_steps is not None:
            start = _step_of_latest(self._model_dir)
            if start is not None and max_steps <= start:
                logging.info("Skipping training since max_steps has already "
                             "saved.")
                return self
        hooks = _checked_hooks(hooks)
        if steps is not None or max_steps is not None:
            hooks.append(basic_hooks.StopAtStepHook(steps, max_steps))
        loss = self._train_model(input_fn, hooks, list(saving_listeners or []))
        logging.info("Loss for final step: %s.", loss)
        return self

    def _train_model(self, input_fn, hooks, listeners):
        for listener in listeners:
            if not isinstance(listener, basic_hooks.CheckpointSaverListener):
                raise TypeError(
                    "saving_listeners must be a list of "
                    "CheckpointSaverListener, given: {}".format(listener))
        with ops.Graph().as_default() as graph, graph.device(self._device_fn):
            random_ops.set_random_seed(self._config.tf_random_seed)
            step = training_util.create_global_step(graph)
            # Hooks read the step through this; it must be made before them.
            training_util._get_or_create_global_step_read(graph)
            features, labels = self._inputs(input_fn, ModeKeys.TRAIN)
            spec = self._call_model_fn(features, labels, ModeKeys.TRAIN,
                                       self.config)
            if self._warm_start is not None:
                from sluice.training import warm_starting_util
                warm_starting_util.warm_start(*self._warm_start)
            return self._run_training(spec, step, hooks, listeners)

    def _run_training(self, spec, step, hooks, listeners):
        config = self._config
        _record_loss(spec.loss)
        ops.add_to_collection(_GraphKeys.LOSSES, spec.loss)
        _set_default_saver(spec.scaffold, config)
        hooks = list(hooks) + [
            basic_hooks.NanTensorHook(spec.loss),
            basic_hooks.LoggingTensorHook(
                {"loss": spec.loss, "step": step},
                every_n_iter=config.log_step_count_steps)]
        hooks += spec.training_hooks
        chief_hooks = list(spec.training_chief_hooks)
        saves = [h for h in hooks + chief_hooks
                 if isinstance(h, basic_hooks.CheckpointSaverHook)]
        if not saves and (config.save_checkpoints_secs or
                          config.save_checkpoints_steps):
            saves = [basic_hooks.CheckpointSaverHook(
                self._model_dir, save_secs=config.save_checkpoints_secs,
                save_steps=config.save_checkpoints_steps,
                scaffold=spec.scaffold)]
            chief_hooks = saves + chief_hooks
        if listeners:
            if not saves:
                raise ValueError(
                    "There should be a CheckpointSaverHook to use "
                    "saving_listeners. Please set one of the "
                    "RunConfig.save_checkpoints_steps or "
                    "RunConfig.save_checkpoints_secs.")
            saves[0]._listeners.extend(listeners)
        loss = None
        with monitored_session.MonitoredTrainingSession(
                master=config.master, is_chief=config.is_chief,
                checkpoint_dir=self._model_dir, scaffold=spec.scaffold,
                hooks=hooks, chief_only_hooks=chief_hooks,
                save_checkpoint_secs=0,
                save_summaries_steps=config.save_summary_steps,
                config=config.session_config,
                max_wait_secs=config.session_creation_timeout_secs,
                log_step_count_steps=config.log_step_count_steps) as session:
            while not session.should_stop():
                _, loss = session.run([spec.train_op, spec.loss])
        return loss

    # ---- Evaluation and prediction ----

    def evaluate(self, input_fn, steps=None, hooks=None, checkpoint_path=None,
                 name=None):
        """A dict of the metrics' values, `loss` and `global_step`."""
        _check_positive("steps", steps)
        hooks = _checked_hooks(hooks)
        path = checkpoint_path or self.latest_checkpoint()
        if not path:
            logging.info("Could not find trained model in model_dir: {}, "
                         "running initialization to evaluate.".format(
                             self._model_dir))
        hooks.append(evaluation.StopAfterNEvalsHook(steps))
        directory = self.eval_dir(name)
        with ops.Graph().as_default() as graph, graph.device(self._device_fn):
            random_ops.set_random_seed(self._config.tf_random_seed)
            step = training_util.create_global_step(graph)
            features, labels = self._inputs(input_fn, ModeKeys.EVAL)
            spec = self._call_model_fn(features, labels, ModeKeys.EVAL,
                                       self.config)
            update, values = _metric_ops(spec, step)
            hooks += spec.evaluation_hooks
            results = evaluation.evaluate_once(
                path, self._config.evaluation_master, spec.scaffold, update,
                final_ops=values, hooks=hooks,
                config=self._config.session_config)
            _write_results(directory, results, path)
        return results

    def predict(self, input_fn, predict_keys=None, hooks=None,
                checkpoint_path=None, yield_single_examples=True):
        """Yields predictions until the input ends."""
        hooks = _checked_hooks(hooks)
        path = checkpoint_path or self.latest_checkpoint()
        if not path:
            logging.info("Could not find trained model in model_dir: {}, "
                         "running initialization to predict.".format(
                             self._model_dir))
        with ops.Graph().as_default() as graph, graph.device(self._device_fn):
            random_ops.set_random_seed(self._config.tf_random_seed)
            training_util.create_global_step(graph)
            features, _ = self._inputs(input_fn, ModeKeys.PREDICT)
            spec = self._call_model_fn(features, None, ModeKeys.PREDICT,
                                       self.config)
            predictions = _wanted(spec.predictions, predict_keys)
            hooks += spec.prediction_hooks
            creator = monitored_session.ChiefSessionCreator(
                checkpoint_filename_with_path=path,
                master=self._config.master, scaffold=spec.scaffold,
                config=self._config.session_config)
            with monitored_session.MonitoredSession(
                    session_creator=creator, hooks=hooks) as session:
                while not session.should_stop():
                    batch = session.run(predictions)
                    if not yield_single_examples:
                        yield batch
                    elif isinstance(batch, dict):
                        for i in range(_batch_length(batch)):
                            yield {key: value[i]
                                   for key, value in batch.items()}
                    else:
                        for value in batch:
                            yield value

    # ---- The model ----

    def _inputs(self, input_fn, mode):
        """(features, labels) of what the input function returns."""
        possible = {"mode": mode, "params": self.params,
                    "config": self.config}
        wanted = _arguments(input_fn)
        with ops.device("/cpu:0"):
            result = input_fn(**{name: value
                                 for name, value in possible.items()
                                 if name in wanted})
        if isinstance(result, (list, tuple)):
            if len(result) != 2:
                raise ValueError(
                    "input_fn should return (features, labels) as a len 2 "
                    "tuple.")
            return result
        return result, None

    def _call_model_fn(self, features, labels, mode, config):
        possible = {"labels": labels, "mode": mode, "params": self.params,
                    "config": config}
        wanted = _arguments(self._model_fn)
        if "labels" not in wanted:
            if labels is not None:
                raise ValueError("model_fn does not take labels, but input_fn "
                                 "returns labels.")
            possible.pop("labels")
        logging.info("Calling model_fn.")
        spec = self._model_fn(features=features,
                              **{name: value
                                 for name, value in possible.items()
                                 if name in wanted})
        logging.info("Done calling model_fn.")
        if not isinstance(spec, model_fn_lib.EstimatorSpec):
            raise ValueError("model_fn should return an EstimatorSpec.")
        return spec


def _arguments(function):
    return tuple(inspect.signature(function).parameters)


def _check_model_fn(model_fn, params):
    arguments = set(_arguments(model_fn))
    if "features" not in arguments:
        raise ValueError("model_fn (%s) must include features argument." %
                         model_fn)
    if params is not None and "params" not in arguments:
        raise ValueError("model_fn (%s) does not include params argument, but "
                         "params (%s) is passed to Estimator." %
                         (model_fn, params))
    unknown = arguments - _MODEL_FN_ARGS
    if unknown:
        raise ValueError("model_fn (%s) has following not expected args: %s" %
                         (model_fn, sorted(unknown)))


def _config_with_directory(config, model_dir):
    if config is None:
        config = run_config.RunConfig()
        logging.info("Using default config.")
    if not isinstance(config, run_config.RunConfig):
        raise ValueError("config must be an instance of `RunConfig`, but "
                         "provided %s." % config)
    if model_dir is not None and config.model_dir not in (None, model_dir):
        raise ValueError(
            "`model_dir` are set both in constructor and `RunConfig`, but with "
            "different values. In constructor: '{}', in `RunConfig`: '{}' "
            .format(model_dir, config.model_dir))
    directory = model_dir or config.model_dir
    if directory is None:
        directory = tempfile.mkdtemp()
        logging.warning("Using temporary folder as model directory: %s",
                        directory)
    return config.replace(model_dir=directory)


def _device_fn(config):
    """Variables on the ps, all else on this worker."""
    if config.num_ps_replicas == 0:
        return None
    return device_setter.replica_device_setter(
        ps_tasks=config.num_ps_replicas,
        worker_device="/job:%s/task:%d" % (config.task_type, config.task_id),
        merge_devices=True, cluster=config.cluster_spec)


def _check_positive(name, value):
    if value is not None and value <= 0:
        raise ValueError("Must specify {} > 0, given: {}".format(name, value))


def _checked_hooks(hooks):
    hooks = list(hooks or [])
    for hook in hooks:
        if not isinstance(hook, session_run_hook.SessionRunHook):
            raise TypeError("Hooks must be a SessionRunHook, given: {}".format(
                hook))
    return hooks


def _step_of_latest(directory):
    path = checkpoint_management.latest_checkpoint(directory)
    if path is None:
        return None
    return int(checkpoint_utils.load_variable(path, _GraphKeys.GLOBAL_STEP))


def _set_default_saver(scaffold, config):
    if scaffold.saver or ops.get_collection(_GraphKeys.SAVERS):
        return
    ops.add_to_collection(_GraphKeys.SAVERS, saver_lib.Saver(
        sharded=True, max_to_keep=config.keep_checkpoint_max,
        keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours,
        defer_build=True, save_relative_paths=True))


def _local(name):
    return variable_scope.get_variable(
        name, shape=[], dtype=dtypes.float32, trainable=False,
        initializer=init_ops.zeros_initializer(),
        collections=[_GraphKeys.LOCAL_VARIABLES,
                     _GraphKeys.METRIC_VARIABLES])


def _mean_of(loss):
    """(value, update) of the mean over all runs."""
    with variable_scope.variable_scope("mean"):
        total, count = _local("total"), _local("count")
    summed = state_ops.assign_add(total, math_ops.cast(loss, dtypes.float32))
    with ops.control_dependencies([loss]):
        counted = state_ops.assign_add(count, 1.0)
    return (math_ops.truediv(total, math_ops.maximum(count, 1.0)),
            math_ops.truediv(summed, counted))


def _metric_ops(spec, step):
    """The op that takes a batch in, and the values to fetch at the end."""
    metrics = dict(spec.eval_metric_ops)
    for name in ("loss", _GraphKeys.GLOBAL_STEP):
        if name in metrics:
            raise ValueError(
                'Metric with name "%s" is not allowed, because Estimator '
                "already defines a default metric with the same name." % name)
    metrics["loss"] = _mean_of(spec.loss)
    update = control_flow_ops.group(
        *[metrics[name][1] for name in sorted(metrics)])
    values = {name: value for name, (value, _) in metrics.items()}
    values[_GraphKeys.GLOBAL_STEP] = step
    return update, values


def _write_results(directory, results, path):
    """Leaves the values as summaries for TensorBoard."""
    from sluice.summary import writer_cache
    step = int(results[_GraphKeys.GLOBAL_STEP])
    logging.info("Saving dict for global step %d: %s", step,
                 ", ".join("%s = %s" % item
                           for item in sorted(results.items())))
    gfile.MakeDirs(directory)
    writer = writer_cache.FileWriterCache.get(directory)
    summary = protos.Summary()
    for name, value in results.items():
        if name == _GraphKeys.GLOBAL_STEP or value is None:
            continue
        if np.ndim(value) == 0 and np.issubdtype(np.asarray(value).dtype,
                                                 np.number):
            summary.value.add(tag=name, simple_value=float(value))
        elif isinstance(value, bytes):  # A summary, of an image say.
            for i, part in enumerate(protos.Summary.FromString(value).value):
                summary.value.add().CopyFrom(part)
                summary.value[-1].tag = "%s/%d" % (name, i)
        else:
            logging.warning("Skipping summary for %s, must be a float, "
                            "np.float32, np.int64, np.int32 or int or "
                            "np.ndarray or a serialized string of Summary.",
                            name)
    writer.add_summary(summary, step)
    writer.flush()
    if path:
        from sluice.framework import tensor_util
        summary = protos.Summary()
        value = summary.value.add(tag="checkpoint_path")
        value.tensor.CopyFrom(tensor_util.make_tensor_proto(path))
        writer.add_summary(summary, step)
        writer.flush()
        logging.info("Saving 'checkpoint_path' summary for global step %d: %s",
                     step, path)


def _record_loss(loss):
    """Puts the loss in the summaries, unless the program does."""
    made = ops.get_collection(_GraphKeys.SUMMARIES)
    if not any(summary.op.name == "loss" for summary in made):
        summary_ops.scalar("loss", loss)


def _wanted(predictions, keys):
    if not keys:
        return predictions
    if not isinstance(predictions, dict):
        raise ValueError("predict_keys argument is not valid in case of "
                         "non-dict predictions.")
    wanted = {key: value for key, value in predictions.items() if key in keys}
    if not wanted:
        raise ValueError("Expected to run at least one output from %s, "
                         "provided %s." % (sorted(predictions), keys))
    return wanted


def _batch_length(batch):
    length = None
    for key, value in batch.items():
        if length is None:
            length = value.shape[0]
        elif length != value.shape[0]:
            raise ValueError("Batch length of predictions should be same. %s "
                             "has different batch length than others." % key)
    return length
