"""Hooks that most training loops use."""

import os
import time

from sluice.platform.lazy_numpy import np

from sluice.framework import errors
from sluice.framework import ops
from sluice.framework import protos
from sluice.platform import gfile
from sluice.platform import tf_logging as logging
from sluice.summary import writer_cache
from sluice.training import session_run_hook
from sluice.training import training_util
from sluice.training.checkpoint_saver_hook import (  # noqa: F401
    CheckpointSaverHook, CheckpointSaverListener)
from sluice.training.hook_timers import (  # noqa: F401
    NeverTriggerTimer, SecondOrStepTimer, _HookTimer)
from sluice.training.session_run_hook import SessionRunArgs

SessionLog = protos.SessionLog


def _as_graph_element(obj):
    graph = ops.get_default_graph()
    if isinstance(obj, str):
        if ":" in obj:
            element = graph.as_graph_element(obj)
        else:
            element = graph.as_graph_element(obj + ":0")
            try:
                graph.as_graph_element(obj + ":1")
            except (KeyError, ValueError):
                pass
            else:
                raise ValueError("Name %s is ambiguous, as this operation has "
                                 "multiple outputs (at least 2)." % obj)
        return element
    element = graph.as_graph_element(obj)
    if element is None:
        raise ValueError("Fetch argument %s is not an element of this graph." %
                         (obj,))
    return element


class LoggingTensorHook(session_run_hook.SessionRunHook):
    """Logs tensors every so many of this process's steps."""

    def __init__(self, tensors, every_n_iter=None, every_n_secs=None,
                 at_end=False, formatter=None):
        only_at_end = at_end and every_n_iter is None and every_n_secs is None
        if not only_at_end and (every_n_iter is None) == (every_n_secs is
                                                          None):
            raise ValueError("either at_end and/or exactly one of "
                             "every_n_iter and every_n_secs must be provided.")
        if every_n_iter is not None and every_n_iter <= 0:
            raise ValueError("invalid every_n_iter=%s." % every_n_iter)
        if isinstance(tensors, dict):
            self._tag_order = sorted(tensors)
        else:
            self._tag_order = list(tensors)
            tensors = {item: item for item in tensors}
        self._tensors = tensors
        self._formatter = formatter
        self._timer = NeverTriggerTimer() if only_at_end else \
            SecondOrStepTimer(every_secs=every_n_secs,
                              every_steps=every_n_iter)
        self._log_at_end = at_end

    def begin(self):
        self._timer.reset()
        self._iter_count = 0
        self._current_tensors = {tag: _as_graph_element(tensor)
                                 for tag, tensor in self._tensors.items()}

    def before_run(self, run_context):
        self._should_trigger = self._timer.should_trigger_for_step(
            self._iter_count)
        if self._should_trigger:
            return SessionRunArgs(self._current_tensors)
        return None

    def _log_tensors(self, tensor_values):
        with np.printoptions(suppress=True):
            elapsed, _ = self._timer.update_last_triggered_step(
                self._iter_count)
            if self._formatter:
                logging.info(self._formatter(tensor_values))
                return
            text = ", ".join("%s = %s" % (tag, tensor_values[tag])
                             for tag in self._tag_order)
            if elapsed is not None:
                logging.info("%s (%.3f sec)", text, elapsed)
            else:
                logging.info(text)

    def after_run(self, run_context, run_values):
        if self._should_trigger:
            self._log_tensors(run_values.results)
        self._iter_count += 1

    def end(self, session):
        if self._log_at_end:
            self._log_tensors(session.run(self._current_tensors))


