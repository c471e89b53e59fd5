"""The hook that saves checkpoints."""

import os

from sluice.framework import meta_graph
from sluice.framework import ops
from sluice.framework import protos
from sluice.platform import tf_logging as logging
from sluice.summary import writer_cache
from sluice.training import graph_io
from sluice.training import session_run_hook
from sluice.training import training_util
from sluice.training.hook_timers import SecondOrStepTimer
from sluice.training.session_run_hook import SessionRunArgs

SessionLog = protos.SessionLog


class CheckpointSaverListener(object):
    """Called around every save of a CheckpointSaverHook."""

    def begin(self):
        pass

    def before_save(self, session, global_step_value):
        pass

    def after_save(self, session, global_step_value):
        """True asks to stop."""

    def end(self, session, global_step_value):
        pass


class CheckpointSaverHook(session_run_hook.SessionRunHook):
    """Saves checkpoints every so many steps or seconds."""

    def __init__(self, checkpoint_dir, save_secs=None, save_steps=None,
                 saver=None, checkpoint_basename="model.ckpt", scaffold=None,
                 listeners=None):
        logging.info("Create CheckpointSaverHook.")
        if saver is not None and scaffold is not None:
            raise ValueError("You cannot provide both saver and scaffold.")
        self._saver = saver
        self._checkpoint_dir = checkpoint_dir
        self._save_path = os.path.join(checkpoint_dir, checkpoint_basename)
        self._scaffold = scaffold
        self._timer = SecondOrStepTimer(every_secs=save_secs,
                                        every_steps=save_steps)
        self._listeners = listeners or []
        self._steps_per_run = 1

    def _set_steps_per_run(self, steps_per_run):
        self._steps_per_run = steps_per_run

    def begin(self):
        self._summary_writer = writer_cache.FileWriterCache.get(
            self._checkpoint_dir)
        self._global_step_tensor = \
            training_util._get_or_create_global_step_read()
        if self._global_step_tensor is None:
            raise RuntimeError("Global step should be created to use "
                               "CheckpointSaverHook.")
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session, coord):
        global_step = session.run(self._global_step_tensor)
        graph = ops.get_default_graph()
        # The graph is finalized now; this is how it is written down.
        graph_def = graph.as_graph_def(add_shapes=True)
        graph_io.write_graph(graph_def, self._checkpoint_dir, "graph.pbtxt")
        saver = self._get_saver()
        saver_def = saver.saver_def if saver else None
        meta_graph_def = meta_graph.create_meta_graph_def(
            graph_def=graph_def, saver_def=saver_def)
        self._summary_writer.add_graph(graph)
        self._summary_writer.add_meta_graph(meta_graph_def)
        # Writing what was just read puts the only good copy at risk.
        self._save(session, global_step, restored=getattr(
            saver, "last_restored", None) == "%s-%d" % (self._save_path,
                                                        global_step))
        self._timer.update_last_triggered_step(global_step)
        self._args = SessionRunArgs(self._global_step_tensor)

    def before_run(self, run_context):
        return self._args

    def after_run(self, run_context, run_values):
        stale = run_values.results
        if self._timer.should_trigger_for_step(stale + self._steps_per_run):
            global_step = run_context.session.run(self._global_step_tensor)
            if self._timer.should_trigger_for_step(global_step):
                self._timer.update_last_triggered_step(global_step)
                if self._save(run_context.session, global_step):
                    run_context.request_stop()

    def end(self, session):
        last_step = session.run(self._global_step_tensor)
        if last_step != self._timer.last_triggered_step():
            self._save(session, last_step)
        for listener in self._listeners:
            listener.end(session, last_step)

    def _save(self, session, step, restored=False):
        """Whether a listener asks to stop."""
        if restored:
            logging.info("The checkpoint for %d in %s was just restored and "
                         "is not written again.", step, self._save_path)
        else:
            logging.info("Saving checkpoints for %d into %s.", step,
                         self._save_path)
        for listener in self._listeners:
            listener.before_save(session, step)
        if not restored:
            self._get_saver().save(session, self._save_path, global_step=step)
        self._summary_writer.add_session_log(
            SessionLog(status=SessionLog.CHECKPOINT,
                       checkpoint_path=self._save_path), step)
        should_stop = False
        for listener in self._listeners:
            if listener.after_save(session, step):
                logging.info("A CheckpointSaverListener requested that "
                             "training be stopped. listener: %s", listener)
                should_stop = True
        return should_stop

    def _get_saver(self):
        if self._saver is not None:
            return self._saver
        if self._scaffold is not None:
            return self._scaffold.saver
        savers = ops.get_collection(ops.GraphKeys.SAVERS)
        if not savers:
            raise RuntimeError(
                "No items in collection %s. Please add a saver to the "
                "collection or provide a saver or scaffold." %
                ops.GraphKeys.SAVERS)
        if len(savers) > 1:
            raise RuntimeError(
                "More than one item in collection %s. Please indicate which "
                "one to use by passing it to the constructor." %
                ops.GraphKeys.SAVERS)
        self._saver = savers[0]
        return savers[0]
