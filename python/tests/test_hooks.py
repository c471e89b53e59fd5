"""Monitored sessions: which hook is called when."""

import os
import threading
import time

import numpy as np
import pytest

import sluice as tf
from sluice.platform import tf_logging


class Recorder(tf.train.SessionRunHook):

    def __init__(self, name, log, fetch=None, feed=None):
        self.name, self.log, self.fetch, self.feed = name, log, fetch, feed

    def begin(self):
        self.log.append(self.name + ".begin")

    def after_create_session(self, session, coord):
        self.log.append(self.name + ".session")

    def before_run(self, run_context):
        self.log.append(self.name + ".before")
        if self.fetch is None and self.feed is None:
            return None
        return tf.train.SessionRunArgs(self.fetch, self.feed)

    def after_run(self, run_context, run_values):
        self.log.append(self.name + ".after")
        self.results = run_values.results

    def end(self, session):
        self.log.append(self.name + ".end")


@pytest.fixture
def graph():
    with tf.Graph().as_default() as g:
        yield g


@pytest.fixture
def step(graph):
    step = tf.train.get_or_create_global_step()
    return step.assign_add(1)


RUN = ["a.before", "b.before", "a.after", "b.after"]
START = ["a.begin", "b.begin", "a.session", "b.session"]


def open_session(log, **kwargs):
    hooks = [Recorder("a", log), Recorder("b", log)]
    return tf.train.MonitoredSession(hooks=hooks, **kwargs)


def scenarios(name="monitored_session"):
    """The table that C++ is held against too (tests/scenarios)."""
    path = os.path.join(os.path.dirname(__file__),
                        "../../tests/scenarios/%s.txt" % name)
    with open(path) as table:
        return [[field.strip() for field in line.split("|")]
                for line in table]


def error_of(text):
    code, _, message = text.partition(" ")
    return tf.errors.exception_type_from_error_code(
        getattr(tf.errors, code))(None, None, message)


def creator_that_misses(names):
    """Its model lacks `names` once, if they are there; then it is ready."""
    def look():
        missing = np.array(names, object)
        names.clear()
        return missing
    return tf.train.ChiefSessionCreator(tf.train.Scaffold(
        ready_op=tf.py_func(look, [], tf.string)))


CALLS = {"step": RUN, "half": RUN[:3], "anew": START[2:],
         "end": ["a.end", "b.end"]}


class Acting(Recorder):
    """Does once, after the second step, what a scenario says."""

    steps = 0

    def __init__(self, name, log, act):
        super().__init__(name, log)
        self.act = act
        self.missing = []

    def after_run(self, run_context, run_values):
        super().after_run(run_context, run_values)
        self.steps += 1
        if self.steps == 2 and self.act == "stop":
            run_context.request_stop()
        elif self.steps == 2 and self.act.startswith("error "):
            if "uninitialized value" in self.act:
                self.missing.append("w")
            raise error_of(self.act[len("error "):])


@pytest.mark.parametrize("name, act, loop_error, calls, result", scenarios())
def test_hooks_are_called_in_order_however_it_ends(step, name, act,
                                                   loop_error, calls, result):
    log = []
    expected = START + [c for word in calls.split() for c in CALLS[word]]
    got = "OK"
    acting = Acting("a", log, act)
    try:
        with tf.train.MonitoredSession(
                creator_that_misses(acting.missing),
                hooks=[acting, Recorder("b", log)]) as session:
            for _ in range(2):
                session.run(step)
            assert session.should_stop() == (act == "stop")
            if loop_error != "-":
                raise error_of(loop_error)
    except tf.errors.OpError as e:
        got = tf.errors.exception_type_from_error_code(e.error_code).__name__
        result = type(error_of(result)).__name__
    assert got == result
    assert log == expected


HOOKS = {
    "checkpoint": lambda every, path: tf.train.CheckpointSaverHook(
        path, save_steps=every),
    "counter": lambda every, path: tf.train.StepCounterHook(
        every_n_steps=every),
    "logging": lambda every, path: tf.train.LoggingTensorHook(
        {"seven": tf.constant(7)}, every_n_iter=every),
    "nan": lambda every, path: tf.train.NanTensorHook(
        tf.constant(float("nan")), fail_on_nan_loss=False),
    "waiter": lambda every, path: tf.train.GlobalStepWaiterHook(every),
}


