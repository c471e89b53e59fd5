"""Monitored sessions: initialize, restore, run hooks, recover, close."""

import inspect
import random
import sys
import threading
import time

from sluice.client import session
from sluice.framework import errors
from sluice.framework import ops
from sluice.framework import protos
from sluice.ops import array_ops
from sluice.ops import control_flow_ops
from sluice.ops import variables
from sluice.platform import tf_logging as logging
from sluice.summary import summary
from sluice.training import basic_session_run_hooks
from sluice.training import coordinator
from sluice.training import queue_runner_impl
from sluice.training import resources
from sluice.training import saver as training_saver
from sluice.training import session_manager as sm
from sluice.training import session_run_hook

# Of these a session recovers: a task went away or was started anew.
_PREEMPTION_ERRORS = (errors.AbortedError, errors.UnavailableError)

# What threads have to end by themselves before the steps they are in end.
_INTERRUPT_AFTER_SECS = 1.0

# "Not given", where None means "never".
USE_DEFAULT = object()

_GraphKeys = ops.GraphKeys


class Scaffold(object):
    """The operations a training session needs; makes those not given."""

    def __init__(self, init_op=None, init_feed_dict=None, init_fn=None,
                 ready_op=None, ready_for_local_init_op=None,
                 local_init_op=None, summary_op=None, saver=None,
                 copy_from_scaffold=None):
        if copy_from_scaffold is not None and not isinstance(
                copy_from_scaffold, Scaffold):
            raise TypeError("copy_from_scaffold is not a Scaffold instance.")

        def pick(value, name):
            if value is None and copy_from_scaffold is not None:
                return getattr(copy_from_scaffold, name)
            return value

        self._init_op = pick(init_op, "init_op")
        self._init_feed_dict = pick(init_feed_dict, "init_feed_dict")
        self._user_init_fn = pick(init_fn, "_user_init_fn")
        self._ready_op = pick(ready_op, "ready_op")
        self._ready_for_local_init_op = pick(ready_for_local_init_op,
                                             "ready_for_local_init_op")
        self._local_init_op = pick(local_init_op, "local_init_op")
        self._summary_op = pick(summary_op, "summary_op")
        self._saver = pick(saver, "saver")
        self._init_fn = None
        if self._user_init_fn:
            self._init_fn = lambda sess: self._user_init_fn(self, sess)

    init_op = property(lambda self: self._init_op)
    init_feed_dict = property(lambda self: self._init_feed_dict)
    init_fn = property(lambda self: self._init_fn)
    ready_op = property(lambda self: self._ready_op)
    ready_for_local_init_op = property(
        lambda self: self._ready_for_local_init_op)
    local_init_op = property(lambda self: self._local_init_op)
    summary_op = property(lambda self: self._summary_op)
    saver = property(lambda self: self._saver)

    def finalize(self):
        """Makes what is missing and closes the graph."""
        get = Scaffold.get_or_default
        if self._init_op is None:
            self._init_op = get("init_op", _GraphKeys.INIT_OP, lambda: (
                control_flow_ops.group(
                    variables.global_variables_initializer(),
                    resources.initialize_resources(
                        resources.shared_resources()))))
        if self._ready_op is None:
            self._ready_op = get("ready_op", _GraphKeys.READY_OP, lambda: (
                array_ops.concat([
                    variables.report_uninitialized_variables(),
                    resources.report_uninitialized_resources()], 0)))
        if self._ready_for_local_init_op is None:
            self._ready_for_local_init_op = get(
                "ready_for_local_init_op", _GraphKeys.READY_FOR_LOCAL_INIT_OP,
                lambda: array_ops.concat([
                    variables.report_uninitialized_variables(
                        variables.global_variables()),
                    resources.report_uninitialized_resources(
                        resources.shared_resources())], 0))
        if self._local_init_op is None:
            self._local_init_op = get("local_init_op",
                                      _GraphKeys.LOCAL_INIT_OP,
                                      Scaffold.default_local_init_op)
        if self._summary_op is None:
            self._summary_op = get("summary_op", _GraphKeys.SUMMARY_OP,
                                   summary.merge_all)
        if self._saver is None:
            self._saver = _get_saver_or_default()
        self._saver.build()
        ops.get_default_graph().finalize()
        logging.info("Graph was finalized.")
        return self

    @staticmethod
    def get_or_default(arg_name, collection_key, default_constructor):
        elements = ops.get_collection(collection_key)
        if elements:
            if len(elements) > 1:
                raise RuntimeError(
                    "More than one item in the collection \"%s\". Please "
                    "indicate which one to use by passing it to the "
                    "tf.Scaffold constructor as:  tf.Scaffold(%s=item to use)"
                    % (collection_key, arg_name))
            return elements[0]
        op = default_constructor()
        if op is not None:
            ops.add_to_collection(collection_key, op)
        return op

    @staticmethod
    def default_local_init_op():
        return control_flow_ops.group(
            variables.local_variables_initializer(),
            resources.tables_initializer(),
            resources.initialize_resources(resources.local_resources()))


