"""Monitored sessions: initialize, restore, run hooks, recover, close."""

import inspect

from sluice.framework import errors
from sluice.framework import ops
from sluice.training import basic_session_run_hooks
from sluice.training import coordinator
from sluice.training import queue_runner_impl
from sluice.training import session_layers
from sluice.training import session_manager as sm
from sluice.training.scaffold import Scaffold
from sluice.training.session_layers import (
    _CoordinatedSession, _HookedSession, _RecoverableSession)

# "Not given", where None means "never".
USE_DEFAULT = object()

_GraphKeys = ops.GraphKeys


class SessionCreator(object):

    def create_session(self):
        raise NotImplementedError(
            "create_session is not implemented for %s." % self)


class ChiefSessionCreator(SessionCreator):
    """Restores the model or initializes it."""

    def __init__(self, scaffold=None, master="", config=None,
                 checkpoint_dir=None, checkpoint_filename_with_path=None,
                 continue_live_training=True):
        self._checkpoint_dir = checkpoint_dir
        self._continue_live_training = continue_live_training
        self._checkpoint_filename_with_path = checkpoint_filename_with_path
        self._scaffold = scaffold or Scaffold()
        self._session_manager = None
        self._master = master
        self._config = config

    def _get_session_manager(self):
        if self._session_manager is None:
            self._session_manager = sm.SessionManager(
                local_init_op=self._scaffold.local_init_op,
                ready_op=self._scaffold.ready_op,
                ready_for_local_init_op=(
                    self._scaffold.ready_for_local_init_op),
                graph=ops.get_default_graph(),
                continue_live_training=self._continue_live_training)
        return self._session_manager

    def create_session(self):
        self._scaffold.finalize()
        return self._get_session_manager().prepare_session(
            self._master, saver=self._scaffold.saver,
            checkpoint_dir=self._checkpoint_dir,
            checkpoint_filename_with_path=self._checkpoint_filename_with_path,
            config=self._config, init_op=self._scaffold.init_op,
            init_feed_dict=self._scaffold.init_feed_dict,
            init_fn=self._scaffold.init_fn)


class WorkerSessionCreator(SessionCreator):
    """Waits until the chief has made the model ready."""

    def __init__(self, scaffold=None, master="", config=None,
                 max_wait_secs=30 * 60):
        self._scaffold = scaffold or Scaffold()
        self._session_manager = None
        self._master = master
        self._config = config
        self._max_wait_secs = max_wait_secs

    _continue_live_training = True
    _get_session_manager = ChiefSessionCreator._get_session_manager

    def create_session(self):
        self._scaffold.finalize()
        return self._get_session_manager().wait_for_session(
            self._master, config=self._config,
            max_wait_secs=self._max_wait_secs)


def MonitoredTrainingSession(master="", is_chief=True, checkpoint_dir=None,
                             scaffold=None, hooks=None, chief_only_hooks=None,
                             save_checkpoint_secs=USE_DEFAULT,
                             save_summaries_steps=USE_DEFAULT,
                             save_summaries_secs=USE_DEFAULT, config=None,
                             stop_grace_period_secs=120,
                             log_step_count_steps=100, max_wait_secs=7200,
                             save_checkpoint_steps=USE_DEFAULT,
                             summary_dir=None, continue_live_training=True):
    """A MonitoredSession set up for training, on the chief or a worker.

    A chief that was started anew goes on from the model in the parameter
    servers if other workers have brought that further than the checkpoint,
    unless `continue_live_training` is false.
    """
    if save_summaries_steps is USE_DEFAULT and \
            save_summaries_secs is USE_DEFAULT:
        save_summaries_steps, save_summaries_secs = 100, None
    elif save_summaries_secs is USE_DEFAULT:
        save_summaries_secs = None
    elif save_summaries_steps is USE_DEFAULT:
        save_summaries_steps = None
    if save_checkpoint_steps is USE_DEFAULT and \
            save_checkpoint_secs is USE_DEFAULT:
        save_checkpoint_steps, save_checkpoint_secs = None, 600
    elif save_checkpoint_secs is USE_DEFAULT:
        save_checkpoint_secs = None
    elif save_checkpoint_steps is USE_DEFAULT:
        save_checkpoint_steps = None
    scaffold = scaffold or Scaffold()
    if not is_chief:
        creator = WorkerSessionCreator(scaffold=scaffold, master=master,
                                       config=config,
                                       max_wait_secs=max_wait_secs)
        return MonitoredSession(
            session_creator=creator, hooks=hooks or [],
            stop_grace_period_secs=stop_grace_period_secs)
    all_hooks = list(chief_only_hooks or [])
    creator = ChiefSessionCreator(scaffold=scaffold,
                                  checkpoint_dir=checkpoint_dir,
                                  master=master, config=config,
                                  continue_live_training=continue_live_training)
    summary_dir = summary_dir or checkpoint_dir
    if summary_dir:
        if log_step_count_steps and log_step_count_steps > 0:
            all_hooks.append(basic_session_run_hooks.StepCounterHook(
                output_dir=summary_dir, every_n_steps=log_step_count_steps))
        if (save_summaries_steps and save_summaries_steps > 0) or (
                save_summaries_secs and save_summaries_secs > 0):
            all_hooks.append(basic_session_run_hooks.SummarySaverHook(
                scaffold=scaffold, save_steps=save_summaries_steps,
                save_secs=save_summaries_secs, output_dir=summary_dir))
    if checkpoint_dir:
        if (save_checkpoint_secs and save_checkpoint_secs > 0) or (
                save_checkpoint_steps and save_checkpoint_steps > 0):
            all_hooks.append(basic_session_run_hooks.CheckpointSaverHook(
                checkpoint_dir, save_steps=save_checkpoint_steps,
                save_secs=save_checkpoint_secs, scaffold=scaffold))
    all_hooks.extend(hooks or [])
    return MonitoredSession(session_creator=creator, hooks=all_hooks,
                            stop_grace_period_secs=stop_grace_period_secs)


