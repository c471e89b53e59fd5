"""Coordinator: lets threads that work together stop together."""

import contextlib
import sys
import threading
import time

from sluice.framework import errors
from sluice.platform import tf_logging as logging


class Coordinator(object):
    """Any thread may ask all of them to stop, and say why.

        coord = Coordinator()
        ... start threads that loop while not coord.should_stop() ...
        coord.join(threads)
    """

    def __init__(self, clean_stop_exception_types=None):
        if clean_stop_exception_types is None:
            clean_stop_exception_types = (errors.OutOfRangeError,)
        self._clean_stop_exception_types = tuple(clean_stop_exception_types)
        self._lock = threading.Lock()
        self._stop_event = threading.Event()
        self._exc_info_to_raise = None
        self._joined = False
        self._registered_threads = set()

    def _filter_exception(self, ex):
        """None for an exception that only says that all is done."""
        value = ex[1] if isinstance(ex, tuple) else ex
        if isinstance(value, self._clean_stop_exception_types):
            return None
        return ex

    def request_stop(self, ex=None):
        """Asks all to stop; `ex` is an exception or sys.exc_info()."""
        with self._lock:
            ex = self._filter_exception(ex)
            if self._joined:
                # Nobody will look at it any more.
                if isinstance(ex, tuple):
                    raise ex[1].with_traceback(ex[2])
                if ex is not None:
                    raise ex
                return
            if self._stop_event.is_set():
                return
            if ex is not None and self._exc_info_to_raise is None:
                if isinstance(ex, tuple):
                    self._exc_info_to_raise = ex
                else:
                    self._exc_info_to_raise = (type(ex), ex,
                                               ex.__traceback__)
                logging.info("Error reported to Coordinator: %s, %s",
                             self._exc_info_to_raise[0],
                             self._exc_info_to_raise[1])
            self._stop_event.set()

    def clear_stop(self):
        with self._lock:
            self._joined = False
            self._exc_info_to_raise = None
            self._stop_event.clear()

    def should_stop(self):
        return self._stop_event.is_set()

    @contextlib.contextmanager
    def stop_on_exception(self):
        try:
            yield
        except BaseException:
            self.request_stop(ex=sys.exc_info())

    def wait_for_stop(self, timeout=None):
        return self._stop_event.wait(timeout)

    def register_thread(self, thread):
        with self._lock:
            self._registered_threads.add(thread)

    def join(self, threads=None, stop_grace_period_secs=120,
             ignore_live_threads=False):
        """Waits for the threads; raises what was reported to request_stop."""
        with self._lock:
            threads = self._registered_threads.union(threads or ())
        while any(t.is_alive() for t in threads) and not self.wait_for_stop(
                1.0):
            pass
        grace_left = stop_grace_period_secs
        wait = 0.001
        while any(t.is_alive() for t in threads) and grace_left >= 0.0:
            time.sleep(wait)
            grace_left -= wait
            wait *= 2
            wait = max(min(wait, grace_left), 0.001)
        stragglers = [t.name for t in threads if t.is_alive()]
        with self._lock:
            self._joined = True
            self._registered_threads = set()
            if self._exc_info_to_raise:
                _, value, trace = self._exc_info_to_raise
                raise value.with_traceback(trace)
            if stragglers:
                text = "Coordinator stopped with threads still running: %s" % \
                    " ".join(stragglers)
                if not ignore_live_threads:
                    raise RuntimeError(text)
                logging.info(text)

    @property
    def joined(self):
        return self._joined

    def raise_requested_exception(self):
        with self._lock:
            if self._exc_info_to_raise:
                _, value, trace = self._exc_info_to_raise
                raise value.with_traceback(trace)


class LooperThread(threading.Thread):
    """Calls run_loop again and again until the coordinator stops."""

    def __init__(self, coord, timer_interval_secs, target=None, args=None,
                 kwargs=None):
        if not isinstance(coord, Coordinator):
            raise ValueError("'coord' argument must be a Coordinator: %s" %
                             coord)
        super().__init__()
        self.daemon = True
        self._coord = coord
        self._timer_interval_secs = timer_interval_secs
        # threading.Thread has an attribute _target of its own.
        self._looped = target
        self._looped_args = args or ()
        self._looped_kwargs = kwargs or {}
        self._coord.register_thread(self)

    @staticmethod
    def loop(coord, timer_interval_secs, target, args=None, kwargs=None):
        looper = LooperThread(coord, timer_interval_secs, target=target,
                              args=args, kwargs=kwargs)
        looper.start()
        return looper

    def run(self):
        with self._coord.stop_on_exception():
            self.start_loop()
            if self._timer_interval_secs is None:
                while not self._coord.should_stop():
                    self.run_loop()
            else:
                # At fixed times, however long a call takes.
                next_time = time.time()
                while not self._coord.wait_for_stop(
                        max(0.0, next_time - time.time())):
                    next_time += self._timer_interval_secs
                    self.run_loop()
            self.stop_loop()

    def start_loop(self):
        pass

    def stop_loop(self):
        pass

    def run_loop(self):
        if self._looped:
            self._looped(*self._looped_args, **self._looped_kwargs)
