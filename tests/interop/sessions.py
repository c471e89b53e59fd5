"""Usage: sessions.py TARGET PS. Drives a cluster of one ps, at the address PS,
and one worker through the session at TARGET, the worker's."""

import json
import os
import sys
import tempfile
import threading

from common import PS, WORKER, close_to, equal, np, raises, run_checks, tf


def constants(target):
  with tf.Session(target) as session:
    equal(session.run(tf.constant([1.5, 2.5])), [1.5, 2.5])
    assert session.run(tf.constant('text')) == b'text'
    with tf.device(PS):
      there = tf.constant(3)
    with tf.device(WORKER):
      here = there + 4
    assert session.run(here) == 7
    equal(session.run(tf.fill([2, 3], 9)), np.full([2, 3], 9))


def feeds_of_every_type(target):
  values = {
      tf.float32: [1.5, -2], tf.float64: [[1e300]], tf.int32: 2**31 - 1,
      tf.int64: [2**40], tf.uint8: [0, 255], tf.int8: [-128], tf.int16: [-5],
      tf.uint16: [65535], tf.bool: [True, False], tf.string: [b'', b'\0x'],
      tf.complex64: [1 + 2j], tf.float16: [0.5], tf.complex128: [2 - 1j]}
  fetches, feeds = [], {}
  for dtype in values:
    for device in (PS, WORKER):
      with tf.device(device):
        x = tf.placeholder(dtype)
        feeds[x] = np.array(values[dtype], dtype.as_numpy_dtype)
        fetches.append(tf.identity(x))
  with tf.Session(target) as session:
    got = session.run(fetches, feeds)
  for fetch, (x, value) in zip(got, feeds.items()):
    equal(fetch, value)


def large_tensors(target):
  x = tf.placeholder(tf.float32, [None])
  with tf.device(PS):
    y = x * 2
  with tf.device(WORKER):
    z = y + 1
  value = np.arange(5 << 20, dtype=np.float32)
  with tf.Session(target) as session:
    equal(session.run(z, {x: value}), value * 2 + 1)


def nested_fetches(target):
  with tf.Session(target) as session:
    x = tf.constant(2.)
    got = session.run({'a': [x, (x * 2, x)], 'b': tf.no_op(), 'c': x.name})
    assert got == {'a': [2., (4., 2.)], 'b': None, 'c': 2.}, got


def graph_that_grows(target):
  with tf.Session(target) as session:
    total = tf.constant(0)
    for i in range(5):
      total = total + i
      assert session.run(total) == sum(range(i + 1))


def ref_variables(target):
  with tf.device(PS):
    v = tf.Variable([1., 2.], name='ref_v', use_resource=False)
    w = tf.Variable(5, name='ref_w', use_resource=False)
  add = v.assign_add([10., 20.])
  with tf.device(WORKER):
    doubled = v * 2
  with tf.Session(target) as session:
    session.run(tf.global_variables_initializer())
    equal(session.run(add), [11, 22])
    equal(session.run(doubled), [22, 44])
    session.run([w.assign(7), tf.scatter_update(v, [1], [0.])])
    equal(session.run(v), [11, 0])
    assert session.run(w) == 7


def resource_variables(target):
  with tf.device(PS):
    v = tf.get_variable('resource_v', initializer=[[1., 2.], [3., 4.]],
                        use_resource=True)
  with tf.device(WORKER):
    rows = tf.gather(v, [1])
    total = tf.reduce_sum(v)
  add = v.assign_add([[1., 1.], [1., 1.]])
  with tf.Session(target) as session:
    session.run(tf.global_variables_initializer())
    assert session.run(total) == 10
    session.run(add)
    equal(session.run([v, rows])[1], [[4, 5]])
    session.run(tf.scatter_sub(v, [0], [[1., 1.]]))
    equal(session.run(v), [[1, 2], [4, 5]])