class StopAtStepHook(session_run_hook.SessionRunHook):
    """Asks to stop at a step, or after a number of steps."""

    def __init__(self, num_steps=None, last_step=None):
        if num_steps is None and last_step is None:
            raise ValueError("One of num_steps or last_step must be "
                             "specified.")
        if num_steps is not None and last_step is not None:
            raise ValueError("Only one of num_steps or last_step can be "
                             "specified.")
        self._num_steps = num_steps
        self._last_step = last_step

    def begin(self):
        self._global_step_tensor = training_util.get_global_step()
        if self._global_step_tensor is None:
            raise RuntimeError("Global step should be created to use "
                               "StopAtStepHook.")
        self._global_step_read = \
            training_util._get_or_create_global_step_read()

    def after_create_session(self, session, coord):
        if self._last_step is None:
            global_step = session.run(self._global_step_read)
            self._last_step = global_step + self._num_steps
        self._args = SessionRunArgs(self._global_step_read)
        self._last_stale = None

    def before_run(self, run_context):
        return self._args

    def after_run(self, run_context, run_values):
        # The value may be from before this step's count, and from before what
        # other workers counted meanwhile: about as much as last time.
        stale = run_values.results
        others = max(0, stale - self._last_stale) if self._last_stale else 0
        self._last_stale = stale
        if stale + 1 + others >= self._last_step:
            step = run_context.session.run(self._global_step_read)
            if step >= self._last_step:
                run_context.request_stop()


class StepCounterHook(session_run_hook.SessionRunHook):
    """Logs and records how many global steps run in a second."""

    def __init__(self, every_n_steps=100, every_n_secs=None, output_dir=None,
                 summary_writer=None):
        if (every_n_steps is None) == (every_n_secs is None):
            raise ValueError("exactly one of every_n_steps and every_n_secs "
                             "should be provided.")
        self._timer = SecondOrStepTimer(every_steps=every_n_steps,
                                        every_secs=every_n_secs)
        self._summary_writer = summary_writer
        self._output_dir = output_dir
        self._last_global_step = None
        self._steps_per_run = 1
        self._warnings = 0

    def _set_steps_per_run(self, steps_per_run):
        self._steps_per_run = steps_per_run

    def begin(self):
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = writer_cache.FileWriterCache.get(
                self._output_dir)
        self._global_step_tensor = \
            training_util._get_or_create_global_step_read()
        if self._global_step_tensor is None:
            raise RuntimeError("Global step should be created to use "
                               "StepCounterHook.")
        self._summary_tag = training_util.get_global_step().op.name + "/sec"
        self._args = SessionRunArgs(self._global_step_tensor)

    def before_run(self, run_context):
        return self._args

    def _log_and_record(self, elapsed_steps, elapsed_time, global_step):
        steps_per_sec = elapsed_steps / elapsed_time
        if self._summary_writer is not None:
            summary = protos.Summary(value=[protos.Summary.Value(
                tag=self._summary_tag, simple_value=steps_per_sec)])
            self._summary_writer.add_summary(summary, global_step)
        logging.info("%s: %g", self._summary_tag, steps_per_sec)

    def after_run(self, run_context, run_values):
        stale = run_values.results
        if self._timer.should_trigger_for_step(stale + self._steps_per_run):
            global_step = run_context.session.run(self._global_step_tensor)
            if self._timer.should_trigger_for_step(global_step):
                elapsed_time, elapsed_steps = \
                    self._timer.update_last_triggered_step(global_step)
                if elapsed_time is not None:
                    self._log_and_record(elapsed_steps, elapsed_time,
                                         global_step)
        if stale == self._last_global_step and self._warnings < 5:
            self._warnings += 1
            logging.warning(
                "It seems that global step (tf.train.get_global_step) has not "
                "been increased. Current value (could be stable): %s vs "
                "previous value: %s. You could increase the global step by "
                "passing tf.train.get_global_step() to "
                "Optimizer.apply_gradients or Optimizer.minimize.",
                stale, self._last_global_step)
        self._last_global_step = stale


class NanLossDuringTrainingError(RuntimeError):

    def __str__(self):
        return "NaN loss during training."


