"""SessionManager: sessions whose variables are initialized."""

import time

from sluice.platform.lazy_numpy import np

from sluice.client import session
from sluice.framework import errors
from sluice.framework import ops
from sluice.platform import tf_logging as logging
from sluice.training import checkpoint_management

# Between looks whether a model is ready; recovery_wait_secs is the longest.
_FIRST_WAIT_SECS = 0.05
_LONGEST_WAIT_SECS = 2.0
# Between lines that say so.
_SAY_SO_SECS = 10.0


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
    """Initializes a model, restores it, or waits until someone else did."""

    def __init__(self, local_init_op=None, ready_op=None,
                 ready_for_local_init_op=None, graph=None,
                 recovery_wait_secs=30, local_init_run_options=None):
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
                return sess, False
            if checkpoint_filename_with_path:
                saver.restore(sess, checkpoint_filename_with_path)
                return sess, True
            start = time.time()
            wait = _Waiting(self._recovery_wait_secs)
            state = checkpoint_management.get_checkpoint_state(checkpoint_dir)
            while not state or not state.model_checkpoint_path:
                if not wait_for_checkpoint or \
                        time.time() - start >= max_wait_secs:
                    return sess, False
                wait("Waiting for checkpoint to be available.")
                state = checkpoint_management.get_checkpoint_state(
                    checkpoint_dir)
            saver.restore(sess, state.model_checkpoint_path)
            saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
            return sess, True
        except BaseException:
            self._safe_close(sess)
            raise

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
        try:
            while True:
                not_ready_message = None
                local_ok, local_message = self._try_run_local_init_op(sess)
                if local_ok:
                    is_ready, not_ready_message = self._model_ready(sess)
                    if is_ready:
                        return sess
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