def variables_shared_by_two_clients(target):
  def client():
    graph = tf.Graph()
    with graph.as_default(), tf.device(PS):
      v = tf.Variable(0., name='shared_v', use_resource=False)
      return tf.Session(target, graph), v, v.assign_add(1.), v.initializer
  first, v1, add1, init = client()
  second, v2, add2, _ = client()
  with first:
    first.run(init)
    first.run(add1)
    assert second.run(add2) == 2
    assert first.run(v1) == 2
  # The variable outlives the session that made it.
  assert second.run(v2) == 2
  second.close()


def isolated_session(target):
  with tf.device(PS):
    v = tf.Variable(1., name='isolated_v', use_resource=False)
  with tf.Session(target) as shared:
    shared.run(v.initializer)
    config = tf.ConfigProto(isolate_session_state=True)
    with tf.Session(target, config=config) as isolated:
      raises(tf.errors.FailedPreconditionError, lambda: isolated.run(v))
      isolated.run(v.assign(5.))
    assert shared.run(v) == 1


def training_loop(target):
  """Least squares by three optimizers, held against the same sums in NumPy."""
  rng = np.random.RandomState(0)
  inputs = rng.rand(32, 3).astype(np.float32)
  labels = inputs.dot([1., -2., 3.]).astype(np.float32)

  def numpy_steps(update, steps):
    w, state = np.zeros(3), {}
    for t in range(1, steps + 1):
      grad = 2 * inputs.T.dot(inputs.dot(w) - labels) / len(labels)
      w = update(w, grad, state, t)
    return w

  def sgd(w, g, state, t):
    return w - 0.1 * g

  def momentum(w, g, state, t):
    state['m'] = 0.9 * state.get('m', 0) + g
    return w - 0.05 * state['m']

  def adam(w, g, state, t):
    state['m'] = 0.9 * state.get('m', 0) + 0.1 * g
    state['v'] = 0.999 * state.get('v', 0) + 0.001 * g * g
    rate = 0.1 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    return w - rate * state['m'] / (np.sqrt(state['v']) + 1e-8)

  for use_resource in (False, True):
    for name, optimizer, update in [
        ('sgd', tf.train.GradientDescentOptimizer(0.1), sgd),
        ('momentum', tf.train.MomentumOptimizer(0.05, 0.9), momentum),
        ('adam', tf.train.AdamOptimizer(0.1), adam)]:
      with tf.Graph().as_default(), tf.Session(target) as session:
        setter = tf.train.replica_device_setter(ps_tasks=1,
                                                worker_device=WORKER)
        with tf.device(setter), tf.variable_scope('train_%s_%d' %
                                                  (name, use_resource)):
          step = tf.train.get_or_create_global_step()
          w = tf.get_variable('w', [3], initializer=tf.zeros_initializer(),
                              use_resource=use_resource)
          x = tf.placeholder(tf.float32, [None, 3])
          y = tf.placeholder(tf.float32, [None])
          error = tf.reduce_sum(x * w, 1) - y
          loss = tf.reduce_mean(tf.square(error))
          train = optimizer.minimize(loss, step)
        session.run(tf.global_variables_initializer())
        feed = {x: inputs, y: labels}
        losses = [session.run([loss, train], feed)[0] for _ in range(20)]
        assert losses[-1] < losses[0], losses
        close_to(session.run(w), numpy_steps(update, 20), 1e-4)
        assert session.run(step) == 20


def embedding_training(target):
  with tf.device(PS):
    table = tf.get_variable('embedding', initializer=tf.ones([5, 2]))
  ids = tf.placeholder(tf.int32, [None])
  with tf.device(WORKER):
    loss = tf.reduce_sum(tf.nn.embedding_lookup(table, ids))
  train = tf.train.GradientDescentOptimizer(1.).minimize(loss)
  with tf.Session(target) as session:
    session.run(tf.global_variables_initializer())
    session.run(train, {ids: [1, 1, 3]})
    equal(session.run(table), [[1, 1], [-1, -1], [1, 1], [0, 0], [1, 1]])


