"""Ctrl-C ends the step that the main thread waits for.

Python runs signal handlers between its own instructions, and a session waits
outside of them. So a thread reads the signals that Python notes down, and when
SIGINT comes it interrupts the session that the main thread is in; the handler
then runs there as soon as the step has ended.
"""

import os
import signal
import sys
import threading
import time

# How long a step is given to end, in tries.
_TRIES = 600
_PAUSE_SECS = 0.05

_pipe = None


def watch(waiting_code):
    """Starts the thread, once and from the main thread only.

    `waiting_code` are the code objects of methods that wait for a step and
    whose `self` is the session.
    """
    global _pipe
    if _pipe is not None or \
            threading.current_thread() is not threading.main_thread():
        return
    read, write = os.pipe()
    os.set_blocking(write, False)
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    if before != -1:
        # Another library listens there, which then has Ctrl-C to itself.
        signal.set_wakeup_fd(before)
        os.close(read)
        os.close(write)
        return
    _pipe = read, write
    threading.Thread(target=_read_signals, args=(read, waiting_code),
                     name="sluice-interrupts", daemon=True).start()


def _read_signals(read, waiting_code):
    while True:
        noted = os.read(read, 64)
        if not noted:
            return
        if signal.SIGINT in noted:
            _interrupt(waiting_code)


def _interrupt(waiting_code):
    main = threading.main_thread().ident
    waiting = None
    for _ in range(_TRIES):
        frame = sys._current_frames().get(main)
        if frame is None or frame.f_code not in waiting_code or (
                waiting is not None and frame is not waiting):
            return
        waiting = frame
        # Again if the step was only about to start.
        frame.f_locals["self"]._interrupt()
        time.sleep(_PAUSE_SECS)


def _forget():
    """A forked process has the pipe but not the thread."""
    global _pipe
    if _pipe is not None:
        signal.set_wakeup_fd(-1)
        for end in _pipe:
            os.close(end)
        _pipe = None


os.register_at_fork(after_in_child=_forget)
