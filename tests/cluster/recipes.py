"""The replication modes as programs: what test_recipes.py runs, one process a
task. recipes.cc is the same in C++.

    recipes.py RECIPE --ps_hosts=… --worker_hosts=… --task_index=N [--logs=DIR]

Every program is a client, or a worker with a server of its own. Some wait for
lines of standard input, so that a test may pace them.
"""

import argparse
import sys
import time

import tensorflow as tf

FLAGS = None


def say(*words):
    print(*words, flush=True)


def target(task):
    return "grpc://" + FLAGS.worker_hosts.split(",")[task]


def cluster():
    return tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","),
                                 "worker": FLAGS.worker_hosts.split(",")})


def serve():
    return tf.train.Server(cluster(), job_name="worker",
                           task_index=FLAGS.task_index)


def on_replica():
    return tf.device(tf.train.replica_device_setter(
        worker_device="/job:worker/task:%d" % FLAGS.task_index,
        cluster=cluster()))


def scalar(name="w"):
    return tf.get_variable(name, [], initializer=tf.zeros_initializer())


def in_graph():
    """One client, towers on two workers; gradient i + 1 from worker i."""
    with tf.device("/job:ps/task:0"):
        w = scalar()
    gradients = []
    for i in range(2):
        with tf.device("/job:worker/task:%d" % i):
            # Stateful, or it would be folded into a constant.
            slope = tf.random_uniform([], i + 1.0, i + 1.0)
            gradients.append(tf.gradients(slope * w, w)[0])
    with tf.device("/job:ps/task:0"):
        train = tf.train.GradientDescentOptimizer(1.0).apply_gradients(
            [(tf.add_n(gradients) / 2.0, w)])
    with tf.Session(target(0)) as session:
        session.run(tf.global_variables_initializer())
        for _ in range(9):
            session.run(train)
        metadata = tf.RunMetadata()
        session.run(train, options=tf.RunOptions(output_partition_graphs=True),
                    run_metadata=metadata)
        say("w", session.run(w))
        for graph in metadata.partition_graphs:
            for node in graph.node:
                if node.op in ("_Send", "_HostSend"):
                    say("edge", node.attr["send_device"].s.decode(),
                        node.attr["recv_device"].s.decode())
        sys.stdin.readline()
        try:
            session.run(train)
        except (tf.errors.UnavailableError, tf.errors.AbortedError):
            say("lost")


def share():
    """Assigns 3 to `w` (worker 0), or reads `w` and `v` (worker 1)."""
    with tf.device("/job:ps/task:0"):
        w, v = scalar(), scalar("v")
    with tf.Session(target(FLAGS.task_index)) as session:
        if FLAGS.task_index == 0:
            session.run(w.assign(3.0))
            say("assigned")
            return
        say("w", session.run(w))
        try:
            session.run(v)
        except tf.errors.FailedPreconditionError:
            say("v is not initialized")


def wait_for_chief():
    """A worker waits for the chief's model; the chief makes one."""
    tf.logging.set_verbosity(tf.logging.INFO)
    server = serve()
    with on_replica():
        w = scalar()
    with tf.train.MonitoredTrainingSession(
            server.target, is_chief=FLAGS.task_index == 0,
            config=tf.ConfigProto(device_filters=[
                "/job:ps", "/job:worker/task:%d" % FLAGS.task_index])) as s:
        say("set up", s.run(w))
        sys.stdin.readline()


def asynchronous():
    """500 runs that each subtract 0.001."""
    server = serve()
    with on_replica():
        w = scalar()
        step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(
            0.001, use_locking=FLAGS.locking == "yes").minimize(
                w, global_step=step)
    with tf.train.MonitoredTrainingSession(
            server.target, is_chief=FLAGS.task_index == 0) as session:
        for _ in range(500):
            session.run(train)
        say("done")
        sys.stdin.readline()
        say("w", "%.6f" % session.run(w), "step", session.run(step))