def _get_saver_or_default():
    savers = ops.get_collection(_GraphKeys.SAVERS)
    if savers:
        if len(savers) > 1:
            raise RuntimeError(
                "More than one item in collection %s. Please indicate which "
                "one to use by passing it to the constructor." %
                _GraphKeys.SAVERS)
        return savers[0]
    saver = training_saver.Saver(sharded=True, allow_empty=True)
    ops.add_to_collection(_GraphKeys.SAVERS, saver)
    return saver


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

    class StepContext(object):
        """Handed to the function of run_step_fn."""

        def __init__(self, session, run_with_hooks_fn):
            self._session = session
            self._run_with_hooks_fn = run_with_hooks_fn

        @property
        def session(self):
            return self._session

        def run_with_hooks(self, *args, **kwargs):
            return self._run_with_hooks_fn(*args, **kwargs)

        def request_stop(self):
            raise StopIteration("step_fn has requested the iterations to "
                                "stop.")

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


class _WrappedSession(object):
    """A session around another."""

    def __init__(self, sess):
        self._sess = sess
        self._wrapped_is_stoppable = isinstance(sess, _WrappedSession)

    @property
    def graph(self):
        return self._sess.graph

    @property
    def sess_str(self):
        return self._sess.sess_str

    def should_stop(self):
        if self._check_stop():
            return True
        if self._sess:
            return self._wrapped_is_stoppable and self._sess.should_stop()
        return True

    def _check_stop(self):
        return False

    def close(self):
        if self._sess:
            try:
                self._sess.close()
            except _PREEMPTION_ERRORS as e:
                logging.warning(
                    "An error occurred when attempting to close the session. "
                    "This may be due to a preemption in a connected worker or "
                    "parameter server. Error: %s", e)
            finally:
                self._sess = None

    def run(self, *args, **kwargs):
        return self._sess.run(*args, **kwargs)

    def run_step_fn(self, step_fn, raw_session, run_with_hooks):
        run_with_hooks = run_with_hooks or self.run
        return step_fn(_MonitoredSession.StepContext(raw_session,
                                                     run_with_hooks))