def queues(target):
  with tf.device(PS):
    queue = tf.FIFOQueue(10, [tf.float32, tf.string], [[2], []],
                         shared_name='interop_queue')
  x = tf.placeholder(tf.float32, [2])
  put = queue.enqueue([x, tf.constant('s')])
  take = queue.dequeue()
  with tf.Session(target) as session:
    for i in range(3):
      session.run(put, {x: [i, i]})
    assert session.run(queue.size()) == 3
    equal(session.run(take)[0], [0, 0])
    numbers, texts = session.run(queue.dequeue_many(2))
    equal(numbers, [[1, 1], [2, 2]])
    equal(texts, [b's', b's'])
    # A dequeue that has to wait for somebody else.
    got = []
    waiting = threading.Thread(target=lambda: got.append(session.run(take)))
    waiting.start()
    session.run(put, {x: [7, 7]})
    waiting.join()
    equal(got[0][0], [7, 7])
    session.run(queue.close())
    raises(tf.errors.OutOfRangeError, lambda: session.run(take))


def errors_have_their_class_and_node(target):
  with tf.device(PS):
    v = tf.Variable(1., name='never_set', use_resource=False)
    zero = tf.placeholder(tf.int32, [], name='zero')
    quotient = tf.floordiv(3, zero, name='quotient')
  r = tf.get_variable('never_set_resource', initializer=1., use_resource=True)
  with tf.Session(target) as session:
    error = raises(tf.errors.FailedPreconditionError, lambda: session.run(v))
    assert 'Attempting to use uninitialized value never_set' in error.message
    assert error.error_code == tf.errors.FAILED_PRECONDITION
    error = raises(tf.errors.FailedPreconditionError, lambda: session.run(r))
    assert 'never_set_resource' in error.message, error.message
    error = raises(tf.errors.InvalidArgumentError,
                   lambda: session.run(quotient, {zero: 0}))
    assert 'division by zero' in error.message, error.message
    assert '/job:ps/replica:0/task:0' in error.message, error.message
    assert error.op is quotient.op, error.op
    error = raises(tf.errors.InvalidArgumentError,
                   lambda: session.run(quotient))
    assert 'You must feed a value' in error.message, error.message
    # The session goes on.
    assert session.run(quotient, {zero: 2}) == 1


def placement_errors(target):
  with tf.device('/job:ps/task:7'):
    x = tf.constant(1.)
  with tf.Session(target) as session:
    error = raises(tf.errors.InvalidArgumentError, lambda: session.run(x))
    assert '/job:ps/task:7' in error.message, error.message


def timeout(target):
  with tf.device(PS):
    queue = tf.FIFOQueue(1, [tf.float32], [[]])
  take = queue.dequeue()
  with tf.Session(target) as session:
    raises(tf.errors.DeadlineExceededError,
           lambda: session.run(take,
                               options=tf.RunOptions(timeout_in_ms=300)))
    session.run(queue.enqueue(4.))
    assert session.run(take) == 4


def close_ends_what_runs(target):
  with tf.device(PS):
    begun = tf.FIFOQueue(1, [tf.float32], [[]])
    queue = tf.FIFOQueue(1, [tf.float32], [[]])
    with tf.control_dependencies([begun.enqueue(1.)]):
      take = queue.dequeue()
  session = tf.Session(target)
  error = []

  def wait():
    try:
      session.run(take)
    except tf.errors.CancelledError as e:
      error.append(e)
  thread = threading.Thread(target=wait)
  thread.start()
  session.run(begun.dequeue())
  session.close()
  thread.join()
  assert 'Session::Close' in error[0].message, error[0].message
  raises(RuntimeError, lambda: session.run(take))


