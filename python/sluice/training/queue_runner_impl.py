"""QueueRunner: threads that fill a queue."""

import threading
import weakref

from sluice.client import session
from sluice.framework import errors
from sluice.framework import ops
from sluice.framework import protos
from sluice.platform import tf_logging as logging


class QueueRunner(object):
    """Runs enqueue operations, each in a thread, until told to stop."""

    def __init__(self, queue=None, enqueue_ops=None, close_op=None,
                 cancel_op=None, queue_closed_exception_types=None,
                 queue_runner_def=None, import_scope=None):
        if queue_runner_def:
            if queue or enqueue_ops:
                raise ValueError("queue_runner_def and queue are mutually "
                                 "exclusive.")
            self._init_from_proto(queue_runner_def, import_scope)
        else:
            self._init_from_args(queue, enqueue_ops, close_op, cancel_op,
                                 queue_closed_exception_types)
        self._lock = threading.Lock()
        # Threads of a session that still run, counted.
        self._runs_per_session = weakref.WeakKeyDictionary()
        self._exceptions_raised = []

    def _init_from_args(self, queue, enqueue_ops, close_op, cancel_op,
                        closed_types):
        if not queue or not enqueue_ops:
            raise ValueError("Must provide queue and enqueue_ops.")
        self._queue = queue
        self._enqueue_ops = enqueue_ops
        self._close_op = close_op
        self._cancel_op = cancel_op
        if closed_types is not None:
            if not isinstance(closed_types, tuple) or not closed_types or \
                    not all(issubclass(t, errors.OpError)
                            for t in closed_types):
                raise TypeError("queue_closed_exception_types, when provided, "
                                "must be a tuple of tf.error types, but saw: "
                                "%s" % closed_types)
        self._queue_closed_exception_types = closed_types or (
            errors.OutOfRangeError,)
        if self._close_op is None:
            self._close_op = self._queue.close()
        if self._cancel_op is None:
            self._cancel_op = self._queue.close(cancel_pending_enqueues=True)

    def _init_from_proto(self, queue_runner_def, import_scope):
        graph = ops.get_default_graph()

        def element(name):
            return graph.as_graph_element(
                ops.prepend_name_scope(name, import_scope))
        self._queue = element(queue_runner_def.queue_name)
        self._enqueue_ops = [element(n)
                             for n in queue_runner_def.enqueue_op_name]
        self._close_op = element(queue_runner_def.close_op_name)
        self._cancel_op = element(queue_runner_def.cancel_op_name)
        self._queue_closed_exception_types = tuple(
            errors.exception_type_from_error_code(code)
            for code in queue_runner_def.queue_closed_exception_types)
        if not self._queue_closed_exception_types:
            self._queue_closed_exception_types = (errors.OutOfRangeError,)

    queue = property(lambda self: self._queue)
    enqueue_ops = property(lambda self: self._enqueue_ops)
    close_op = property(lambda self: self._close_op)
    cancel_op = property(lambda self: self._cancel_op)
    queue_closed_exception_types = property(
        lambda self: self._queue_closed_exception_types)
    exceptions_raised = property(lambda self: self._exceptions_raised)

    @property
    def name(self):
        return self._queue.name

    def _run(self, sess, enqueue_op, coord=None, index=0):
        ended = False
        try:
            enqueue = self._make_enqueue(sess, enqueue_op, index)
            while True:
                if coord and coord.should_stop():
                    break
                try:
                    enqueue()
                except self._queue_closed_exception_types:
                    with self._lock:
                        self._runs_per_session[sess] -= 1
                        ended = True
                        if self._runs_per_session[sess] == 0:
                            self._run_ignoring_errors(sess, self._close_op)
                        return
        except Exception as e:
            if coord:
                coord.request_stop(e)
            else:
                logging.error("Exception in QueueRunner: %s", str(e))
                with self._lock:
                    self._exceptions_raised.append(e)
                raise
        finally:
            if not ended:
                with self._lock:
                    self._runs_per_session[sess] -= 1

    def _make_enqueue(self, sess, enqueue_op, index):
        """What the thread of that number calls again and again."""
        # A callable made once skips what is the same in every call.
        return sess.make_callable(enqueue_op)

    @staticmethod
    def _run_ignoring_errors(sess, op):
        try:
            sess.run(op)
        except Exception as e:
            logging.vlog(1, "Ignored exception: %s", str(e))

    def _close_on_stop(self, sess, cancel_op, coord, threads):
        coord.wait_for_stop()
        self._run_ignoring_errors(sess, cancel_op)

    def create_threads(self, sess, coord=None, daemon=False, start=False):
        """One thread per operation; none if this session has them already."""
        with self._lock:
            if self._runs_per_session.get(sess, 0) > 0:
                return []
            self._runs_per_session[sess] = len(self._enqueue_ops)
            self._exceptions_raised = []
        threads = [threading.Thread(
            target=self._run, args=(sess, op, coord, i),
            name="QueueRunnerThread-%s-%s" % (self.name, op.name))
            for i, op in enumerate(self._enqueue_ops)]
        if coord:
            threads.append(threading.Thread(
                target=self._close_on_stop,
                args=(sess, self._cancel_op, coord, list(threads)),
                name="QueueRunnerThread-%s-close_on_stop" % self.name))
        for thread in threads:
            if coord:
                coord.register_thread(thread)
            if daemon:
                thread.daemon = True
            if start:
                thread.start()
        return threads

    def to_proto(self, export_scope=None):
        if export_scope is not None and not self.queue.name.startswith(
                export_scope):
            return None
        strip = ops.strip_name_scope
        return protos.QueueRunnerDef(
            queue_name=strip(self.queue.name, export_scope),
            enqueue_op_name=[strip(op.name, export_scope)
                             for op in self.enqueue_ops],
            close_op_name=strip(self.close_op.name, export_scope),
            cancel_op_name=strip(self.cancel_op.name, export_scope),
            queue_closed_exception_types=[
                errors.error_code_from_exception_type(t)
                for t in self._queue_closed_exception_types])

    @staticmethod
    def from_proto(queue_runner_def, import_scope=None):
        return QueueRunner(queue_runner_def=queue_runner_def,
                           import_scope=import_scope)


def add_queue_runner(qr, collection=ops.GraphKeys.QUEUE_RUNNERS):
    ops.add_to_collection(collection, qr)


def start_queue_runners(sess=None, coord=None, daemon=True, start=True,
                        collection=ops.GraphKeys.QUEUE_RUNNERS):
    """Starts the threads of all queue runners of the graph."""
    if sess is None:
        sess = ops.get_default_session()
        if not sess:
            raise ValueError(
                "Cannot start queue runners: No default session is "
                "registered. Use `with sess.as_default()` or pass an explicit "
                "session to tf.start_queue_runners(sess=sess)")
    if not isinstance(sess, session.BaseSession):
        # A monitored session has started them itself.
        if type(sess).__name__ in ("MonitoredSession",
                                   "SingularMonitoredSession"):
            return []
        raise TypeError("sess must be a `tf.Session` object. Given class: "
                        "{}".format(sess.__class__))
    with sess.graph.as_default():
        runners = ops.get_collection(collection)
        if not runners:
            logging.warning(
                "`tf.train.start_queue_runners()` was called when no queue "
                "runners were defined. You can safely remove the call to this "
                "deprecated function.")
        threads = []
        for runner in runners:
            threads.extend(runner.create_threads(sess, coord=coord,
                                                 daemon=daemon, start=start))
    return threads
