"""The stack of default sessions, and what runs on its top."""

import contextlib
import threading


class Stack(threading.local):
    def __init__(self):
        super().__init__()
        self.items = []

    @contextlib.contextmanager
    def entered(self, item, enforce_nesting=True):
        self.items.append(item)
        try:
            yield item
        finally:
            nested = bool(self.items) and self.items[-1] is item
            if item in self.items:
                self.items.reverse()
                self.items.remove(item)
                self.items.reverse()
            if enforce_nesting and not nested:
                raise AssertionError(
                    "Nesting violated for default stack of %s objects" %
                    type(item))

    def top(self):
        return self.items[-1] if self.items else None


default_sessions = Stack()


def get_default_session():
    return default_sessions.top()


def eval_tensor(tensor, feed_dict, graph, session):
    if session is None:
        session = get_default_session()
        if session is None:
            raise ValueError(
                "Cannot evaluate tensor using `eval()`: No default session is "
                "registered. Use `with sess.as_default()` or pass an explicit "
                "session to `eval(session=sess)`")
        if session.graph is not graph:
            raise ValueError(
                "Cannot use the default session to evaluate tensor: the "
                "tensor's graph is different from the session's graph. Pass "
                "an explicit session to `eval(session=sess)`.")
    elif session.graph is not graph:
        raise ValueError(
            "Cannot use the given session to evaluate tensor: the tensor's "
            "graph is different from the session's graph.")
    return session.run(tensor, feed_dict)


def run_operation(operation, feed_dict, graph, session):
    if session is None:
        session = get_default_session()
        if session is None:
            raise ValueError(
                "Cannot execute operation using `run()`: No default session "
                "is registered. Use `with sess.as_default():` or pass an "
                "explicit session to `run(session=sess)`")
        if session.graph is not graph:
            raise ValueError(
                "Cannot use the default session to execute operation: the "
                "operation's graph is different from the session's graph. "
                "Pass an explicit session to run(session=sess).")
    elif session.graph is not graph:
        raise ValueError(
            "Cannot use the given session to execute operation: the "
            "operation's graph is different from the session's graph.")
    session.run(operation, feed_dict)