def reset_clears_variables(target):
  with tf.device(PS):
    v = tf.Variable(1., name='reset_v', use_resource=False)
  session = tf.Session(target)
  session.run(v.initializer)
  assert session.run(v) == 1
  tf.Session.reset(target)
  raises(tf.errors.AbortedError, lambda: session.run(v))
  with tf.Session(target) as fresh:
    raises(tf.errors.FailedPreconditionError, lambda: fresh.run(v))


def list_devices(target):
  with tf.Session(target) as session:
    names = [d.name for d in session.list_devices() if d.device_type == 'CPU']
  equal(sorted(names), ['/job:ps/replica:0/task:0/device:CPU:0',
                        '/job:worker/replica:0/task:0/device:CPU:0'])


def device_filters(target):
  config = tf.ConfigProto(device_filters=['/job:worker/task:0'])
  with tf.Session(target, config=config) as session:
    assert all('/job:worker' in d.name for d in session.list_devices())
    with tf.device(PS):
      x = tf.constant(1.)
    raises(tf.errors.InvalidArgumentError, lambda: session.run(x))


def cluster_of_the_session(target):
  """Tasks under the names that the client gives them, with their own state."""
  with tf.device(PS):
    v = tf.Variable(1., name='renamed_v', use_resource=False)
  with tf.Session(target) as plain:
    plain.run(v.initializer)
  cluster = tf.train.ClusterSpec({'store': [sys.argv[2]],
                                  'chief': [target[len('grpc://'):]]})
  config = tf.ConfigProto(cluster_def=cluster.as_cluster_def())
  with tf.Graph().as_default():
    with tf.device('/job:store/task:0'):
      v = tf.Variable(2., name='renamed_v', use_resource=False)
    with tf.device('/job:chief/task:0'):
      y = v * 3.
    with tf.Session(target, config=config) as session:
      names = [d.name for d in session.list_devices() if d.device_type == 'CPU']
      equal(sorted(names), ['/job:chief/replica:0/task:0/device:CPU:0',
                            '/job:store/replica:0/task:0/device:CPU:0'])
      raises(tf.errors.FailedPreconditionError, lambda: session.run(y))
      session.run(v.initializer)
      assert session.run(y) == 6
  config.cluster_def.CopyFrom(
      tf.train.ClusterSpec({'x': ['elsewhere:1']}).as_cluster_def())
  with tf.Graph().as_default(), tf.Session(target, config=config) as session:
    error = raises(tf.errors.InvalidArgumentError,
                   lambda: session.run(tf.constant(1)))
    assert 'is not included in the provided cluster_def' in error.message


def narrow_transfers(target):
  """Floats cross from task to task without their lower half."""
  x = tf.placeholder(tf.float32, [2])
  with tf.device(PS):
    sent = x * 1.
  with tf.device(WORKER):
    y = sent * 1.
  config = tf.ConfigProto()
  config.graph_options.enable_bfloat16_sendrecv = True
  value = np.array([1.01, -3.3], np.float32)
  with tf.Session(target, config=config) as session:
    equal(session.run(y, {x: value}),
          (value.view(np.uint32) & 0xffff0000).view(np.float32))


def soft_placement(target):
  with tf.device('/job:worker/task:0/gpu:3'):
    x = tf.constant(1.) + 1
  config = tf.ConfigProto(allow_soft_placement=True)
  with tf.Session(target, config=config) as session:
    assert session.run(x) == 2


def broadcast_select(target):
  with tf.device(PS):
    x = tf.placeholder(tf.float32, [2, 1])
    y = tf.where_v2(x > 1.5, x, tf.constant([7., 8.]))
    slope = tf.gradients(y, x)[0]
  with tf.Session(target) as session:
    got, grad = session.run([y, slope], {x: [[1.], [2.]]})
  equal(got, [[7, 8], [2, 2]])
  equal(grad, [[0], [2]])


