"""Supervisor: the training helper before monitored sessions."""

import contextlib
import os
import threading
import time

from sluice.framework import default_session
from sluice.framework import dtypes
from sluice.framework import errors
from sluice.framework import meta_graph
from sluice.framework import ops
from sluice.framework import protos
from sluice.ops import control_flow_ops
from sluice.ops import variables
from sluice.platform import tf_logging as logging
from sluice.summary import summary as _summary
from sluice.summary import writer as _writer
from sluice.training import coordinator
from sluice.training import graph_io
from sluice.training import resources
from sluice.training import saver as saver_mod
from sluice.training import session_layers
from sluice.training import session_manager as session_manager_mod
from sluice.training import training_util

SessionLog = protos.SessionLog
_GraphKeys = ops.GraphKeys


class Supervisor(object):
    """Initializes, restores, saves, records and stops together.

    When it stops, and not because of an error, it saves once more, unless
    `save_on_stop` is false or it does not save anyway. A chief that was started
    anew goes on from the model in the parameter servers if other workers have
    brought that further than the checkpoint, unless `continue_live_training`
    is false.

    With `recover` its sessions outlive the loss of a task: when a step or a
    thread ends with ABORTED or UNAVAILABLE, there is a new session, restored or
    waited for as the first one was, and the step is run again. Services, queue
    runners and loops are started again.
    """

    # "Not given", where None switches a service off.
    USE_DEFAULT = 0

    def __init__(self, graph=None, ready_op=USE_DEFAULT,
                 ready_for_local_init_op=USE_DEFAULT, is_chief=True,
                 init_op=USE_DEFAULT, init_feed_dict=None,
                 local_init_op=USE_DEFAULT, logdir=None,
                 summary_op=USE_DEFAULT, saver=USE_DEFAULT,
                 global_step=USE_DEFAULT, save_summaries_secs=120,
                 save_model_secs=600, recovery_wait_secs=30,
                 stop_grace_secs=120, checkpoint_basename="model.ckpt",
                 session_manager=None, summary_writer=USE_DEFAULT,
                 init_fn=None, local_init_run_options=None,
                 save_on_stop=True, continue_live_training=True,
                 recover=False):
        if graph is None:
            graph = ops.get_default_graph()
        self._graph = graph
        with graph.as_default():
            self._init_ready_op(ready_op, ready_for_local_init_op)
            self._init_init_op(init_op, init_feed_dict)
            self._init_local_init_op(local_init_op)
            self._init_saver(saver)
            self._init_summary_op(summary_op)
            self._init_global_step(global_step)
        self._local_init_run_options = local_init_run_options
        self._logdir = logdir
        self._save_summaries_secs = save_summaries_secs
        self._save_model_secs = save_model_secs
        self._recovery_wait_secs = recovery_wait_secs
        self._stop_grace_secs = stop_grace_secs
        self._init_fn = init_fn
        self._save_on_stop = save_on_stop
        self._continue_live_training = continue_live_training
        self._is_chief = is_chief
        self._coord = coordinator.Coordinator()
        self._started_threads = []
        self._recover = recover
        # With `recover`: the session, and what the program started in it.
        self._recovering_session = None
        self._own_runners = []
        self._own_loops = []
        # The session to save when this stops, and the step that was saved.
        self._saved_session = None
        self._saved_step = None
        if is_chief:
            self._summary_writer = None
            if self._is_default(summary_writer):
                if self._logdir:
                    self._summary_writer = _writer.FileWriter(self._logdir)
            else:
                self._summary_writer = summary_writer
            self._save_path = os.path.join(
                self._logdir, checkpoint_basename) if self._logdir else None
            self._graph_added_to_summary = False
        else:
            self._logdir = None
            self._save_summaries_secs = None
            self._save_model_secs = None
            self._save_path = None
            self._summary_writer = None
            self._graph_added_to_summary = True
        self._init_session_manager(session_manager)
        self._verify_setup()
        graph.finalize()

    # ---- What was not given ----

    @staticmethod
    def _is_default(value):
        return isinstance(value, int) and value == Supervisor.USE_DEFAULT \
            and not isinstance(value, bool)

    @staticmethod
    def _get_first_op_from_collection(key):
        found = ops.get_collection(key)
        if not found:
            return None
        if len(found) > 1:
            logging.info("Found %d %s operations. Returning the first one.",
                         len(found), key)
        return found[0]

    def _or_default(self, value, key, make):
        if not self._is_default(value):
            return value
        value = self._get_first_op_from_collection(key)
        if value is None:
            value = make()
            if value is not None:
                ops.add_to_collection(key, value)
        return value

    def _init_ready_op(self, ready_op, ready_for_local_init_op):
        self._ready_op = self._or_default(
            ready_op, _GraphKeys.READY_OP,
            variables.report_uninitialized_variables)
        if self._is_default(ready_for_local_init_op):
            ready_for_local_init_op = self._get_first_op_from_collection(
                _GraphKeys.READY_FOR_LOCAL_INIT_OP)
        self._ready_for_local_init_op = ready_for_local_init_op

    def _init_init_op(self, init_op, init_feed_dict):
        self._init_op = self._or_default(
            init_op, _GraphKeys.INIT_OP,
            variables.global_variables_initializer)
        self._init_feed_dict = init_feed_dict

    def _init_local_init_op(self, local_init_op):
        def make():
            parts = [variables.local_variables_initializer(),
                     resources.tables_initializer()]
            return control_flow_ops.group(*parts)
        self._local_init_op = self._or_default(
            local_init_op, _GraphKeys.LOCAL_INIT_OP, make)

    def _init_saver(self, saver):
        self._saver = self._or_default(
            saver, _GraphKeys.SAVERS,
            lambda: saver_mod.Saver() if variables.global_variables()
            else None)

    def _init_summary_op(self, summary_op):
        self._summary_op = self._or_default(
            summary_op, _GraphKeys.SUMMARY_OP, _summary.merge_all)

    def _init_global_step(self, global_step):
        self._global_step = self._or_default(
            global_step, _GraphKeys.GLOBAL_STEP,
            self._default_global_step_tensor)

    def _default_global_step_tensor(self):
        try:
            step = ops.get_default_graph().get_tensor_by_name("global_step:0")
        except KeyError:
            return None
        if step.dtype.base_dtype in (dtypes.int32, dtypes.int64):
            return step
        logging.warning("Found 'global_step' is not an int type: %s",
                        step.dtype)
        return None

    def _init_session_manager(self, session_manager=None):
        if session_manager is not None:
            self._session_manager = session_manager
            return
        self._session_manager = session_manager_mod.SessionManager(
            local_init_op=self._local_init_op, ready_op=self._ready_op,
            ready_for_local_init_op=self._ready_for_local_init_op,
            graph=self._graph, recovery_wait_secs=self._recovery_wait_secs,
            local_init_run_options=self._local_init_run_options,
            continue_live_training=self._continue_live_training)
        self._session_manager.global_step = self._global_step

    def _verify_setup(self):
        """Replicas must not each have variables of their own."""
        if self._is_chief:
            return
        for op in self._graph.get_operations():
            if op.type in ("Variable", "VariableV2") and not op.device:
                raise ValueError("When using replicas, all Variables must "
                                 "have their device set: %s" % op)

    # ---- What it has ----

    is_chief = property(lambda self: self._is_chief)
    session_manager = property(lambda self: self._session_manager)
    coord = property(lambda self: self._coord)
    init_op = property(lambda self: self._init_op)
    init_feed_dict = property(lambda self: self._init_feed_dict)
    ready_op = property(lambda self: self._ready_op)
    ready_for_local_init_op = property(
        lambda self: self._ready_for_local_init_op)
    summary_writer = property(lambda self: self._summary_writer)
    summary_op = property(lambda self: self._summary_op)
    save_summaries_secs = property(lambda self: self._save_summaries_secs)
    global_step = property(lambda self: self._global_step)
    saver = property(lambda self: self._saver)
    save_model_secs = property(lambda self: self._save_model_secs)
    save_path = property(lambda self: self._save_path)

    # ---- Sessions ----

    def _write_graph(self):
        assert self._is_chief
        if self._logdir:
            graph_io.write_graph(self._graph.as_graph_def(add_shapes=True),
                                 self._logdir, "graph.pbtxt")
        if self._summary_writer and not self._graph_added_to_summary:
            self._summary_writer.add_graph(self._graph)
            self._summary_writer.add_meta_graph(
                meta_graph.create_meta_graph_def(
                    graph_def=self._graph.as_graph_def(add_shapes=True),
                    saver_def=self._saver.saver_def if self._saver else None,
                    graph=self._graph))
            self._graph_added_to_summary = True

    def prepare_or_wait_for_session(self, master="", config=None,
                                    wait_for_checkpoint=False,
                                    max_wait_secs=7200,
                                    start_standard_services=True):
        """A session on a model that is ready, with its services running."""
        def prepare():
            return self._prepare_session(
                master, config, wait_for_checkpoint, max_wait_secs,
                start_standard_services)
        if not self._recover:
            return prepare()
        self._own_runners, self._own_loops = [], []
        self._recovering_session = RecoveringSession(_SessionMaker(
            prepare, self))
        return self._recovering_session

    def _prepare_session(self, master, config, wait_for_checkpoint,
                         max_wait_secs, start_standard_services):
        # A new run: what stopped the last one is past.
        self._coord.clear_stop()
        if self._summary_writer:
            self._summary_writer.reopen()
        if self._is_chief:
            sess = self._session_manager.prepare_session(
                master, init_op=self.init_op, saver=self.saver,
                checkpoint_dir=self._logdir,
                wait_for_checkpoint=wait_for_checkpoint,
                max_wait_secs=max_wait_secs, config=config,
                init_feed_dict=self._init_feed_dict, init_fn=self._init_fn)
            self._write_graph()
            if start_standard_services:
                logging.info("Starting standard services.")
                self.start_standard_services(sess)
        else:
            sess = self._session_manager.wait_for_session(
                master, config=config, max_wait_secs=max_wait_secs)
        if start_standard_services:
            logging.info("Starting queue runners.")
            self.start_queue_runners(sess)
        return sess

    def start_standard_services(self, sess):
        """Threads that record summaries, count steps and save."""
        if isinstance(sess, RecoveringSession):
            sess = sess.raw_session()
        if not self._is_chief:
            raise RuntimeError("Only chief supervisor can start standard "
                               "services. Because only chief supervisors can "
                               "write events.")
        if not self._logdir:
            logging.warning("Standard services need a 'logdir' passed to the "
                            "SessionManager")
            return None
        if self._global_step is not None and self._summary_writer:
            # Readers drop what an earlier run wrote beyond this step.
            step = training_util.global_step(sess, self._global_step)
            self._summary_writer.add_session_log(
                SessionLog(status=SessionLog.START), step)
        threads = []
        if self._save_summaries_secs and self._summary_writer:
            if self._summary_op is not None:
                threads.append(SVSummaryThread(self, sess))
            if self._global_step is not None:
                threads.append(SVStepCounterThread(self, sess))
        if self.saver and self._save_model_secs:
            threads.append(SVTimerCheckpointThread(self, sess))
            self._saved_session = sess
        for thread in threads:
            thread.start()
        self._started_threads.extend(threads)
        return threads

    def start_queue_runners(self, sess, queue_runners=None):
        if isinstance(sess, RecoveringSession):
            self._own_runners.append(queue_runners)
            sess = sess.raw_session()
        if queue_runners is None:
            queue_runners = self._graph.get_collection(
                _GraphKeys.QUEUE_RUNNERS)
        threads = []
        for runner in queue_runners:
            threads.extend(runner.create_threads(sess, coord=self._coord,
                                                 daemon=True, start=True))
        self._started_threads.extend(threads)
        return threads

    PrepareSession = prepare_or_wait_for_session
    StartStandardServices = start_standard_services
    StartQueueRunners = start_queue_runners

    def loop(self, timer_interval_secs, target, args=None, kwargs=None):
        if self._recovering_session is not None:
            self._own_loops.append((timer_interval_secs, target, args, kwargs))
        return self._start_loop(timer_interval_secs, target, args, kwargs)

    def _start_loop(self, timer_interval_secs, target, args, kwargs):
        looper = coordinator.LooperThread(self._coord, timer_interval_secs,
                                          target=target, args=args,
                                          kwargs=kwargs)
        looper.start()
        self._started_threads.append(looper)
        return looper

    Loop = loop

    def _start_again(self, sess):
        """What the program started by itself in the session before this."""
        for runners in self._own_runners:
            self.start_queue_runners(sess, runners)
        for arguments in self._own_loops:
            self._start_loop(*arguments)

    def stop(self, threads=None, close_summary_writer=True,
             ignore_live_threads=False):
        """Stops the services; raises what one of them reported."""
        self._recovering_session = None
        self._coord.request_stop()
        try:
            self._coord.join(threads,
                             stop_grace_period_secs=self._stop_grace_secs,
                             ignore_live_threads=ignore_live_threads)
            self._save_at_the_end()
        finally:
            self._saved_session = None
            if close_summary_writer and self._summary_writer:
                # Tells readers where this run ended.
                self._summary_writer.add_session_log(
                    SessionLog(status=SessionLog.STOP))
                self._summary_writer.close()
                self._graph_added_to_summary = False

    Stop = stop

    def _save(self, sess):
        logging.info("Saving checkpoint to path %s", self._save_path)
        if self._global_step is None:
            self.saver.save(sess, self._save_path)
            return
        # Before the values: others may train on while they are saved.
        step = training_util.global_step(sess, self._global_step)
        self.saver.save(sess, self._save_path, global_step=step)
        self._saved_step = step
        if self._summary_writer:
            self._summary_writer.add_session_log(
                SessionLog(status=SessionLog.CHECKPOINT,
                           checkpoint_path=self._save_path), self._saved_step)

    def _save_at_the_end(self):
        sess = self._saved_session
        if sess is None or sess._closed or not self._save_on_stop:
            return
        try:
            if self._global_step is None or self._saved_step != \
                    training_util.global_step(sess, self._global_step):
                self._save(sess)
        except errors.OpError as e:
            logging.warning("The model could not be saved at the end: %s", e)

    def request_stop(self, ex=None):
        self._coord.request_stop(ex=ex)

    RequestStop = request_stop

    def should_stop(self):
        if self._recovering_session is not None:
            # Unless it is a lost task that stopped the threads.
            return self._recovering_session.should_stop()
        return self._coord.should_stop()

    ShouldStop = should_stop

    def stop_on_exception(self):
        return self._coord.stop_on_exception()

    StopOnException = stop_on_exception

    def wait_for_stop(self):
        self._coord.wait_for_stop()

    WaitForStop = wait_for_stop

    def summary_computed(self, sess, summary, global_step=None):
        """Records a summary the program computed itself."""
        if not self._summary_writer:
            raise RuntimeError("Writing a summary requires a summary writer.")
        if global_step is None and self.global_step is not None:
            global_step = training_util.global_step(sess, self.global_step)
        self._summary_writer.add_summary(summary, global_step)

    SummaryComputed = summary_computed

    @contextlib.contextmanager
    def managed_session(self, master="", config=None,
                        start_standard_services=True,
                        close_summary_writer=True):
        sess = None
        try:
            sess = self.prepare_or_wait_for_session(
                master=master, config=config,
                start_standard_services=start_standard_services)
            yield sess
        except Exception as e:  # Ctrl-C is no error; it stops and goes on.
            self.request_stop(e)
        finally:
            try:
                # Raises what ended the block, or a thread.
                self.stop(close_summary_writer=close_summary_writer)
            finally:
                try:
                    if sess is not None:
                        sess.close()
                except Exception:  # What led here is more telling.
                    pass


