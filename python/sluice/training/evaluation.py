"""Evaluating a checkpoint: a number of runs, then some final values."""

import time

from sluice.framework import dtypes
from sluice.framework import ops
from sluice.ops import control_flow_ops
from sluice.ops import init_ops
from sluice.ops import state_ops
from sluice.ops import variable_scope
from sluice.platform import tf_logging as logging
from sluice.training import basic_session_run_hooks as basic_hooks
from sluice.training import monitored_session
from sluice.training import session_run_hook
from sluice.training import training_util

_GraphKeys = ops.GraphKeys


def get_or_create_eval_step():
    """The local variable that counts the runs of an evaluation."""
    graph = ops.get_default_graph()
    found = graph.get_collection(_GraphKeys.EVAL_STEP)
    if len(found) > 1:
        raise ValueError("Multiple tensors added to tf.GraphKeys.EVAL_STEP")
    if found:
        return found[0]
    return variable_scope.get_variable(
        "eval_step", shape=[], dtype=dtypes.int64,
        initializer=init_ops.zeros_initializer(), trainable=False,
        collections=[_GraphKeys.LOCAL_VARIABLES, _GraphKeys.EVAL_STEP])


class StopAfterNEvalsHook(session_run_hook.SessionRunHook):
    """Stops after `num_evals` runs (None: when the input ends)."""

    def __init__(self, num_evals, log_progress=True):
        self._num_evals = num_evals
        self._evals_completed = None
        self._log_progress = log_progress
        # Some ten lines in all.
        self._every = 1 if num_evals is None or num_evals < 20 else \
            num_evals // 10

    def _set_evals_completed_tensor(self, tensor):
        self._evals_completed = tensor

    def before_run(self, run_context):
        return session_run_hook.SessionRunArgs(
            {"evals_completed": self._evals_completed})

    def after_run(self, run_context, run_values):
        completed = int(run_values.results["evals_completed"])
        last = self._num_evals is not None and completed >= self._num_evals
        if self._log_progress and (completed % self._every == 0 or last):
            if self._num_evals is None:
                logging.info("Evaluation [%d]", completed)
            else:
                logging.info("Evaluation [%d/%d]", completed, self._num_evals)
        if last:
            run_context.request_stop()


class SummaryAtEndHook(session_run_hook.SessionRunHook):
    """Writes the summaries once, after the last run."""

    def __init__(self, log_dir=None, summary_writer=None, summary_op=None,
                 feed_dict=None):
        if log_dir is None and summary_writer is None:
            raise ValueError("Must provide either log_dir or summary_writer")
        self._log_dir = log_dir
        self._summary_writer = summary_writer
        self._summary_op = summary_op
        self._feed_dict = feed_dict

    def begin(self):
        if self._summary_op is None:
            from sluice.summary import summary
            self._summary_op = summary.merge_all()
        self._global_step = training_util.get_or_create_global_step()

    def after_create_session(self, session, coord):
        if self._summary_writer is None:
            from sluice.summary import writer_cache
            self._summary_writer = writer_cache.FileWriterCache.get(
                self._log_dir)

    def end(self, session):
        step = training_util.global_step(session, self._global_step)
        if self._summary_op is not None:
            self._summary_writer.add_summary(
                session.run(self._summary_op, self._feed_dict), step)
        self._summary_writer.flush()


def evaluate_once(checkpoint_path, master="", scaffold=None, eval_ops=None,
                  feed_dict=None, final_ops=None, final_ops_feed_dict=None,
                  hooks=None, config=None):
    """Restores a checkpoint, runs `eval_ops` until a hook or the input ends
    it, and returns the values of `final_ops`."""
    eval_step = get_or_create_eval_step()
    hooks = list(hooks or [])
    with ops.control_dependencies(_flat_ops(eval_ops)):
        counted = state_ops.assign_add(eval_step, 1, use_locking=True)
    for hook in hooks:
        if isinstance(hook, StopAfterNEvalsHook):
            hook._set_evals_completed_tensor(counted)
    logging.info("Starting evaluation at " +
                 time.strftime("%Y-%m-%dT%H:%M:%SZ", time.localtime()))
    creator = monitored_session.ChiefSessionCreator(
        scaffold=scaffold, checkpoint_filename_with_path=checkpoint_path,
        master=master, config=config)
    final = basic_hooks.FinalOpsHook(final_ops, final_ops_feed_dict)
    hooks.append(final)
    with monitored_session.MonitoredSession(session_creator=creator,
                                            hooks=hooks) as session:
        if eval_ops is not None:
            while not session.should_stop():
                session.run([eval_ops, counted], feed_dict)
    logging.info("Finished evaluation at " +
                 time.strftime("%Y-%m-%d-%H:%M:%S", time.localtime()))
    return final.final_ops_values


def _flat_ops(eval_ops):
    if eval_ops is None:
        return []
    if isinstance(eval_ops, dict):
        eval_ops = list(eval_ops.values())
    if not isinstance(eval_ops, (list, tuple)):
        eval_ops = [eval_ops]
    return [control_flow_ops.group(*eval_ops)]


def evaluate_repeatedly(checkpoint_dir, master="", scaffold=None,
                        eval_ops=None, feed_dict=None, final_ops=None,
                        final_ops_feed_dict=None, eval_interval_secs=60,
                        hooks=None, config=None,
                        max_number_of_evaluations=None, timeout=None,
                        timeout_fn=None):
    """Evaluates each checkpoint that appears; the last values."""
    from sluice.training import checkpoint_management
    values = None
    number = 0
    for path in checkpoint_management.checkpoints_iterator(
            checkpoint_dir, min_interval_secs=eval_interval_secs,
            timeout=timeout, timeout_fn=timeout_fn):
        values = evaluate_once(path, master, scaffold, eval_ops, feed_dict,
                               final_ops, final_ops_feed_dict, hooks, config)
        number += 1
        if max_number_of_evaluations is not None and \
                number >= max_number_of_evaluations:
            break
    return values
