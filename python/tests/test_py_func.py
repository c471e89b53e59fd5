"""tf.py_func: values both ways, errors, threads."""

import gc
import subprocess
import sys
import textwrap
import threading
import weakref

import numpy as np
import pytest

import sluice as tf


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


def run(function, inputs, types, **kwargs):
    with tf.Session() as session:
        return session.run(tf.py_func(function, inputs, types, **kwargs))


def test_arguments_come_as_arrays_and_scalars():
    seen = []

    def see(*args):
        seen.extend(args)
        return np.float32(1)

    run(see, [tf.constant(1.), tf.constant([1, 2]), tf.constant("ab"),
              tf.constant(["a", "b"]), tf.constant(True)], tf.float32)
    assert [type(x) for x in seen] == [np.float32, np.ndarray, bytes,
                                       np.ndarray, np.bool_]
    assert seen[1].dtype == np.int32 and seen[3].tolist() == [b"a", b"b"]


@pytest.mark.parametrize("returned, dtype, value", [
    (1, tf.int64, 1), (b"abc", tf.string, b"abc"), ("abc", tf.string, b"abc"),
    (np.array(["abc", "d"]), tf.string, [b"abc", b"d"]),
    (np.array([b"a\0", b"d"], object), tf.string, [b"a\0", b"d"]),
    (np.ones([2, 3], np.float32).T, tf.float32, [[1, 1]] * 3),
    ([np.float32(2)], tf.float32, 2), (np.zeros([0, 2]), tf.float64, None),
    (True, tf.bool, True),
])
def test_what_a_function_may_return(returned, dtype, value):
    got = run(lambda: returned, [], dtype)
    if value is None:
        assert got.shape == returned.shape
    else:
        assert np.array(got).tolist() == value


def test_several_values_and_none():
    assert run(lambda x: (x, x + 1), [1.], [tf.float32] * 2) == [1, 2]
    op = tf.py_func(lambda: None, [], [])
    assert isinstance(op, tf.Operation)
    with tf.Session() as session:
        assert session.run(op) is None


@pytest.mark.parametrize("returned, dtype, message", [
    (1, tf.int32, "0-th value returned by pyfunc_N is int64, but expects "
                  "int32"),
    ((1., 2.), tf.float64, "pyfunc_N returns 2 values, but expects to see 1 "
                           "values."),
    (None, tf.float64, "pyfunc_N returns 0 values, but expects to see 1 "
                       "values."),
    (object(), tf.string, "Unsupported object type in an array of strings"),
])
def test_values_that_do_not_fit(returned, dtype, message):
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        run(lambda: returned, [], dtype)
    first = str(raised.value).split("\n")[0].split("pyfunc_")
    text = "pyfunc_N".join([first[0]] + [part.lstrip("0123456789")
                                         for part in first[1:]])
    assert text == message


class OwnError(Exception):
    pass


@pytest.mark.parametrize("error, expected", [
    (ValueError, tf.errors.InvalidArgumentError),
    (TypeError, tf.errors.InvalidArgumentError),
    (StopIteration, tf.errors.OutOfRangeError),
    (MemoryError, tf.errors.ResourceExhaustedError),
    (NotImplementedError, tf.errors.UnimplementedError),
    (OwnError, tf.errors.UnknownError), (KeyError, tf.errors.UnknownError),
    (SystemExit, tf.errors.UnknownError),
])
def test_exceptions_become_errors_that_keep_their_text(error, expected):
    def fail(x):
        raise error("no such thing")

    with pytest.raises(expected) as raised:
        run(fail, [1.], tf.float32)
    assert type(raised.value) is expected
    text = str(raised.value)
    assert text.startswith("%s: %s\nTraceback (most recent call last):\n" % (
        error.__name__, error("no such thing")))
    assert "in fail" in text and "script_ops" not in text.split("[[")[0]
    assert raised.value.op.type == "PyFunc"


def test_a_function_may_keep_and_change_what_it_gets_and_gives():
    kept = np.zeros([200], np.float32)

    def change(x):
        x += 1
        kept[:] = x
        return kept

    x = tf.constant(np.zeros([200], np.float32))
    y = tf.py_func(change, [x], tf.float32)
    with tf.Session() as session:
        first, same = session.run([y, x])
        kept[:] = 7
        assert (first == 1).all() and (same == 0).all()


def test_all_functions_run_on_one_thread_and_keep_its_values():
    local = threading.local()
    threads = set()

    def count():
        threads.add(threading.get_ident())
        local.n = getattr(local, "n", 0) + 1
        return local.n

    ops = [tf.py_func(count, [], tf.int64) for _ in range(4)]
    with tf.Session() as session:
        for _ in range(3):
            session.run(ops)
        assert session.run(ops[0]) == 13
    assert len(threads) == 1 and threading.get_ident() not in threads


def test_stateless_functions_of_the_same_arguments_are_merged():
    calls = []

    def note(x):
        calls.append(x)
        return x

    y = tf.py_func(note, [1.], tf.float32, stateful=False)
    assert y.op.type == "PyFuncStateless"
    with tf.Session() as session:
        session.run([y, y])
    assert len(calls) == 1


def test_functions_live_as_long_as_their_graph():
    class Function(object):
        def __call__(self):
            return 1.

    function = Function()
    gone = weakref.ref(function)
    with tf.Graph().as_default():
        tf.py_func(function, [], tf.float64)
        del function
        gc.collect()
        assert gone() is not None
    gc.collect()
    assert gone() is None


def test_what_is_no_function_is_refused():
    with pytest.raises(ValueError, match="Expected func to be callable, got "
                                         "func of type <class 'int'>"):
        tf.py_func(3, [], tf.float32)


def test_closing_a_session_ends_a_step_that_waits_for_a_function():
    started, go_on = threading.Event(), threading.Event()

    def wait():
        started.set()
        go_on.wait(60)
        return 1.

    y = tf.py_func(wait, [], tf.float64)
    session = tf.Session()
    raised = []

    def step():
        try:
            session.run(y)
        except tf.errors.CancelledError as e:
            raised.append(e)

    thread = threading.Thread(target=step)
    thread.start()
    try:
        assert started.wait(60)
        session.close()
        thread.join(60)
        assert len(raised) == 1
    finally:
        go_on.set()
    with tf.Session() as again:  # The thread lives on.
        assert again.run(tf.py_func(lambda: 2., [], tf.float64)) == 2


def test_a_program_ends_while_a_function_runs():
    program = textwrap.dedent("""
        import threading
        import sluice as tf
        started = threading.Event()
        def wait():
            started.set()
            threading.Event().wait()
        y = tf.py_func(wait, [], tf.float64)
        session = tf.Session()
        threading.Thread(target=lambda: session.run(y), daemon=True).start()
        started.wait()
        print("ends")
    """)
    done = subprocess.run([sys.executable, "-c", program], timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    assert (done.returncode, done.stdout) == (0, "ends\n")


def test_it_runs_in_a_server_of_the_same_process():
    server = tf.train.Server.create_local_server()
    y = tf.py_func(lambda x: x * 2, [tf.constant([1., 2.])], tf.float32)
    with tf.Session(server.target) as session:
        assert session.run(y).tolist() == [2, 4]