class NanTensorHook(session_run_hook.SessionRunHook):
    """Stops, or fails, when the loss is not a number."""

    def __init__(self, loss_tensor, fail_on_nan_loss=True):
        self._loss_tensor = loss_tensor
        self._fail_on_nan_loss = fail_on_nan_loss

    def before_run(self, run_context):
        return SessionRunArgs(self._loss_tensor)

    def after_run(self, run_context, run_values):
        if np.isnan(run_values.results):
            if self._fail_on_nan_loss:
                logging.error("Model diverged with loss = NaN.")
                raise NanLossDuringTrainingError
            logging.warning("Model diverged with loss = NaN.")
            run_context.request_stop()


class SummarySaverHook(session_run_hook.SessionRunHook):
    """Records summaries every so many steps or seconds."""

    def __init__(self, save_steps=None, save_secs=None, output_dir=None,
                 summary_writer=None, scaffold=None, summary_op=None):
        if (scaffold is None) == (summary_op is None):
            raise ValueError("Exactly one of scaffold or summary_op must be "
                             "provided.")
        self._summary_op = summary_op
        self._summary_writer = summary_writer
        self._output_dir = output_dir
        self._scaffold = scaffold
        self._timer = SecondOrStepTimer(every_secs=save_secs,
                                        every_steps=save_steps)

    def begin(self):
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = writer_cache.FileWriterCache.get(
                self._output_dir)
        self._next_step = None
        self._global_step_tensor = \
            training_util._get_or_create_global_step_read()
        if self._global_step_tensor is None:
            raise RuntimeError("Global step should be created to use "
                               "SummarySaverHook.")

    def before_run(self, run_context):
        self._request_summary = (
            self._next_step is None or
            self._timer.should_trigger_for_step(self._next_step))
        requests = {"global_step": self._global_step_tensor}
        if self._request_summary and self._get_summary_op() is not None:
            requests["summary"] = self._get_summary_op()
        return SessionRunArgs(requests)

    def after_run(self, run_context, run_values):
        if not self._summary_writer:
            return
        stale = run_values.results["global_step"]
        global_step = stale + 1
        if self._next_step is None or self._request_summary:
            global_step = run_context.session.run(self._global_step_tensor)
        if self._next_step is None:
            self._summary_writer.add_session_log(
                SessionLog(status=SessionLog.START), global_step)
        if self._request_summary:
            self._timer.update_last_triggered_step(global_step)
            if "summary" in run_values.results:
                for summary in run_values.results["summary"]:
                    self._summary_writer.add_summary(summary, global_step)
        self._next_step = global_step + 1

    def end(self, session=None):
        if self._summary_writer:
            self._summary_writer.flush()

    def _get_summary_op(self):
        """A list of summary tensors, or None."""
        summary_op = None
        if self._summary_op is not None:
            summary_op = self._summary_op
        elif self._scaffold.summary_op is not None:
            summary_op = self._scaffold.summary_op
        if summary_op is None:
            return None
        return summary_op if isinstance(summary_op, list) else [summary_op]


class GlobalStepWaiterHook(session_run_hook.SessionRunHook):
    """Holds the first step until others have brought training so far."""

    def __init__(self, wait_until_step):
        self._wait_until_step = wait_until_step

    def begin(self):
        self._worker_is_started = False
        self._global_step_tensor = \
            training_util._get_or_create_global_step_read()
        if self._global_step_tensor is None:
            raise RuntimeError("Global step should be created to use "
                               "_GlobalStepWaiterHook.")

    def before_run(self, run_context):
        if self._worker_is_started:
            return None
        if self._wait_until_step <= 0:
            self._worker_is_started = True
            return None
        logging.info("Waiting for global step %d before starting training.",
                     self._wait_until_step)
        last_logged = 0
        while True:
            step = run_context.session.run(self._global_step_tensor)
            if step >= self._wait_until_step:
                self._worker_is_started = True
                return None
            if step - last_logged > 1000:
                logging.info("Waiting for global step %d before starting "
                             "training. Current step is %d.",
                             self._wait_until_step, step)
                last_logged = step
            time.sleep(0.5)