@pytest.mark.parametrize("name, every, steps, lines", scenarios("hooks"))
def test_hooks_act_when_they_should(step, tmp_path, monkeypatch, name, every,
                                    steps, lines):
    said = []
    for level in ("info", "warning"):
        monkeypatch.setattr(tf_logging, level,
                            lambda text, *args: said.append(text % args))
    hook = HOOKS[name](int(every), str(tmp_path))
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        for _ in range(int(steps)):
            if not session.should_stop():
                session.run(step)
    starts = [line.strip() for line in lines.split(",") if line.strip()]
    of_hook = ("Saving", "global_step/sec", "seven", "Model", "Waiting for gl")
    found = [line for line in said if line.startswith(of_hook)]
    assert len(found) == len(starts), found
    for line, start in zip(found, starts):
        assert line.startswith(start)


def test_after_an_error_of_python_hooks_do_not_end(step):
    log = []
    with pytest.raises(ValueError):
        with open_session(log) as session:
            session.run(step)
            raise ValueError("x")
    assert log == START + RUN


def test_a_hook_gets_what_it_fetches(step):
    log = []
    hook = Recorder("a", log, fetch={"x": tf.constant(5.0)})
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        session.run(step)
    assert hook.results == {"x": np.float32(5)}


def test_a_tensor_is_fed_once(step):
    x = tf.placeholder(tf.float32, [])
    feeding = [Recorder(n, [], feed={x: 1.0}) for n in "ab"]
    with tf.train.MonitoredSession(hooks=feeding[:1]) as session:
        assert session.run(x) == 1.0
        with pytest.raises(RuntimeError, match="SessionRunHook and user"):
            session.run(x, feed_dict={x: 2.0})
    with tf.train.MonitoredSession(hooks=feeding) as session:
        with pytest.raises(RuntimeError, match="fed by two hooks"):
            session.run(x)


def test_the_loop_stops_at_its_last_step(step):
    with tf.train.MonitoredSession(
            hooks=[tf.train.StopAtStepHook(last_step=3)]) as session:
        runs = 0
        while not session.should_stop():
            session.run(step)
            runs += 1
        assert runs == 3
        with pytest.raises(RuntimeError, match="Run called even after"):
            session.run(step)


def test_a_step_function_runs_with_and_without_hooks(step):
    log = []
    with open_session(log) as session:
        def one(step_context):
            step_context.session.run(step)
            return step_context.run_with_hooks(step)
        assert session.run_step_fn(one) == 2
        with pytest.raises(ValueError, match="step_context"):
            session.run_step_fn(lambda x: x)
    assert log == START + RUN + ["a.end", "b.end"]


def test_a_closed_session_cannot_be_closed_again(step):
    session = tf.train.MonitoredSession()
    session.close()
    assert session.should_stop()
    with pytest.raises(RuntimeError, match="already closed"):
        session.close()


def test_a_session_unfinalizes_its_graph(graph, step):
    with tf.train.MonitoredSession():
        with pytest.raises(RuntimeError, match="finalized"):
            tf.constant(1)
    tf.constant(1)


class Sessions(tf.train.SessionRunHook):
    """The coordinators of the sessions that were made."""

    def __init__(self):
        self.coords = []

    def after_create_session(self, session, coord):
        self.coords.append(coord)


@pytest.mark.parametrize("text, missing, sessions", [
    ("Attempting to use uninitialized value w", ["w"], 2),
    ("Attempting to use uninitialized value w", [], 1),
    ("not this", ["w"], 1)])
def test_a_thread_may_be_the_first_to_see_an_empty_ps(graph, step, text,
                                                      missing, sessions):
    names = []
    hook = Sessions()
    error = tf.errors.FailedPreconditionError(None, None, text)
    try:
        with tf.train.MonitoredSession(
                creator_that_misses(names), hooks=[hook]) as session:
            session.run(step)
            names.extend(missing)
            hook.coords[0].request_stop(error)
            assert session.should_stop() == (sessions == 1)
    except tf.errors.FailedPreconditionError:
        assert sessions == 1
    assert len(hook.coords) == sessions