class _RecoverableSession(_WrappedSession):
    """Makes a new session when a task was lost, and runs the step again."""

    def __init__(self, sess_creator):
        self._sess_creator = sess_creator
        # Whether this process has seen the model ready and running.
        self._has_run = False
        super().__init__(self._create_session())

    def _create_session(self):
        wait = 0.05
        while True:
            try:
                return self._sess_creator.create_session()
            except _PREEMPTION_ERRORS as e:
                logging.info(
                    "An error was raised while a session was being created. "
                    "This may be due to a preemption of a connected worker or "
                    "parameter server. A new session will be created. This "
                    "error may also occur due to a gRPC failure caused by "
                    "high memory or network bandwidth usage in the parameter "
                    "servers. If this error occurs repeatedly, try increasing "
                    "the number of parameter servers assigned to the job. "
                    "Error: %s", e)
            time.sleep(wait * random.uniform(0.5, 1.0))
            wait = min(wait * 2, 2.0)

    def _check_stop(self):
        try:
            if self._sess:
                return self._sess._check_stop()
            return True
        except Exception as e:
            if not self._is_lost(e):
                # It comes up again when the threads are joined.
                return True
            logging.info(
                "An error was raised while considering whether the session is "
                "complete. This may be due to a preemption in a connected "
                "worker or parameter server. The current session will be "
                "closed and a new session will be created. This error may "
                "also occur due to a gRPC failure caused by high memory or "
                "network bandwidth usage in the parameter servers. If this "
                "error occurs repeatedly, try increasing the number of "
                "parameter servers assigned to the job. Error: %s", e)
            self._close_lost()
            self._sess = self._create_session()
            # The new session has not been asked to stop.
            return False

    def _is_lost(self, e):
        """Whether an error means that a task lost its state."""
        if isinstance(e, _PREEMPTION_ERRORS):
            return True
        # A parameter server may be back, empty, before anyone notices.
        return (self._has_run and
                isinstance(e, errors.FailedPreconditionError) and
                "uninitialized value" in e.message)

    def _close_lost(self):
        try:
            self.close()
        except Exception as e:
            # A thread of the session met the same.
            if not self._is_lost(e):
                raise

    def _recovering(self, call):
        while True:
            try:
                if not self._sess:
                    self._sess = self._create_session()
                result = call()
                self._has_run = True
                return result
            except (errors.AbortedError, errors.UnavailableError,
                    errors.FailedPreconditionError) as e:
                if not self._is_lost(e):
                    raise
                logging.info(
                    "An error was raised. This may be due to a preemption in "
                    "a connected worker or parameter server. The current "
                    "session will be closed and a new session will be "
                    "created. This error may also occur due to a gRPC failure "
                    "caused by high memory or network bandwidth usage in the "
                    "parameter servers. If this error occurs repeatedly, try "
                    "increasing the number of parameter servers assigned to "
                    "the job. Error: %s", e)
                self._close_lost()
                self._sess = None

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        return self._recovering(lambda: self._sess.run(
            fetches, feed_dict=feed_dict, options=options,
            run_metadata=run_metadata))

    def run_step_fn(self, step_fn, raw_session, run_with_hooks):
        def call():
            hooks = run_with_hooks or self._sess.run
            return self._sess.run_step_fn(step_fn,
                                          self._sess_creator.tf_sess, hooks)
        return self._recovering(call)


class _CoordinatedSession(_WrappedSession):
    """Stops its threads when it is closed."""

    def __init__(self, sess, coord, stop_grace_period_secs=120):
        super().__init__(sess)
        self._coord = coord
        self._stop_grace_period_secs = stop_grace_period_secs

    def _check_stop(self):
        # Raises what a thread reported.
        self._coord.raise_requested_exception()
        return self._coord.should_stop()

    def close(self):
        self._coord.request_stop()
        # A thread may wait in a step for what nobody sends any more.
        interrupt = threading.Timer(_INTERRUPT_AFTER_SECS,
                                    self._interrupt_steps)
        interrupt.daemon = True
        interrupt.start()
        try:
            self._coord.join(
                stop_grace_period_secs=self._stop_grace_period_secs,
                ignore_live_threads=True)
        finally:
            interrupt.cancel()
            try:
                super().close()
            except Exception:  # What led here is more telling.
                pass

    def run(self, *args, **kwargs):
        try:
            return self._sess.run(*args, **kwargs)
        except _PREEMPTION_ERRORS:
            raise
        except Exception:
            # A thread may have met the cause, this step a consequence.
            _, value, trace = sys.exc_info()
            try:
                self._coord.raise_requested_exception()
            except _PREEMPTION_ERRORS:
                raise
            except Exception:
                raise value.with_traceback(trace)
            raise

    def _interrupt_steps(self):
        sess = self._sess
        while isinstance(sess, _WrappedSession):
            sess = sess._sess
        if isinstance(sess, session.BaseSession):
            sess._interrupt()