def sync_model(replicas, total, slope, step=None):
    w = scalar()
    if step is None:
        step = tf.train.get_or_create_global_step()
    optimizer = tf.train.SyncReplicasOptimizer(
        tf.train.GradientDescentOptimizer(1.0), replicas, total)
    train = optimizer.minimize(w * slope, global_step=step)
    return w, step, optimizer, train


def sync_session(server, optimizer, last_step, num_tokens=-1, **kwargs):
    chief = FLAGS.task_index == 0
    return tf.train.MonitoredTrainingSession(
        server.target, is_chief=chief, stop_grace_period_secs=60,
        hooks=[optimizer.make_session_run_hook(chief, num_tokens=num_tokens),
               tf.train.StopAtStepHook(last_step=last_step)], **kwargs)


def sync_exact():
    """Worker i has gradient i + 1; runs once for each line it is given."""
    server = serve()
    with on_replica():
        w, step, optimizer, train = sync_model(2, 2, FLAGS.task_index + 1.0)
    with sync_session(server, optimizer, 10, num_tokens=0) as session:
        say("set up")
        while not session.should_stop():
            sys.stdin.readline()
            at, local, value = session.run_step_fn(
                lambda step_context: (
                    step_context.run_with_hooks(train),) + tuple(
                        step_context.session.run([step, w])))
            say("ran", at, local, value)
    say("ended")


def sync_free():
    """The same at its own pace, with the tokens there are by default."""
    server = serve()
    with on_replica():
        w, step, optimizer, train = sync_model(2, 2, FLAGS.task_index + 1.0)
    with sync_session(server, optimizer, 30) as session:
        while not session.should_stop():
            _, before, value, after = session.run_step_fn(
                lambda step_context: (step_context.run_with_hooks(train),) +
                tuple(step_context.session.run(x) for x in (step, w, step)))
            say("between", before, after, "w", value)
    say("ended")


def backup():
    """Two of three gradients are enough; the third worker is slow and wrong."""
    server = serve()
    slow = FLAGS.task_index == 2
    with on_replica():
        w, step, optimizer, train = sync_model(2, 3, 100.0 if slow else 1.0)
    with sync_session(server, optimizer, 20) as session:
        while not session.should_stop():
            session.run(train)
            if slow:
                time.sleep(1)
            elif not session.should_stop():
                say("w", session.run_step_fn(
                    lambda step_context: step_context.session.run(w)))
    say("ended")


def fewer_workers():
    """One worker for steps of two gradients."""
    server = serve()
    with on_replica():
        w, step, optimizer, train = sync_model(2, 1, 1.0)
    try:
        optimizer.get_init_tokens_op(0)
    except ValueError as e:
        say("ValueError", e)
    runs = 0
    with sync_session(server, optimizer, 10,
                      num_tokens=FLAGS.tokens) as session:
        while not session.should_stop():
            session.run(train)
            runs += 1
    say("runs", runs)


def token():
    """What the training operation gives is the step it made."""
    server = serve()
    dtype = tf.int32 if "int32" in FLAGS.kind else tf.int64
    with on_replica():
        step = tf.get_variable(
            "global_step", [], dtype, initializer=tf.zeros_initializer(),
            trainable=False, use_resource="resource" in FLAGS.kind,
            collections=[tf.GraphKeys.GLOBAL_VARIABLES,
                         tf.GraphKeys.GLOBAL_STEP])
        w, step, optimizer, train = sync_model(1, 1, 1.0, step)
    with sync_session(server, optimizer, 5, num_tokens=0) as session:
        while not session.should_stop():
            say("token", *session.run_step_fn(lambda step_context: (
                step_context.run_with_hooks(train),
                step_context.session.run(step))))
    say("ended")


