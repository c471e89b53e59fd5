"""Real processes for tests: started here, watched by their output, and ended
by their id when the test is over."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = os.environ.get("SLUICE_BUILD", os.path.join(ROOT, "build"))
SLUICE = os.path.join(BUILD, "bin", "sluice")
sys.path.insert(0, os.path.join(ROOT, "tools"))

from free_ports import free_ports  # noqa: E402

# For what should take a moment on an idle machine: generous, as tests share it.
PATIENCE = 90


class Process(object):
    """A program under test; its output is read as it comes."""

    def __init__(self, command, cwd, **options):
        # Whoever runs these tests in the background has it ignored.
        options.setdefault("preexec_fn", lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL))
        self._process = subprocess.Popen(
            command, cwd=str(cwd), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", start_new_session=True, **options)
        self._changed = threading.Condition()
        self._lines = []
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            with self._changed:
                self._lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    @property
    def pid(self):
        return self._process.pid

    @property
    def output(self):
        with self._changed:
            return "\n".join(self._lines)

    def lines(self, text):
        """The lines so far that contain `text`."""
        with self._changed:
            return [line for line in self._lines if text in line]

    def expect(self, text, seconds=PATIENCE, after=0):
        """Waits for the line with `text` behind the first `after` ones.

        Returns the line; fails with all the output if it does not come.
        """
        deadline = time.monotonic() + seconds
        with self._changed:
            while True:
                found = [line for line in self._lines if text in line]
                if len(found) > after:
                    return found[after]
                left = deadline - time.monotonic()
                if self._ended or left <= 0:
                    break
                self._changed.wait(left)
        pytest.fail("no line with %r %s:\n%s" % (
            text, "before the end" if self._ended else
            "within %g s" % seconds, self.output))

    def say(self, line):
        """Writes a line to the program's standard input."""
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def close_input(self):
        self._process.stdin.close()

    def signal(self, number):
        self._process.send_signal(number)
        if number == signal.SIGSTOP:
            # Its threads stop one by one, and may still answer until then.
            deadline = time.monotonic() + PATIENCE
            while not self._stopped() and time.monotonic() < deadline:
                time.sleep(0.001)

    def _stopped(self):
        """Whether all its threads are stopped."""
        tasks = "/proc/%d/task" % self._process.pid
        for thread in os.listdir(tasks):
            try:
                with open(os.path.join(tasks, thread, "stat")) as f:
                    if f.read().rsplit(")", 1)[1].split()[0] not in "Tt":
                        return False
            except (FileNotFoundError, ProcessLookupError):
                return False  # It ended meanwhile; look again.
        return True

    def signal_group(self, number):
        """What Ctrl-C does: everyone on the terminal gets it."""
        os.killpg(self._process.pid, number)

    def exited(self):
        return self._process.poll() is not None

    def kill(self):
        """kill -9, and waits until the process is gone."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def wait(self, seconds=PATIENCE):
        """Waits for the end; returns the exit status."""
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            pytest.fail("still running after %g s:\n%s" % (seconds,
                                                           self.output))
        self._reader.join(10)
        return status


class Processes(object):
    """Starts the processes of one test in its directory."""

    def __init__(self, path):
        self.path = path
        self._started = []
        self._programs = 0

    def start(self, command, **options):
        process = Process([str(c) for c in command], self.path, **options)
        self._started.append(process)
        return process

    def sluice(self, *args, **options):
        """Runs the command; behind the words of `within`, if given."""
        within = tuple(options.pop("within", ()))
        return self.start(within + (SLUICE,) + args, **options)

    def server(self, cluster, job, task=0, **options):
        """`sluice server`, when it serves."""
        text = ";".join("%s=%s" % (name, ",".join(tasks))
                        for name, tasks in sorted(cluster.items()))
        process = self.sluice("server", "--cluster", text, "--job", job,
                              "--task", task, **options)
        process.expect("Started server")
        return process

    def program(self, text, name=None, head=""):
        """A file of its own, as a process may just be reading the last one."""
        if name is None:
            self._programs += 1
            name = "program%d.py" % self._programs
        path = self.path / name
        path.write_text(head + textwrap.dedent(text))
        return path

    def python(self, text, *args, **options):
        """A program of its own process, `import tensorflow` being Sluice."""
        return self.sluice("run", self.program(text), *args, **options)

    def end_all(self):
        for process in self._started:
            process.kill()


@pytest.fixture
def processes(tmp_path):
    made = Processes(tmp_path)
    yield made
    made.end_all()


@pytest.fixture(params=["lane", "grpc"])
def way(request, monkeypatch):
    """How the processes of the test talk to each other."""
    if request.param == "grpc":
        monkeypatch.setenv("SLUICE_LANE", "grpc")
    return request.param


@pytest.fixture
def addresses():
    """A function: so many free addresses on this host."""
    return lambda count: ["localhost:%d" % port for port in free_ports(count)]


def gone(pid):
    """Whether no process has this id, or only its remains."""
    try:
        with open("/proc/%d/stat" % pid) as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def wait_until(condition, what, seconds=PATIENCE):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail("%s: not after %g s" % (what, seconds))
        time.sleep(0.02)