def _identity(fetch):
    """A key that is the same for the same objects in the same structure."""
    if isinstance(fetch, dict):
        return (type(fetch),) + tuple((key, _identity(value))
                                      for key, value in fetch.items())
    if isinstance(fetch, (list, tuple)):
        return (type(fetch),) + tuple(map(_identity, fetch))
    return fetch if isinstance(fetch, str) else id(fetch)


class _HookedSession(_WrappedSession):
    """Runs hooks before and after each step, and their fetches in it."""

    _MOST_PLANS = 64

    def __init__(self, sess, hooks):
        super().__init__(sess)
        self._hooks = hooks
        self._should_stop = False
        # (fetches, their leaves, how to put values back), by identity.
        self._plans = {}

    def _check_stop(self):
        return self._should_stop

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        if self.should_stop():
            raise RuntimeError("Run called even after should_stop requested.")
        actual_fetches = {"caller": fetches}
        run_context = session_run_hook.SessionRunContext(
            original_args=session_run_hook.SessionRunArgs(fetches, feed_dict),
            session=self._sess)
        wants_metadata = run_metadata is not None
        options = options or protos.RunOptions()
        feed_dict = self._call_hook_before_run(run_context, actual_fetches,
                                               feed_dict, options)
        run_metadata = run_metadata or protos.RunMetadata()
        # A step without options takes the fast way.
        plain = not wants_metadata and not options.ByteSize()
        if plain and isinstance(self._sess, session.BaseSession):
            outputs = self._run_together(actual_fetches, feed_dict)
        else:
            outputs = self._sess.run(
                fetches=actual_fetches, feed_dict=feed_dict,
                options=None if plain else options,
                run_metadata=None if plain else run_metadata)
        for hook in self._hooks:
            hook.after_run(run_context, session_run_hook.SessionRunValues(
                results=outputs.get(hook), options=options,
                run_metadata=run_metadata))
        self._should_stop = self._should_stop or run_context.stop_requested
        return outputs["caller"]

    def _run_together(self, fetches, feed_dict):
        """Runs them as one list, by which the session knows the step again;
        what several hooks want is in it once."""
        key = _identity(fetches)
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= self._MOST_PLANS:
                self._plans.clear()
            wanted = session._Fetches(self._sess.graph, fetches)
            # Its objects live as long as their ids are in the key.
            plan = self._plans[key] = (fetches, wanted.leaves, wanted.rebuild)
        return plan[2](self._sess.run(plan[1], feed_dict))

    def _call_hook_before_run(self, run_context, fetch_dict, user_feed_dict,
                              options):
        hook_feeds = {}
        for hook in self._hooks:
            request = hook.before_run(run_context)
            if request is None:
                continue
            if request.fetches is not None:
                fetch_dict[hook] = request.fetches
            if request.feed_dict:
                self._raise_if_feeds_intersects(
                    hook_feeds, request.feed_dict,
                    "Same tensor is fed by two hooks.")
                hook_feeds.update(request.feed_dict)
            if request.options:
                self._merge_run_options(options, request.options)
        if not hook_feeds:
            return user_feed_dict
        if not user_feed_dict:
            return hook_feeds
        self._raise_if_feeds_intersects(
            user_feed_dict, hook_feeds,
            "Same tensor is fed by a SessionRunHook and user.")
        hook_feeds.update(user_feed_dict)
        return hook_feeds

    @staticmethod
    def _raise_if_feeds_intersects(feeds1, feeds2, message):
        both = set(feeds1) & set(feeds2)
        if both:
            raise RuntimeError(message + " Conflict(s): " + str(list(both)))

    @staticmethod
    def _merge_run_options(options, incoming):
        for field in ("trace_level", "timeout_in_ms", "inter_op_thread_pool"):
            setattr(options, field, max(getattr(options, field),
                                        getattr(incoming, field)))
        for field in ("output_partition_graphs",
                      "report_tensor_allocations_upon_oom"):
            if hasattr(options, field):
                setattr(options, field, getattr(options, field) or
                        getattr(incoming, field))
        if incoming.HasField("debug_options"):
            options.debug_options.debug_tensor_watch_opts.extend(
                incoming.debug_options.debug_tensor_watch_opts)