def connected_callables(target):
  from tensorflow.core.protobuf import config_pb2
  a = tf.placeholder(tf.float32, [], name='connect_a')
  with tf.device(PS):
    b = tf.add(a, 1., name='connect_b')
  c = tf.placeholder(tf.float32, [], name='connect_c')
  with tf.device(WORKER):
    tf.multiply(c, 2., name='connect_d')
  options = config_pb2.CallableOptions(feed=['connect_a:0'],
                                       fetch=['connect_d:0'])
  options.tensor_connection.add(from_tensor=b.name, to_tensor=c.name)
  with tf.Session(target) as session:
    call = session._make_callable_from_options(options)
    equal(call(np.float32(1)), [4])
    equal(call(np.float32(2)), [6])
    del call


def callables(target):
  x = tf.placeholder(tf.float32, [])
  with tf.device(PS):
    y = x * 2
  with tf.Session(target) as session:
    double = session.make_callable(y, [x])
    assert double(3.) == 6
    assert double(4.) == 8
    plain = session.make_callable({'k': tf.constant(1)})
    assert plain() == {'k': 1}


def partial_runs(target):
  a = tf.placeholder(tf.float32, [], name='a')
  b = tf.placeholder(tf.float32, [], name='b')
  with tf.device(PS):
    first = a + 1
  with tf.device(WORKER):
    second = first * b
  with tf.Session(target) as session:
    for start in (1., 5.):
      step = session.partial_run_setup([first, second], [a, b])
      got = session.partial_run(step, first, {a: start})
      assert got == start + 1
      assert session.partial_run(step, second, {b: got * 3}) == got * got * 3
    step = session.partial_run_setup([first, second], [a, b])
    error = raises(tf.errors.InvalidArgumentError,
                   lambda: session.partial_run(step, second, {a: 1.}))
    assert "can't be computed from the feeds" in error.message, error.message
    assert session.run(second, {a: 1., b: 2.}) == 4


def run_metadata(target):
  with tf.device(PS):
    v = tf.Variable([1., 2.], name='traced_v', use_resource=False)
  with tf.device(WORKER):
    total = tf.reduce_sum(v * 2., name='traced_total')
  with tf.Session(target) as session:
    session.run(v.initializer)
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE,
                            output_partition_graphs=True)
    assert session.run(total, options=options, run_metadata=metadata) == 6
  nodes = {}
  for device in metadata.step_stats.dev_stats:
    nodes.setdefault(device.device, []).extend(
        n.node_name for n in device.node_stats)
  on_ps = nodes['/job:ps/replica:0/task:0/device:CPU:0']
  on_worker = nodes['/job:worker/replica:0/task:0/device:CPU:0']
  assert 'traced_v' in on_ps, nodes
  assert 'traced_total' in on_worker, nodes
  assert 'RecvTensor' in on_worker, nodes
  graphs = metadata.partition_graphs
  assert any(n.name == 'traced_v' for g in graphs for n in g.node), graphs
  assert any(n.name == 'traced_total' for g in graphs for n in g.node)
  plain = tf.RunMetadata()
  with tf.Session(target) as session:
    session.run(total, run_metadata=plain)
  assert not plain.step_stats.dev_stats and not plain.partition_graphs


def timeline(target):
  from tensorflow.python.client import timeline as timeline_lib
  with tf.device(PS):
    x = tf.random_uniform([100, 100])
  with tf.device(WORKER):
    y = tf.matmul(x, x, name='product')
  with tf.Session(target) as session:
    metadata = tf.RunMetadata()
    session.run(y, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE),
                run_metadata=metadata)
  trace = timeline_lib.Timeline(metadata.step_stats)
  events = json.loads(trace.generate_chrome_trace_format())['traceEvents']
  names = set(e.get('name') for e in events)
  assert 'MatMul' in names and 'RecvTensor' in names, names


