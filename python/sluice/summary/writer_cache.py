"""FileWriterCache: one writer per directory."""

import threading

from sluice.framework import ops
from sluice.summary.writer import FileWriter


class FileWriterCache(object):

    _cache = {}
    _lock = threading.RLock()

    @staticmethod
    def clear():
        with FileWriterCache._lock:
            for writer in FileWriterCache._cache.values():
                writer.close()
            FileWriterCache._cache = {}

    @staticmethod
    def get(logdir):
        with FileWriterCache._lock:
            if logdir not in FileWriterCache._cache:
                FileWriterCache._cache[logdir] = FileWriter(
                    logdir, graph=ops.get_default_graph())
            return FileWriterCache._cache[logdir]