def recovery():
    """Runs as many steps as each line says; the last goes to the end."""
    tf.logging.set_verbosity(tf.logging.INFO)
    server = serve()
    with on_replica():
        w = scalar()
        step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(1.0).minimize(
            w, global_step=step)
    with tf.train.MonitoredTrainingSession(
            server.target, is_chief=FLAGS.task_index == 0,
            checkpoint_dir=FLAGS.logs, save_checkpoint_steps=10,
            save_checkpoint_secs=None, save_summaries_steps=None,
            hooks=[tf.train.StopAtStepHook(last_step=60)]) as session:
        say("set up")
        while not session.should_stop():
            runs = int(sys.stdin.readline())
            while runs and not session.should_stop():
                session.run(train)
                runs -= 1
            say("paused")
    say("ended")


def supervised():
    """As `recovery`, under a Supervisor that recovers; stops at step 60."""
    tf.logging.set_verbosity(tf.logging.INFO)
    server = serve()
    with on_replica():
        w = scalar()
        step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(1.0).minimize(
            w, global_step=step)
    supervisor = tf.train.Supervisor(
        is_chief=FLAGS.task_index == 0, logdir=FLAGS.logs, save_model_secs=600,
        save_summaries_secs=0, recovery_wait_secs=1, recover=True)
    with supervisor.managed_session(server.target) as session:
        say("begins")
        at = 0
        while not supervisor.should_stop() and at < 60:
            runs = int(sys.stdin.readline())
            while runs and not supervisor.should_stop() and at < 60:
                at = session.run([train, step])[1]
                runs -= 1
            if FLAGS.task_index == 0:
                supervisor.saver.save(session, supervisor.save_path,
                                      global_step=step)
            say("paused", at)
    say("ended")


def uneven():
    """A worker of a synchronous training whose data ends after --runs."""
    tf.logging.set_verbosity(tf.logging.INFO)
    server = serve()
    chief = FLAGS.task_index == 0
    with on_replica():
        w, v = scalar(), scalar("v")
        step = tf.train.get_or_create_global_step()
        optimizer = tf.train.SyncReplicasOptimizer(
            tf.train.GradientDescentOptimizer(0.01), 2,
            step_timeout_secs=FLAGS.timeout,
            least_replicas=FLAGS.least or None)
        train = optimizer.minimize(w + v, global_step=step)
    with tf.device("/job:worker/task:%d" % FLAGS.task_index):
        example = tf.count_up_to(tf.Variable(
            0, trainable=False, name="example",
            collections=[tf.GraphKeys.LOCAL_VARIABLES]), FLAGS.runs)
    with tf.train.MonitoredTrainingSession(
            server.target, is_chief=chief, checkpoint_dir=FLAGS.logs,
            save_checkpoint_steps=10, save_checkpoint_secs=None,
            save_summaries_steps=None, stop_grace_period_secs=300,
            hooks=[optimizer.make_session_run_hook(chief, FLAGS.tokens),
                   tf.train.StopAtStepHook(last_step=FLAGS.last_step)]) as s:
        while not s.should_stop():
            now, _ = s.run([train, example])
            if now % 10 == 0:
                say("step", now)
            if now >= FLAGS.pause:
                say("paused")
                sys.stdin.readline()
    say("ended")


RECIPES = (in_graph, share, wait_for_chief, asynchronous, sync_exact, sync_free,
           backup, fewer_workers, token, recovery, supervised, uneven)

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("recipe", choices=[r.__name__ for r in RECIPES])
    parser.add_argument("--ps_hosts", default="")
    parser.add_argument("--worker_hosts", default="")
    parser.add_argument("--task_index", type=int, default=0)
    parser.add_argument("--logs", default="logs")
    parser.add_argument("--locking", default="yes")
    parser.add_argument("--tokens", type=int, default=-1)
    parser.add_argument("--kind", default="int64")
    parser.add_argument("--runs", type=int, default=10**9)
    parser.add_argument("--pause", type=int, default=10**9)
    parser.add_argument("--last_step", type=int, default=10**9)
    parser.add_argument("--timeout", type=float, default=30)
    parser.add_argument("--least", type=int, default=0)
    FLAGS = parser.parse_args()
    globals()[FLAGS.recipe]()