class _SessionMaker(object):
    """Makes the sessions of a RecoveringSession."""

    def __init__(self, prepare, supervisor):
        self._prepare = prepare
        self._supervisor = supervisor
        self._made = 0
        self.tf_sess = None

    def create_session(self):
        sv = self._supervisor
        self.tf_sess = self._prepare()
        if self._made:
            sv._start_again(self.tf_sess)
        self._made += 1
        return session_layers._CoordinatedSession(self.tf_sess, sv.coord,
                                                  sv._stop_grace_secs)

    def model_is_ready(self):
        return self._supervisor.session_manager.model_is_ready(self.tf_sess)


class RecoveringSession(session_layers._RecoverableSession):
    """What a Supervisor that recovers gives for a Session.

    Only the thread that prepared it makes new sessions; in others the error
    comes up, by which the threads stop and that one learns of it.
    """

    is_a_session = True

    def __init__(self, maker):
        self._owner = threading.get_ident()
        super().__init__(maker)

    def raw_session(self):
        """The session of the moment, for savers and queue runners."""
        return self._sess_creator.tf_sess

    def _recovering(self, call):
        if threading.get_ident() != self._owner:
            return call()
        return super()._recovering(call)

    def _check_stop(self):
        if threading.get_ident() != self._owner:
            return self._sess is None or self._sess._coord.should_stop()
        return super()._check_stop()

    @property
    def graph(self):
        return self.raw_session().graph

    def as_default(self):
        return default_session.default_sessions.entered(self)

    def __enter__(self):
        self._entered = contextlib.ExitStack()
        self._entered.enter_context(self.graph.as_default())
        self._entered.enter_context(self.as_default())
        return self

    def __exit__(self, exc_type, exc_value, exc_traceback):
        self._entered.close()
        self.close()

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.raw_session(), name)