class FinalOpsHook(session_run_hook.SessionRunHook):
    """Runs tensors at the end and keeps their values."""

    def __init__(self, final_ops, final_ops_feed_dict=None):
        self._final_ops = final_ops
        self._final_ops_feed_dict = final_ops_feed_dict
        self._final_ops_values = None

    @property
    def final_ops_values(self):
        return self._final_ops_values

    def end(self, session):
        if self._final_ops is None:
            return
        try:
            self._final_ops_values = session.run(
                self._final_ops, feed_dict=self._final_ops_feed_dict)
        except (errors.OutOfRangeError, StopIteration) as e:
            logging.warning(
                "An OutOfRangeError or StopIteration exception is raised by "
                "the code in FinalOpsHook. This typically means the Ops "
                "running by the FinalOpsHook have a dependency back to some "
                "input source, which should not happen. For example, for "
                "metrics in tf.estimator.Estimator, all metrics functions "
                "return two Ops: `value_op` and  `update_op`. "
                "Estimator.evaluate calls the `update_op` for each batch of "
                "the data in input source and, once it is exhausted, it call "
                "the `value_op` to get the metric values. The `value_op` here "
                "should have dependency back to variables reading only, "
                "rather than reading another batch from input. Otherwise, the "
                "`value_op`, executed by `FinalOpsHook`, triggers another "
                "data reading, which ends OutOfRangeError/StopIteration. "
                "Please fix that.")
            raise e


class FeedFnHook(session_run_hook.SessionRunHook):
    """Feeds what a function returns."""

    def __init__(self, feed_fn):
        self.feed_fn = feed_fn

    def before_run(self, run_context):
        return SessionRunArgs(fetches=None, feed_dict=self.feed_fn())


class ProfilerHook(session_run_hook.SessionRunHook):
    """Records where the time of a step goes, every so many steps."""

    def __init__(self, save_steps=None, save_secs=None, output_dir="",
                 show_dataflow=True, show_memory=False):
        self._output_file = os.path.join(output_dir, "timeline-{}.json")
        self._file_writer = writer_cache.FileWriterCache.get(output_dir)
        self._show_dataflow = show_dataflow
        self._show_memory = show_memory
        self._timer = SecondOrStepTimer(every_secs=save_secs,
                                        every_steps=save_steps)

    def begin(self):
        self._next_step = None
        self._global_step_tensor = \
            training_util._get_or_create_global_step_read()
        if self._global_step_tensor is None:
            raise RuntimeError("Global step should be created to use "
                               "ProfilerHook.")

    def before_run(self, run_context):
        self._request_summary = (
            self._next_step is not None and
            self._timer.should_trigger_for_step(self._next_step))
        options = protos.RunOptions(
            trace_level=protos.RunOptions.FULL_TRACE) if \
            self._request_summary else None
        return SessionRunArgs({"global_step": self._global_step_tensor},
                              options=options)

    def after_run(self, run_context, run_values):
        stale = run_values.results["global_step"]
        if self._next_step is None:
            self._timer.update_last_triggered_step(stale)
        global_step = stale + 1
        if self._request_summary:
            global_step = run_context.session.run(self._global_step_tensor)
            self._timer.update_last_triggered_step(global_step)
            self._save(global_step, self._output_file.format(global_step),
                       run_values.run_metadata.step_stats)
            self._file_writer.add_run_metadata(run_values.run_metadata,
                                               "step_%d" % global_step)
        self._next_step = global_step + 1

    def _save(self, step, save_path, step_stats):
        from sluice.client import timeline
        logging.info("Saving timeline for %d into '%s'.", step, save_path)
        with gfile.Open(save_path, "w") as f:
            f.write(timeline.Timeline(step_stats).generate_chrome_trace_format(
                self._show_dataflow, self._show_memory))
