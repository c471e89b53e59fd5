"""FileWriter: writes summaries and graphs where TensorBoard reads them."""

import atexit
import os
import time
import warnings
import weakref

from sluice import _sluice
from sluice.framework import errors
from sluice.framework import meta_graph
from sluice.framework import ops
from sluice.framework import protos
from sluice.platform import tf_logging as logging

_open_writers = weakref.WeakSet()


def _close_all():
    for writer in list(_open_writers):
        try:
            writer.close()
        except Exception:  # The process ends; nobody can act on it.
            pass


atexit.register(_close_all)


class EventFileWriter(object):
    """An event file. A thread writes it and flushes it now and then."""

    def __init__(self, logdir, max_queue=10, flush_secs=120,
                 filename_suffix=None):
        logdir = os.fspath(logdir)
        self._logdir = logdir.decode() if isinstance(logdir, bytes) else logdir
        os.makedirs(self._logdir or ".", exist_ok=True)
        self._queue = _sluice.EventQueue(self._logdir, max_queue, flush_secs,
                                         filename_suffix or "")
        _open_writers.add(self)

    def get_logdir(self):
        return self._logdir

    def reopen(self):
        self._queue.reopen()

    def add_event(self, event):
        """Waits only when as many events as `max_queue` are not written."""
        self._queue.add(event.SerializeToString())

    def flush(self):
        """Raises what the disk says, but not that the file is gone: that was
        logged, and the next event starts a new one."""
        try:
            self._queue.flush()
        except errors.UnknownError:
            pass

    def close(self):
        self._queue.close()


class SummaryToEventTransformer(object):
    """Wraps summaries, graphs and logs in events."""

    def __init__(self, event_writer, graph=None, graph_def=None):
        self.event_writer = event_writer
        # Tags whose metadata is in the file already.
        self._seen_summary_tags = set()
        self._session_run_tags = {}
        if graph is not None or graph_def is not None:
            self.add_graph(graph=graph, graph_def=graph_def)
            if isinstance(graph, ops.Graph):
                self.add_meta_graph(meta_graph.create_meta_graph_def(
                    graph_def=graph.as_graph_def(add_shapes=True),
                    graph=graph))

    def add_summary(self, summary, global_step=None):
        if isinstance(summary, bytes):
            parsed = protos.Summary()
            parsed.ParseFromString(summary)
            summary = parsed
        for value in summary.value:
            if not value.HasField("metadata"):
                continue
            if value.tag in self._seen_summary_tags:
                value.ClearField("metadata")
            else:
                self._seen_summary_tags.add(value.tag)
        self._add_event(protos.Event(summary=summary), global_step)

    def add_session_log(self, session_log, global_step=None):
        self._add_event(protos.Event(session_log=session_log), global_step)

    def add_graph(self, graph, global_step=None, graph_def=None):
        if graph is not None and graph_def is not None:
            raise ValueError("Please pass only graph, or graph_def "
                             "(deprecated), but not both.")
        if isinstance(graph, ops.Graph):
            graph_def = graph.as_graph_def(add_shapes=True)
        elif isinstance(graph, protos.GraphDef) or isinstance(
                graph_def, protos.GraphDef):
            logging.warning("Passing a `GraphDef` to the SummaryWriter is "
                            "deprecated. Pass a `Graph` object instead, such "
                            "as `sess.graph`.")
            graph_def = graph if graph is not None else graph_def
        else:
            raise TypeError("The passed graph must be an instance of `Graph` "
                            "or the deprecated `GraphDef`")
        self._add_event(
            protos.Event(graph_def=graph_def.SerializeToString()),
            global_step)

    def add_meta_graph(self, meta_graph_def, global_step=None):
        if not isinstance(meta_graph_def, protos.MetaGraphDef):
            raise TypeError("meta_graph_def must be type MetaGraphDef, saw "
                            "type: %s" % type(meta_graph_def))
        self._add_event(
            protos.Event(meta_graph_def=meta_graph_def.SerializeToString()),
            global_step)

    def add_run_metadata(self, run_metadata, tag, global_step=None):
        if tag in self._session_run_tags:
            raise ValueError("The provided tag was already used for this "
                             "event type")
        self._session_run_tags[tag] = True
        tagged = protos.TaggedRunMetadata(
            tag=tag, run_metadata=run_metadata.SerializeToString())
        self._add_event(protos.Event(tagged_run_metadata=tagged), global_step)

    def _add_event(self, event, step):
        event.wall_time = time.time()
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)


class FileWriter(SummaryToEventTransformer):
    """Writes summaries and other events of a run to its directory."""

    def __init__(self, logdir, graph=None, max_queue=10, flush_secs=120,
                 graph_def=None, filename_suffix=None, session=None):
        self._closed = False
        super().__init__(EventFileWriter(logdir, max_queue, flush_secs,
                                         filename_suffix), graph, graph_def)

    def __enter__(self):
        return self

    def __exit__(self, unused_type, unused_value, unused_traceback):
        self.close()

    def get_logdir(self):
        return self.event_writer.get_logdir()

    def _warn_if_event_writer_is_closed(self):
        if self._closed:
            warnings.warn("Attempting to use a closed FileWriter. The "
                          "operation will be a noop unless the FileWriter is "
                          "explicitly reopened.")

    def _add_event(self, event, step):
        self._warn_if_event_writer_is_closed()
        super()._add_event(event, step)

    def add_event(self, event):
        self._warn_if_event_writer_is_closed()
        self.event_writer.add_event(event)

    def flush(self):
        self._warn_if_event_writer_is_closed()
        self.event_writer.flush()

    def close(self):
        self.event_writer.flush()
        self.event_writer.close()
        self._closed = True

    def reopen(self):
        self.event_writer.reopen()
        self._closed = False
