"""A link to a server that a test can hold up, cut and silence."""

import socket
import threading


class Tap(object):
    """Forwards connections to a server, by a port of its own."""

    def __init__(self, address):
        host, port = address.split(":")
        self._to = (host, int(port))
        self._listener = socket.socket()
        self._listener.bind(("localhost", 0))
        self._listener.listen(16)
        self.address = "localhost:%d" % self._listener.getsockname()[1]
        self._changed = threading.Condition()
        self._answers_left = None  # Bytes; None: as many as there are.
        self._silent = False
        self._open = []
        threading.Thread(target=self._accept, daemon=True).start()

    def let_through(self, size):
        """Holds back what the server sends after so many bytes."""
        with self._changed:
            self._answers_left = size

    def fall_silent(self):
        """Swallows everything, also the ends of connections."""
        with self._changed:
            self._silent = True
            self._changed.notify_all()

    def cut(self):
        """Breaks every connection; what was held back is lost. New connections
        are as at the beginning."""
        with self._changed:
            ends, self._open = self._open, []
            self._answers_left = None
            _shut(ends)
            self._changed.notify_all()

    def close(self):
        self._listener.close()
        self.cut()

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._to)
            except OSError:
                return
            with self._changed:
                self._open += [near, far]
            for ends in ((near, far, False), (far, near, True)):
                threading.Thread(target=self._forward, daemon=True,
                                 args=ends).start()

    def _forward(self, source, sink, answers):
        try:
            while self._pass_on(source.recv(1 << 16), sink, answers):
                pass
        except OSError:
            pass
        with self._changed:
            if not self._silent:
                _shut((source, sink))

    def _pass_on(self, data, sink, answers):
        """Whether more may come."""
        with self._changed:
            if answers:
                self._changed.wait_for(
                    lambda: self._silent or self._answers_left is None or
                    self._answers_left > 0)
                if self._answers_left is not None:
                    self._answers_left -= len(data)
            if self._silent:
                return bool(data)
        sink.sendall(data)
        return bool(data)


def _shut(ends):
    for end in ends:
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
