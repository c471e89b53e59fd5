"""SessionManager: sessions whose variables are initialized."""

import time

from sluice.platform.lazy_numpy import np

from sluice.client import session
from sluice.framework import errors
from sluice.framework import ops
from sluice.platform import tf_logging as logging
from sluice.training import checkpoint_management
from sluice.training import checkpoint_utils
from sluice.training import saver as saver_lib
from sluice.training import training_util

# Between looks whether a model is ready; recovery_wait_secs is the longest.
_FIRST_WAIT_SECS = 0.05
_LONGEST_WAIT_SECS = 2.0
# Between lines that say so.
_SAY_SO_SECS = 10.0
# A model that others train makes a step in this time.
_MOVES_WITHIN_SECS = 0.2

# A task is away, or was started anew.
_LOST = (errors.AbortedError, errors.UnavailableError)


def _maybe_name(obj):
    if obj is None:
        return "None"
    return getattr(obj, "name", "<no name for %s>" % type(obj))


class _Waiting(object):
    """Sleeps longer each time, up to a limit; says so now and then."""

    def __init__(self, longest):
        self._longest = min(_LONGEST_WAIT_SECS, longest)
        self._next = min(_FIRST_WAIT_SECS, self._longest)
        self._said = None

    def __call__(self, message, *args):
        now = time.time()
        if self._said is None or now - self._said >= _SAY_SO_SECS:
            self._said = now
            logging.info(message, *args)
        time.sleep(self._next)
        self._next = min(self._next * 2, self._longest)