def dense_layers(target):
  """TensorFlow's master makes one op of each, of the chain and of the switch."""
  inputs = np.float32([[1, 2, 3], [-1, 0, .5]])
  weights = np.arange(6, dtype=np.float32).reshape(3, 2) - 2
  bias = np.float32([1, -4])
  sums = inputs.dot(weights) + bias
  layers = {
      tf.identity: sums, tf.nn.relu: np.maximum(sums, 0),
      tf.nn.relu6: np.clip(sums, 0, 6),
      tf.nn.elu: np.where(sums > 0, sums, np.expm1(np.minimum(sums, 0))),
      tf.nn.leaky_relu: np.where(sums > 0, sums, .2 * sums),
      tf.nn.tanh: np.tanh(sums), tf.nn.sigmoid: 1 / (1 + np.exp(-sums))}
  x = tf.placeholder(tf.float32, [None, 3])
  for device in (PS, WORKER):
    with tf.device(device):
      made = {act: act(tf.nn.bias_add(tf.matmul(x, weights), bias))
              for act in layers}
      chain = tf.tanh(tf.exp(tf.nn.relu(tf.sin(x))))
    with tf.Session(target) as session:
      for act in layers:
        close_to(session.run(made[act], {x: inputs}), layers[act], 1e-4)
      close_to(session.run(chain, {x: inputs}),
               np.tanh(np.exp(np.maximum(np.sin(inputs), 0))), 1e-4)


def cond_across_tasks(target):
  with tf.device(WORKER):
    x = tf.placeholder(tf.float32, [])

    def square():
      with tf.device(PS):
        return x * x
    y = tf.cond(x > 2., square, lambda: x + 1)
  with tf.Session(target) as session:
    assert session.run(y, {x: 4.}) == 16
    assert session.run(y, {x: 0.}) == 1


def loop_on_one_task(target):
  with tf.device(PS):
    _, total = tf.while_loop(lambda i, t: i < 1000,
                             lambda i, t: (i + 1, t + i), [0, 0])
  with tf.Session(target) as session:
    assert session.run(total) == 499500


def loop_across_tasks(target):
  with tf.device(WORKER):
    def body(i, x):
      with tf.device(PS):
        x = x * 2.
      return i + 1, x
    _, power = tf.while_loop(lambda i, x: i < 10, body, [0, 1.])
  with tf.Session(target) as session:
    assert session.run(power) == 1024


def nested_loops_across_tasks(target):
  with tf.device(WORKER):
    def outer(i, x):
      def inner(j, y):
        with tf.device(PS):
          return j + 1, y + 1
      return i + 1, tf.while_loop(lambda j, y: j < 4, inner, [0, x])[1]
    _, count = tf.while_loop(lambda i, x: i < 3, outer, [0, 0])
  with tf.Session(target) as session:
    assert session.run(count) == 12


def loop_gradient(target):
  with tf.device(WORKER):
    x = tf.placeholder(tf.float32, [])

    def body(i, y):
      with tf.device(PS):
        return i + 1, y * x
    _, power = tf.while_loop(lambda i, y: i < 3, body, [0, tf.identity(x)])
    slope = tf.gradients(power, x)[0]
  with tf.Session(target) as session:
    close_to(session.run([power, slope], {x: 2.}), [16, 32])


def functions(target):
  from tensorflow.python.framework import function

  @function.Defun(tf.float32)
  def inner(a):
    return tf.square(a) + 1.

  @function.Defun(tf.float32, tf.float32)
  def outer(a, b):
    return inner(a) * b, inner(b), a

  x = tf.placeholder(tf.float32, [2])
  for call_on, rest_on in ((PS, WORKER), (WORKER, PS)):
    with tf.device(rest_on):
      twice = x * 2
    with tf.device(call_on):
      first, second, third = outer(twice, x)
    with tf.device(rest_on):
      total = first + second + third
    grad, = tf.gradients(total, x)
    with tf.Session(target) as session:
      got = session.run([total, grad], {x: [1., 2.]})
      close_to(got, [[9., 43.], [17., 55.]])


