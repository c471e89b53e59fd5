"""Usage: recorded_programs.py TARGET. The client programs whose calls are in
tests/golden/rpc, in our words. Prints what the recorded ones printed, after a
line `== NAME` for each."""

import sys

from common import PS, WORKER, np, tf


def constant(target):
  c = tf.constant([1., 2.], name='c')
  with tf.Session(target) as session:
    print(session.run(c))


def feed_fetch_extend(target):
  x = tf.placeholder(tf.float32, [None], name='x')
  y = tf.add(x, 1., name='y')
  z = tf.reduce_sum(y, name='z')
  with tf.Session(target) as session:
    print(session.run([y, z, y], {x: [1, 2]}))
    w = tf.multiply(y, 3., name='w')
    print(session.run(w, {x: [5]}))
    print(session.run(tf.no_op(name='nop')))
    # Devices of a compiler are TensorFlow's own.
    print([d.name for d in session.list_devices() if 'XLA' not in d.name])


def list_devices_first(target):
  tf.no_op()
  with tf.Session(target) as session:
    print(len([d for d in session.list_devices() if 'XLA' not in d.name]))


def dtypes(target):
  values = [
      (tf.bool, [True, False]), (tf.int64, 2**40),
      (tf.string, np.array([[b'a', b''], [b'\xc3\x83\xc2\xa9', b'b' * 130]],
                           dtype=object)),
      (tf.complex64, [1 + 2j]), (tf.float16, [.5, 1.5]), (tf.float64, 2.5),
      (tf.uint8, [1, 255])]
  fed, fetches = {}, []
  for dtype, value in values:
    x = tf.placeholder(dtype, name='p_' + dtype.name)
    fed[x] = value
    fetches.append(tf.identity(x))
  empty = tf.placeholder(tf.float32, [0, 2])
  fed[empty] = np.zeros([0, 2], np.float32)
  with tf.Session(target) as session:
    text = str(session.run(fetches + [tf.identity(empty)], fed))
  for line in text.split('\n'):
    print(line.strip())


def ps_training(target):
  with tf.device(PS):
    v = tf.Variable([1., 2.], name='v', use_resource=False)
  with tf.device(WORKER):
    x = tf.placeholder(tf.float32, [2], name='x')
    loss = tf.reduce_sum(tf.square(v * x), name='loss')
    train = tf.train.GradientDescentOptimizer(.1).minimize(loss)
  with tf.Session(target) as session:
    session.run(tf.global_variables_initializer())
    print(session.run([loss, train], {x: [1, 1]}))
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE,
                            output_partition_graphs=True)
    metadata = tf.RunMetadata()
    print(session.run([loss, train], {x: [1, 1]}, options, metadata))
    assert len(metadata.partition_graphs) == 2
    assert metadata.step_stats.dev_stats
    print(session.run(v))


def resource_variable(target):
  with tf.device(PS):
    rv = tf.get_variable('rv', initializer=tf.constant([1, 2, 3], tf.int64),
                         use_resource=True)
    sv = tf.Variable(['s', 'tt'], name='sv', use_resource=False)
  with tf.device(WORKER):
    add = rv.assign_add([1, 1, 1], read_value=False)
    r = tf.identity(rv, name='r')
    st = tf.identity(sv, name='st')
  with tf.Session(target) as session:
    session.run(tf.global_variables_initializer())
    session.run(add)
    print(session.run([r, st]))


def partial_run(target):
  a = tf.placeholder(tf.float32, [], name='a')
  b = tf.placeholder(tf.float32, [], name='b')
  r1 = tf.add(a, 1., name='r1')
  r2 = tf.multiply(r1, b, name='r2')
  with tf.Session(target) as session:
    handle = session.partial_run_setup([r1, r2], [a, b])
    print(session.partial_run(handle, r1, {a: 1.}))
    print(session.partial_run(handle, r2, {b: 5.}))


def callable_(target):
  from tensorflow.core.protobuf import config_pb2
  a = tf.placeholder(tf.float32, [], name='a')
  r = tf.add(a, 1., name='r')
  with tf.Session(target) as session:
    options = config_pb2.CallableOptions(feed=['a:0'], fetch=['r:0'])
    run = session._make_callable_from_options(options)
    print(run(np.float32(1)), run(np.float32(2)))
    del run
    print(session.make_callable(r, [a])(3.))


def cond_across_tasks(target):
  p = tf.placeholder(tf.bool, [], name='p')
  with tf.device(PS):
    v = tf.constant(4., name='v')

  def square():
    with tf.device(PS):
      return tf.square(v, name='sq')
  with tf.device(WORKER):
    c = tf.cond(p, square, lambda: tf.constant(1.), name='c')
  with tf.Session(target) as session:
    print(session.run(c, {p: True}), session.run(c, {p: False}))


def loop_across_tasks(target):
  with tf.device(PS):
    m = tf.constant(2., name='m')
  n = tf.placeholder(tf.int32, [], name='n')

  def body(i, x):
    with tf.device(PS):
      y = tf.multiply(x, m, name='y')
    return i + 1, y
  with tf.device(WORKER):
    _, result = tf.while_loop(lambda i, x: i < n, body,
                              [tf.constant(0), tf.constant(1.)])
  with tf.Session(target) as session:
    print(session.run(result, {n: 3}))


def errors(target):
  with tf.device(PS):
    uninitialized = tf.Variable(1., name='uninit', use_resource=False)
    z = tf.placeholder(tf.int32, [], name='z')
    q = tf.floordiv(tf.constant(1), z, name='q')
  with tf.device(WORKER):
    r = tf.identity(uninitialized, name='r')
  with tf.Session(target) as session:
    for fetch, feed in (r, {}), (q, {z: 0}):
      try:
        session.run(fetch, feed)
      except tf.errors.OpError as e:
        print(type(e).__name__, e.message.split('\n')[0])


def timeout(target):
  with tf.device(PS):
    queue = tf.FIFOQueue(3, [tf.float32], [[]], name='q')
    d = queue.dequeue(name='d')
  with tf.Session(target) as session:
    try:
      session.run(d, options=tf.RunOptions(timeout_in_ms=300))
    except tf.errors.OpError as e:
      print(type(e).__name__, e.message.split('\n')[0])


def config_isolated(target):
  with tf.device(PS):
    v = tf.Variable(1., name='iso', use_resource=False)
  config = tf.ConfigProto(
      device_filters=['/job:ps', '/job:worker/task:0'],
      isolate_session_state=True, allow_soft_placement=True,
      operation_timeout_in_ms=60000)
  config.graph_options.optimizer_options.opt_level = -1
  with tf.Session(target, config=config) as session:
    session.run(v.initializer)
    print(session.run(v))


def reset(target):
  tf.Session.reset(target)


PROGRAMS = [constant, feed_fetch_extend, list_devices_first, dtypes,
            ps_training, resource_variable, partial_run, callable_,
            cond_across_tasks, loop_across_tasks, errors, timeout,
            config_isolated, reset]

if __name__ == '__main__':
  for program in PROGRAMS:
    print('== %s' % program.__name__.strip('_'))
    with tf.Graph().as_default():
      program(sys.argv[1])
    sys.stdout.flush()