class SVSummaryThread(coordinator.LooperThread):
    """Records the summaries of the graph, in steps of its own."""

    def __init__(self, sv, sess):
        super().__init__(sv.coord, sv.save_summaries_secs)
        self._sv = sv
        self._sess = sess

    def run_loop(self):
        try:
            if self._sv.global_step is not None:
                summaries, step = self._sess.run([self._sv.summary_op,
                                                  self._sv.global_step])
                step = int(step)
            else:
                summaries, step = self._sess.run(self._sv.summary_op), None
        except errors.InvalidArgumentError as e:
            if "You must feed a value for placeholder" not in e.message:
                raise
            raise errors.InvalidArgumentError(
                e.node_def, e.op, "The Supervisor runs its summary_op by "
                "itself, in a step that feeds nothing: " + e.message +
                " Give it summary_op=None and record what training steps "
                "fetch by Supervisor.summary_computed().")
        if self._sv.summary_writer:
            logging.info("Recording summary at step %s.", step)
            self._sv.summary_writer.add_summary(summaries, step)


class SVStepCounterThread(coordinator.LooperThread):
    """Records how many steps run in a second."""

    def __init__(self, sv, sess, step_counter=None):
        super().__init__(sv.coord, sv.save_summaries_secs)
        self._sv = sv
        self._sess = sess
        self._last_time = 0.0
        self._last_step = 0
        self._logged = 0
        self._step_counter = sv.global_step if step_counter is None else \
            step_counter
        self._summary_tag = "%s/sec" % self._step_counter.op.name

    def start_loop(self):
        self._last_time = time.time()
        self._last_step = training_util.global_step(self._sess,
                                                    self._step_counter)

    def run_loop(self):
        step = training_util.global_step(self._sess, self._step_counter)
        now = time.time()
        elapsed = now - self._last_time
        added = step - self._last_step
        steps_per_sec = added / elapsed if elapsed > 0 else float("inf")
        self._last_time, self._last_step = now, step
        summary = protos.Summary(value=[protos.Summary.Value(
            tag=self._summary_tag, simple_value=steps_per_sec)])
        if self._sv.summary_writer:
            self._sv.summary_writer.add_summary(summary, step)
        if self._logged < 10:
            self._logged += 1
            logging.info("%s: %g", self._summary_tag, steps_per_sec)


class SVTimerCheckpointThread(coordinator.LooperThread):
    """Saves the model every so often."""

    def __init__(self, sv, sess):
        super().__init__(sv.coord, sv.save_model_secs)
        self._sv = sv
        self._sess = sess

    def run_loop(self):
        self._sv._save(self._sess)


def basic_train_loop(supervisor, train_step_fn, args=None, kwargs=None,
                     master=""):
    """Calls train_step_fn(session, …) until it is time to stop."""
    args = list(args or [])
    kwargs = kwargs or {}
    should_retry = True
    while should_retry:
        try:
            should_retry = False
            with supervisor.managed_session(master) as sess:
                while not supervisor.should_stop():
                    train_step_fn(sess, *args, **kwargs)
        except (errors.AbortedError, errors.UnavailableError):
            should_retry = True
