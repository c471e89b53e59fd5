"""Hooks: code that runs before and after each step of a monitored session."""

import collections


class SessionRunHook(object):
    """Override what you need.

    begin() runs once, while the graph may still grow. after_create_session()
    runs for every session, also those made after a failure. end() runs only
    if the loop ended without an error.
    """

    def begin(self):
        pass

    def after_create_session(self, session, coord):
        pass

    def before_run(self, run_context):
        """May return SessionRunArgs to add to the step."""
        return None

    def after_run(self, run_context, run_values):
        pass

    def end(self, session):
        pass


class SessionRunArgs(collections.namedtuple(
        "SessionRunArgs", ["fetches", "feed_dict", "options"])):

    def __new__(cls, fetches, feed_dict=None, options=None):
        return super().__new__(cls, fetches, feed_dict, options)


class SessionRunContext(object):
    """The step that is about to run, or has."""

    __slots__ = ("_original_args", "_session", "_stop_requested")

    def __init__(self, original_args, session):
        self._original_args = original_args
        self._session = session
        self._stop_requested = False

    @property
    def original_args(self):
        return self._original_args

    @property
    def session(self):
        return self._session

    @property
    def stop_requested(self):
        return self._stop_requested

    def request_stop(self):
        self._stop_requested = True


SessionRunValues = collections.namedtuple(
    "SessionRunValues", ["results", "options", "run_metadata"])
