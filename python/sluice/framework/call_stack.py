"""Where in the user's program an operation was made."""

import contextlib
import linecache
import os
import sys
import traceback

_OWN_FILES = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_CONTEXTLIB = contextlib.__file__


def innermost_of_user(frames):
    """Of (code, line) pairs, the first outside of the library: file:line."""
    for code, line in frames:
        path = code.co_filename
        if not path.startswith(_OWN_FILES) and path != _CONTEXTLIB:
            return "%s:%d" % (path, line)
    return "<unknown>"


def here():
    """The user's line that is being run."""
    return innermost_of_user(_frames(sys._getframe(2)))


def stack():
    """(code, line) of each frame, innermost first. Cheap: no source is read."""
    frames = []
    frame = sys._getframe(2)
    while frame is not None:
        frames.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return frames


def _frames(frame):
    while frame is not None:
        yield frame.f_code, frame.f_lineno
        frame = frame.f_back


def expand(frames):
    return [traceback.FrameSummary(code.co_filename, line, code.co_name,
                                   line=linecache.getline(code.co_filename,
                                                          line).strip())
            for code, line in reversed(frames or [])]