class SessionManager(object):
    """Initializes a model, restores it, or waits until someone else did.

    With `continue_live_training` a chief that was started anew does not take
    back what other workers have trained meanwhile: a model in the parameter
    servers that is further than the newest checkpoint, or moves, stays.
    """

    def __init__(self, local_init_op=None, ready_op=None,
                 ready_for_local_init_op=None, graph=None,
                 recovery_wait_secs=30, local_init_run_options=None,
                 continue_live_training=True):
        if graph is None:
            graph = ops.get_default_graph()
        if ready_for_local_init_op is not None and local_init_op is None:
            raise ValueError("If you pass a ready_for_local_init_op you must "
                             "also pass a local_init_op , "
                             "ready_for_local_init_op [%s]" %
                             ready_for_local_init_op)
        self._local_init_op = local_init_op
        self._ready_op = ready_op
        self._ready_for_local_init_op = ready_for_local_init_op
        self._graph = graph
        self._recovery_wait_secs = recovery_wait_secs
        self._target = None
        self._local_init_run_options = local_init_run_options
        self._continue_live_training = continue_live_training
        # Supervisors have steps that the graph's collections do not know.
        self.global_step = None

    def _restore_checkpoint(self, master, saver=None, checkpoint_dir=None,
                            checkpoint_filename_with_path=None,
                            wait_for_checkpoint=False, max_wait_secs=7200,
                            config=None):
        """(session, whether it was restored)."""
        self._target = master
        if checkpoint_dir and checkpoint_filename_with_path:
            raise ValueError("Can not provide both checkpoint_dir and "
                             "checkpoint_filename_with_path.")
        sess = session.Session(self._target, graph=self._graph, config=config)
        try:
            if not saver or not (checkpoint_dir or
                                 checkpoint_filename_with_path):
                return sess, self._is_being_trained(sess)
            if checkpoint_filename_with_path:
                saver.restore(sess, checkpoint_filename_with_path)
                return sess, True
            start = time.time()
            wait = _Waiting(self._recovery_wait_secs)
            state = checkpoint_management.get_checkpoint_state(checkpoint_dir)
            while not state or not state.model_checkpoint_path:
                if self._is_being_trained(sess):
                    return sess, True
                if not wait_for_checkpoint or \
                        time.time() - start >= max_wait_secs:
                    return sess, False
                wait("Waiting for checkpoint to be available.")
                state = checkpoint_management.get_checkpoint_state(
                    checkpoint_dir)
            if not self._is_ahead(sess, state.model_checkpoint_path):
                saver_lib.restore_newest(saver, sess, state)
            saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
            return sess, True
        except BaseException:
            self._safe_close(sess)
            raise

    def _get_global_step(self):
        if self.global_step is not None:
            return self.global_step
        return training_util.get_global_step(self._graph)

    def _live_step(self, sess):
        """The global step of a model that is whole in a cluster, or None."""
        step = self._get_global_step()
        ready = self._ready_for_local_init_op
        if ready is None:
            ready = self._ready_op
        if not self._target or not self._continue_live_training or \
                step is None or ready is None:
            return None
        try:
            missing = sess.run(ready)
            # An earlier session of this task took its local variables along.
            local = {v.op.name.encode() for v in self._graph.get_collection(
                ops.GraphKeys.LOCAL_VARIABLES)}
            if missing is None or getattr(missing, "dtype", None) == \
                    np.int32 or not local.issuperset(missing.tolist()):
                return None
            return int(sess.run(step))
        except _LOST:
            raise
        except errors.OpError:
            return None

    def _is_ahead(self, sess, checkpoint):
        """Whether the cluster holds a later model than a checkpoint: this is
        a new chief, and others have gone on training."""
        live = self._live_step(sess)
        if live is None:
            return False
        step = self._get_global_step()
        try:
            saved = int(checkpoint_utils.NewCheckpointReader(
                checkpoint).get_tensor(step.op.name))
        except (errors.OpError, ValueError):
            return False
        if live <= saved:
            return False
        logging.info("Going on from step %d, which the parameter servers have "
                     "reached; %s is behind it.", live, checkpoint)
        return True

    def _is_being_trained(self, sess):
        """Whether others train the model at this moment, where there is no
        checkpoint to tell how old it is."""
        before = self._live_step(sess)
        if not before:
            return False
        time.sleep(_MOVES_WITHIN_SECS)
        now = self._live_step(sess)
        if now is None or now <= before:
            return False
        logging.info("Going on from step %d: other workers train this model.",
                     now)
        return True

    def prepare_session(self, master, init_op=None, saver=None,
                        checkpoint_dir=None,
                        checkpoint_filename_with_path=None,
                        wait_for_checkpoint=False, max_wait_secs=7200,
                        config=None, init_feed_dict=None, init_fn=None):
        """A session on a model that is restored or initialized here."""
        sess, restored = self._restore_checkpoint(
            master, saver, checkpoint_dir=checkpoint_dir,
            checkpoint_filename_with_path=checkpoint_filename_with_path,
            wait_for_checkpoint=wait_for_checkpoint,
            max_wait_secs=max_wait_secs, config=config)
        try:
            if not restored:
                if init_op is None and not init_fn and \
                        self._local_init_op is None:
                    raise RuntimeError(
                        "Model is not initialized and no init_op or init_fn "
                        "or local_init_op was given")
                if init_op is not None:
                    sess.run(init_op, feed_dict=init_feed_dict)
                if init_fn:
                    init_fn(sess)
            local_ok, message = self._try_run_local_init_op(sess)
            if not local_ok:
                raise RuntimeError(
                    "Init operations did not make model ready for local_init. "
                    " Init op: %s, init fn: %s, error: %s" %
                    (_maybe_name(init_op), init_fn, message))
            is_ready, message = self._model_ready(sess)
            if not is_ready:
                raise RuntimeError(
                    "Init operations did not make model ready.  Init op: %s, "
                    "init fn: %s, local_init_op: %s, error: %s" %
                    (_maybe_name(init_op), init_fn, self._local_init_op,
                     message))
        except BaseException:
            self._safe_close(sess)
            raise
        return sess

    def recover_session(self, master, saver=None, checkpoint_dir=None,
                        checkpoint_filename_with_path=None,
                        wait_for_checkpoint=False, max_wait_secs=7200,
                        config=None):
        """(session, whether the model is ready); initializes nothing."""
        sess, restored = self._restore_checkpoint(
            master, saver, checkpoint_dir=checkpoint_dir,
            checkpoint_filename_with_path=checkpoint_filename_with_path,
            wait_for_checkpoint=wait_for_checkpoint,
            max_wait_secs=max_wait_secs, config=config)
        local_ok, local_message = self._try_run_local_init_op(sess)
        if not restored:
            return sess, False
        source = checkpoint_dir or checkpoint_filename_with_path
        if not local_ok:
            logging.info("Restoring model from %s did not make model ready "
                         "for local init: %s", source, local_message)
            return sess, False
        is_ready, message = self._model_ready(sess)
        if not is_ready:
            logging.info("Restoring model from %s did not make model ready: "
                         "%s", source, message)
            return sess, False
        logging.info("Restored model from %s", source)
        return sess, is_ready

    def wait_for_session(self, master, config=None,
                         max_wait_secs=float("Inf")):
        """A session on a model that someone else makes ready."""
        self._target = master
        if max_wait_secs is None:
            max_wait_secs = float("Inf")
        deadline = time.time() + max_wait_secs
        wait = _Waiting(self._recovery_wait_secs)
        # One session serves for all looks; making one costs several calls to
        # every task.
        sess = session.Session(self._target, graph=self._graph, config=config)
        local_ok = False
        try:
            while True:
                not_ready_message = None
                try:
                    if not local_ok:
                        local_ok, local_message = \
                            self._try_run_local_init_op(sess)
                    if local_ok:
                        is_ready, not_ready_message = self._model_ready(sess)
                        if is_ready:
                            return sess
                except _LOST as e:
                    # Not a model that is not initialized: nobody is there.
                    local_ok = False
                    local_message = "not reachable: " + e.message
                    self._safe_close(sess)
                    sess = session.Session(self._target, graph=self._graph,
                                           config=config)
                if time.time() >= deadline:
                    raise errors.DeadlineExceededError(
                        None, None, "Session was not ready after waiting %d "
                        "secs." % (max_wait_secs,))
                wait("Waiting for model to be ready.  "
                     "Ready_for_local_init_op:  %s, ready: %s",
                     local_message, not_ready_message)
        except BaseException:
            self._safe_close(sess)
            raise

    def _safe_close(self, sess):
        try:
            sess.close()
        except Exception:  # What led here is more telling.
            pass

    def _model_ready(self, sess):
        return _ready(self._ready_op, sess, "Model not ready")

    def model_is_ready(self, sess):
        """Whether all has a value; None if there is no op that tells."""
        return None if self._ready_op is None else self._model_ready(sess)[0]

    def _model_ready_for_local_init(self, sess):
        return _ready(self._ready_for_local_init_op, sess,
                      "Model not ready for local init")

    def _try_run_local_init_op(self, sess):
        """(whether it ran or there is none, why not)."""
        if self._local_init_op is None:
            return True, None
        is_ready, message = self._model_ready_for_local_init(sess)
        if not is_ready:
            return False, message
        logging.info("Running local_init_op.")
        sess.run(self._local_init_op, options=self._local_init_run_options)
        logging.info("Done running local_init_op.")
        return True, None


def _ready(op, sess, message):
    """(whether `op` finds nothing uninitialized, what it found)."""
    if op is None:
        return True, None
    try:
        value = sess.run(op)
        # Old programs give an int32 here, or an op without a value.
        if value is None or getattr(value, "dtype", None) == np.int32 or \
                value.size == 0:
            return True, None
        return False, "Variables not initialized: " + ", ".join(
            v.decode("utf-8") for v in value)
    except errors.FailedPreconditionError as e:
        if "uninitialized" not in str(e):
            logging.warning("%s : error [%s]", message, str(e))
            raise
        return False, str(e)