class _MonitoredSession(object):
    """What MonitoredSession and SingularMonitoredSession share."""

    def __init__(self, session_creator, hooks, should_recover,
                 stop_grace_period_secs=120):
        self._graph_was_finalized = ops.get_default_graph().finalized
        self._hooks = list(hooks or [])
        for hook in self._hooks:
            hook.begin()
        self._coordinated_creator = self._CoordinatedSessionCreator(
            session_creator=session_creator or ChiefSessionCreator(),
            hooks=self._hooks, stop_grace_period_secs=stop_grace_period_secs)
        if should_recover:
            self._sess = _RecoverableSession(self._coordinated_creator)
        else:
            self._sess = self._coordinated_creator.create_session()

    @property
    def graph(self):
        if self._tf_sess() is None:
            return None
        return self._coordinated_creator.tf_sess.graph

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        return self._sess.run(fetches, feed_dict=feed_dict, options=options,
                              run_metadata=run_metadata)

    def run_step_fn(self, step_fn):
        """Calls step_fn(step_context), which may run with and without hooks."""
        arguments = tuple(inspect.getfullargspec(step_fn).args)
        if arguments not in (("step_context",),
                             ("self", "step_context")):
            raise ValueError(
                "`step_fn` may either have one `step_context` argument, or "
                "`self` and `step_context` arguments if it's an instance "
                "method. Got {} instead.".format(arguments))
        return self._sess.run_step_fn(step_fn, self._tf_sess(),
                                      run_with_hooks=None)

    StepContext = session_layers.StepContext

    def should_stop(self):
        return self._sess is None or self._sess.should_stop()

    def close(self):
        self._close_internal()

    def __enter__(self):
        return self

    def __exit__(self, exception_type, exception_value, traceback):
        if exception_type in [errors.OutOfRangeError, StopIteration]:
            exception_type = None
        self._close_internal(exception_type)
        # The end of the input is the end of training, not an error.
        return exception_type is None

    def _close_internal(self, exception_type=None):
        try:
            if not exception_type:
                if self._tf_sess() is None:
                    raise RuntimeError("Session is already closed.")
                for hook in self._hooks:
                    hook.end(self._tf_sess())
        finally:
            try:
                if self._sess is None:
                    raise RuntimeError("Session is already closed.")
                self._sess.close()
            finally:
                self._sess = None
                self._coordinated_creator.tf_sess = None
                self._coordinated_creator.coord = None
                if not self._graph_was_finalized:
                    ops.get_default_graph()._unsafe_unfinalize()

    def _is_closed(self):
        return self._coordinated_creator.tf_sess is None

    def _tf_sess(self):
        return self._coordinated_creator.tf_sess

    class _CoordinatedSessionCreator(SessionCreator):
        """Makes a session with its threads; again after a failure."""

        def __init__(self, session_creator, hooks, stop_grace_period_secs):
            self._session_creator = session_creator
            self._hooks = hooks
            self.coord = None
            self.tf_sess = None
            self._stop_grace_period_secs = stop_grace_period_secs

        def create_session(self):
            self.tf_sess = self._session_creator.create_session()
            # An error of a thread is not lost when the input ends.
            self.coord = coordinator.Coordinator(
                clean_stop_exception_types=[])
            if ops.get_collection(_GraphKeys.QUEUE_RUNNERS):
                queue_runner_impl.start_queue_runners(sess=self.tf_sess,
                                                      coord=self.coord)
            for hook in self._hooks:
                hook.after_create_session(self.tf_sess, self.coord)
            return _CoordinatedSession(
                _HookedSession(self.tf_sess, self._hooks), self.coord,
                self._stop_grace_period_secs)

        def model_is_ready(self):
            creator = self._session_creator
            # Programs bring creators of their own, which may not know.
            if not hasattr(creator, "_get_session_manager"):
                return None
            return creator._get_session_manager().model_is_ready(self.tf_sess)


class MonitoredSession(_MonitoredSession):
    """A session that runs hooks and recovers from lost tasks."""

    def __init__(self, session_creator=None, hooks=None,
                 stop_grace_period_secs=120):
        super().__init__(session_creator, hooks, should_recover=True,
                         stop_grace_period_secs=stop_grace_period_secs)


class SingularMonitoredSession(_MonitoredSession):
    """A session that runs hooks and does not recover."""

    def __init__(self, hooks=None, scaffold=None, master="", config=None,
                 checkpoint_dir=None, stop_grace_period_secs=120,
                 checkpoint_filename_with_path=None):
        creator = ChiefSessionCreator(
            scaffold=scaffold, master=master, config=config,
            checkpoint_dir=checkpoint_dir,
            checkpoint_filename_with_path=checkpoint_filename_with_path)
        super().__init__(creator, hooks, should_recover=False,
                         stop_grace_period_secs=stop_grace_period_secs)

    def raw_session(self):
        return self._tf_sess()
