"""Logging of programs and of the library, through Python's `logging`.

Everything goes to the logger "tensorflow" and comes out on stderr as
`LEVEL:tensorflow:message`, once.
"""

import collections
import logging as _logging
import os
import sys
import threading

DEBUG = _logging.DEBUG
INFO = _logging.INFO
WARN = _logging.WARN
ERROR = _logging.ERROR
FATAL = _logging.FATAL

_logger = None
_logger_lock = threading.Lock()
_counters = collections.defaultdict(int)


class _Stderr(_logging.StreamHandler):
    """Writes to what sys.stderr is at the time, which tests replace."""

    def __init__(self, stream_name):
        _logging.Handler.__init__(self)
        self._stream_name = stream_name

    @property
    def stream(self):
        return getattr(sys, self._stream_name)


def _get_logger():
    global _logger
    if _logger is not None:
        return _logger
    with _logger_lock:
        if _logger is not None:
            return _logger
        logger = _logging.getLogger("tensorflow")
        interactive = hasattr(sys, "ps1") or bool(sys.flags.interactive)
        if interactive and logger.level == _logging.NOTSET:
            logger.setLevel(INFO)
        # A program that set up logging itself gets the lines its own way.
        if not _logging.getLogger().handlers and not logger.handlers:
            handler = _Stderr("stdout" if interactive else "stderr")
            handler.setFormatter(_logging.Formatter(_logging.BASIC_FORMAT))
            logger.addHandler(handler)
        _logger = logger
    return _logger


def get_logger():
    return _get_logger()


def raise_to_info():
    """What app.run does: INFO is seen, unless the program chose a level."""
    logger = _get_logger()
    if logger.level == _logging.NOTSET:
        logger.setLevel(INFO)


def log(level, msg, *args, **kwargs):
    _get_logger().log(level, msg, *args, **kwargs)


def debug(msg, *args, **kwargs):
    _get_logger().debug(msg, *args, **kwargs)


def info(msg, *args, **kwargs):
    _get_logger().info(msg, *args, **kwargs)


def warn(msg, *args, **kwargs):
    _get_logger().warning(msg, *args, **kwargs)


def warning(msg, *args, **kwargs):
    _get_logger().warning(msg, *args, **kwargs)


def error(msg, *args, **kwargs):
    _get_logger().error(msg, *args, **kwargs)


def fatal(msg, *args, **kwargs):
    _get_logger().fatal(msg, *args, **kwargs)


def vlog(level, msg, *args, **kwargs):
    _get_logger().log(level, msg, *args, **kwargs)


def _call_site():
    frame = sys._getframe(2)
    return frame.f_code, frame.f_lineno


def log_every_n(level, msg, n, *args):
    """Logs the first, the n+1st, … of the calls from one line."""
    site = _call_site()
    count = _counters[site]
    _counters[site] += 1
    if count % n == 0:
        log(level, msg, *args)


def log_first_n(level, msg, n, *args):
    site = _call_site()
    count = _counters[site]
    _counters[site] += 1
    if count < n:
        log(level, msg, *args)


def log_if(level, msg, condition, *args):
    if condition:
        log(level, msg, *args)


def TaskLevelStatusMessage(msg):
    error(msg)


def flush():
    for handler in _get_logger().handlers:
        handler.flush()


def get_verbosity():
    return _get_logger().getEffectiveLevel()


def set_verbosity(v):
    _get_logger().setLevel(v)


def deprecated(message, *args):
    """A notice about an old name; quiet unless SLUICE_WARN_DEPRECATED=1."""
    loud = os.environ.get("SLUICE_WARN_DEPRECATED") == "1"
    log(WARN if loud else DEBUG, message, *args)
