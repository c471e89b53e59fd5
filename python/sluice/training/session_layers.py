"""The sessions around a session: one recovers, one stops threads, one runs
hooks."""

import random
import sys
import time

from sluice.client import session
from sluice.framework import errors
from sluice.framework import protos
from sluice.platform import tf_logging as logging
from sluice.training import session_run_hook

# Of these a session recovers: a task went away or was started anew.
_PREEMPTION_ERRORS = (errors.AbortedError, errors.UnavailableError)


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
        return step_fn(StepContext(raw_session, run_with_hooks))


def session_behind(sess):
    """The session that stands behind one that recovers in its place; others as
    they are."""
    return sess.raw_session() if getattr(sess, "is_a_session", False) is True \
        else sess


def _finds_nothing(e):
    """Whether a step read a variable that has no value."""
    return (isinstance(e, errors.FailedPreconditionError) and
            "uninitialized value" in e.message)


class _RecoverableSession(_WrappedSession):
    """Makes a new session when a task was lost, and runs the step again."""

    def __init__(self, sess_creator):
        self._sess_creator = sess_creator
        super().__init__(self._create_session())

    def _create_session(self):
        # Whether a step of this session has found all it reads.
        self._has_run = False
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
        return isinstance(e, _PREEMPTION_ERRORS) or (
            _finds_nothing(e) and self._has_lost_values())

    def _has_lost_values(self):
        """Whether a parameter server is back, empty, before anyone noticed.

        A program may also read what nobody initializes. A new session would
        not help it, and initialize the model under everybody else.
        """
        try:
            is_ready = self._sess_creator.model_is_ready()
        except errors.OpError as e:
            return isinstance(e, _PREEMPTION_ERRORS)
        return self._has_run if is_ready is None else not is_ready

    def _close_lost(self):
        try:
            self.close()
        except _PREEMPTION_ERRORS:
            pass
        except Exception as e:
            # A thread of the session met the same.
            if not _finds_nothing(e):
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
        try:
            self._coord.join(
                stop_grace_period_secs=self._stop_grace_period_secs,
                ignore_live_threads=True)
        finally:
            # A thread may still wait in a step for what nobody sends any more.
            self._interrupt_steps()
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