def monitored_training(target):
  directory = tempfile.mkdtemp()
  with tf.device(tf.train.replica_device_setter(1, worker_device=WORKER)):
    step = tf.train.get_or_create_global_step()
    w = tf.get_variable('monitored_w', initializer=0.)
    loss = tf.square(w - 3.)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
  tf.summary.scalar('loss', loss)

  def run_to(last):
    with tf.train.MonitoredTrainingSession(
        target, is_chief=True, checkpoint_dir=directory,
        hooks=[tf.train.StopAtStepHook(last_step=last)],
        save_checkpoint_steps=5, save_summaries_steps=5) as session:
      while not session.should_stop():
        session.run(train)
  run_to(12)
  assert tf.train.latest_checkpoint(directory).endswith('-12')
  # Someone loses the variables; a new session restores them.
  tf.Session.reset(target)
  run_to(20)
  assert tf.train.latest_checkpoint(directory).endswith('-20')
  reader = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(directory))
  close_to(reader.get_tensor('monitored_w'), 3 - 3 * 0.8**20)
  assert [f for f in os.listdir(directory) if 'tfevents' in f]


def sync_replicas(target):
  with tf.device(tf.train.replica_device_setter(1, worker_device=WORKER)):
    step = tf.train.get_or_create_global_step()
    w = tf.get_variable('sync_w', initializer=1.)
    optimizer = tf.train.SyncReplicasOptimizer(
        tf.train.GradientDescentOptimizer(0.5), replicas_to_aggregate=1,
        total_num_replicas=1)
    train = optimizer.minimize(tf.square(w), step)
  hook = optimizer.make_session_run_hook(is_chief=True)
  with tf.train.MonitoredTrainingSession(target, is_chief=True,
                                         hooks=[hook],
                                         stop_grace_period_secs=1) as session:
    for _ in range(3):
      session.run(train)
    assert session.run(w) == 0


def saver(target):
  directory = tempfile.mkdtemp()
  with tf.device(PS):
    v = tf.get_variable('saved_v', initializer=[1., 2.])
  save = tf.train.Saver()
  with tf.Session(target) as session:
    session.run(v.initializer)
    path = save.save(session, os.path.join(directory, 'model'), global_step=3)
    session.run(v.assign([0., 0.]))
    save.restore(session, path)
    equal(session.run(v), [1, 2])


def sharing_of_queues_by_threads(target):
  """Many open steps at once: each thread waits for its own element."""
  with tf.device(PS):
    queue = tf.FIFOQueue(100, [tf.int32], [[]], shared_name='threads_queue')
  x = tf.placeholder(tf.int32, [])
  put, take = queue.enqueue(x), queue.dequeue()
  got = []
  with tf.Session(target) as session:
    threads = [threading.Thread(target=lambda: got.append(session.run(take)))
               for _ in range(40)]
    for thread in threads:
      thread.start()
    for i in range(40):
      session.run(put, {x: i})
    for thread in threads:
      thread.join()
  equal(sorted(got), range(40))


CHECKS = [
    constants, feeds_of_every_type, large_tensors, nested_fetches,
    graph_that_grows, ref_variables, resource_variables,
    variables_shared_by_two_clients, isolated_session, training_loop,
    embedding_training, queues, errors_have_their_class_and_node,
    placement_errors, timeout, close_ends_what_runs, reset_clears_variables,
    list_devices, device_filters, cluster_of_the_session,
    narrow_transfers, soft_placement, broadcast_select, connected_callables, callables, partial_runs,
    run_metadata, timeline, dense_layers, cond_across_tasks, loop_on_one_task,
    loop_across_tasks, nested_loops_across_tasks, loop_gradient, functions,
    monitored_training, sync_replicas, saver, sharing_of_queues_by_threads]

if __name__ == '__main__':
  run_checks(CHECKS, sys.argv[1])