class PlainCreator(tf.train.SessionCreator):
    """One that a program brings; it cannot tell whether its model is ready."""

    def create_session(self):
        session = tf.Session()
        session.run(tf.train.get_global_step().initializer)
        return session


@pytest.mark.parametrize("creator, sessions", [
    (tf.train.ChiefSessionCreator, 1), (PlainCreator, 2)])
def test_a_value_that_nobody_initializes_is_an_error_and_no_lost_task(
        graph, step, creator, sessions):
    forgotten = tf.get_variable("forgotten", initializer=0.0,
                                collections=["mine"])
    hook = Sessions()
    with pytest.raises(tf.errors.FailedPreconditionError, match="forgotten"):
        with tf.train.MonitoredSession(creator(), hooks=[hook]) as session:
            assert session.run(step) == 1
            session.run(forgotten)
    assert len(hook.coords) == sessions


def test_a_thread_that_waits_in_a_step_ends_with_its_period_of_grace(graph,
                                                                     step):
    queue = tf.FIFOQueue(1, tf.int32)
    item = queue.dequeue()

    class Waiting(tf.train.SessionRunHook):
        def after_create_session(self, session, coord):
            def wait():
                with pytest.raises(tf.errors.CancelledError):
                    session.run(item)
            self.thread = threading.Thread(target=wait, daemon=True)
            coord.register_thread(self.thread)
            self.thread.start()

    hook = Waiting()
    with tf.train.MonitoredSession(hooks=[hook],
                                   stop_grace_period_secs=0.1) as session:
        session.run(step)
    hook.thread.join(30)
    assert not hook.thread.is_alive()


def test_a_thread_may_end_the_step_it_is_in(graph, step):
    ended = []

    def slowly(count):
        # Beyond the second in which steps used to be ended.
        time.sleep(1.5)
        return count

    last = tf.py_func(slowly, [tf.train.get_global_step()], tf.int64)

    class Reporting(tf.train.SessionRunHook):
        def after_create_session(self, session, coord):
            def report():
                coord.wait_for_stop()
                ended.append(session.run(last))
            thread = threading.Thread(target=report, daemon=True)
            coord.register_thread(thread)
            thread.start()

    with tf.train.MonitoredSession(hooks=[Reporting()]) as session:
        session.run(step)
    assert ended == [1]


def test_timers_fire_at_first_and_then_every_so_many_steps():
    timer = tf.train.SecondOrStepTimer(every_steps=3)
    fired = []
    for step in [0, 0, 1, 2, 3, 4, 5, 7, 8]:
        if timer.should_trigger_for_step(step):
            timer.update_last_triggered_step(step)
            fired.append(step)
    assert fired == [0, 3, 7]
    with pytest.raises(ValueError, match="Either every_secs"):
        tf.train.SecondOrStepTimer()
    with pytest.raises(ValueError, match="Can not provide both"):
        tf.train.SecondOrStepTimer(every_secs=1, every_steps=1)


def test_training_saves_and_resumes(tmp_path):
    def train(last_step):
        with tf.Graph().as_default():
            w = tf.Variable(1.0, name="w")
            step = tf.train.get_or_create_global_step()
            train_op = tf.train.GradientDescentOptimizer(0.1).minimize(
                tf.square(w), global_step=step)
            tf.summary.scalar("w", w)
            values = []
            with tf.train.MonitoredTrainingSession(
                    checkpoint_dir=str(tmp_path), save_checkpoint_steps=2,
                    save_summaries_steps=1, log_step_count_steps=1,
                    hooks=[tf.train.StopAtStepHook(last_step=last_step)]
            ) as session:
                while not session.should_stop():
                    values.append(session.run([train_op, step])[1])
            return values
    assert len(train(5)) == 5
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("model.ckpt-5")
    assert len(train(7)) == 2
    found = dict(tf.train.list_variables(str(tmp_path)))
    assert set(found) == {"w", "global_step"}
    np.testing.assert_allclose(tf.train.load_variable(str(tmp_path), "w"),
                               0.8**7, rtol=1e-5)
    assert (tmp_path / "graph.pbtxt").exists()
    events = list(tmp_path.glob("events.out.tfevents.*"))
    tags = {v.tag for path in events
            for e in tf.train.summary_iterator(str(path))
            for v in e.summary.value}
    assert {"w_1", "global_step/sec"} <= tags
