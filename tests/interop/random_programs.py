"""Usage: random_programs.py FIRST LAST. Runs the programs of these seeds and
prints a line for each: its seed, and what its steps gave as JSON. With --print
it prints the programs instead.

A program runs on a cluster of one ps and two workers, whose servers are all in
this process, or without a cluster on as many devices. tests/interop/run
compares what TensorFlow and Sluice print."""

import faulthandler
import json
import os
import sys

from program_texts import DEVICES, LARGEST, SHAPES, Statements, Tensor

sys.path.append(os.path.join(os.path.dirname(__file__), '../../tools'))
# No program needs this long; one that does is stuck, and ends the process.
PROGRAM_SECONDS = 10


class Program(Statements):
  """A whole program: a graph that grows, and steps between."""

  def over_rows(self):
    """A function of each row, in the loops that the library writes. Rows have
    no order, so they touch no state."""
    variables, self.variables = self.variables, []
    a = self.any(1)
    shape = a.shape[1:]
    function = self.name('f')
    x = Tensor(self.name('x'), shape, LARGEST, a.feeds, False)
    y = x._replace(name=self.name('y'))
    kind = self.choose('map_fn', 'scan', 'foldl', 'foldr')
    arguments = [x] if kind == 'map_fn' else [x, y]
    made, results, feeds, pure, _, _ = self.body(
        x, [shape], 'def %s(%s):' % (function, ', '.join(
            [t.name for t in arguments])),
        lambda: [self.join_pool(t, [a]) for t in arguments])
    self.variables = variables
    self.lines += made
    self.line('  return ' + results[0])
    made = self.tensor('tf.%s(%s, %s)' % (kind, function, a.name),
                       shape if kind.startswith('fold') else a.shape,
                       LARGEST,
                       [a], 'tf.device(None)')
    self.pool[-1] = made._replace(feeds=made.feeds | feeds,
                                  pure=made.pure and pure)

  def tensor_array(self):
    """A loop that reads rows of one array and writes to another."""
    a, x = self.any(1), self.any()
    n = a.shape[0]
    rows, out, function = self.name('a'), self.name('a'), self.name('f')
    # TensorFlow refuses ops that ask for another device than their array.
    source, target = [self.device(self.random.randrange(DEVICES))
                      for _ in range(2)]
    made = '%s = tf.TensorArray(tf.float32, %d, clear_after_read=False, ' \
           'colocate_with_first_write_call=False)'
    self.say((made + '.unstack(%s)') % (rows, n, a.name), source)
    self.say(made % (out, n), target)
    self.line('def %s(i, x, out):' % function)
    value, shape = self.choose(('x', x.shape), ('row', a.shape[1:]),
                               ('row * 2', a.shape[1:]))
    self.indent += '  '
    self.say('row = %s.read(i)' % rows, source)
    self.say('x = tf.tanh(x + tf.reduce_sum(row))', self.device())
    self.say('out = out.write(i, %s)' % value, target)
    self.line('return i + 1, x, out')
    self.indent = self.indent[2:]
    self.say('_, _, %s = tf.while_loop(lambda i, x, out: i < %d, %s, '
             '[tf.constant(0), tf.zeros_like(%s), %s])' %
             (out, n, function, x.name, out))
    text, shape = self.choose(
        ('stack()', (n,) + shape), ('read(%d)' % (n - 1), shape),
        ('gather([%d, 0])' % (n - 1), (2,) + shape))
    self.tensor('%s.%s' % (out, text), shape, a.bound * 2 + 1, [a, x], target)

  def gradient(self):
    y = self.any()
    near = [t for t in self.pool if t.name in self.origins[y.name]]
    others = [self.any() if self.chance(15) else self.random.choice(near)
              for _ in range(self.choose(1, 2, 3))]
    names = [self.name() for _ in others]
    self.say('%s, = gradients(%s, [%s], %s)' %
             (', '.join(names), y.name, ', '.join(o.name for o in others),
              self.chance(50)), self.device())
    feeds = y.feeds.union(*[o.feeds for o in others])
    for name, other in zip(names, others):
      self.tensor('tf.clip_by_value(%s, -2., 2.)' % name, other.shape, 2,
                  [Tensor(name, other.shape, 99, feeds, False)])

  def grow(self, statements):
    for _ in range(statements):
      ways = [self.unary, self.binary, self.binary, self.reduce, self.matmul,
              self.join, self.part, self.part]
      if self.variables:
        ways += [self.read, self.read, self.write, self.write]
      if self.depth < 3:
        ways += [self.cond, self.loop]
      if self.depth < 2:
        ways += [self.over_rows, self.tensor_array]
      if not self.depth:
        ways += [self.cond, self.loop, self.gradient, self.gradient]
      self.random.choice(ways)()

  # Steps.

  def placeholder(self, text, value, shape=()):
    name = self.name('p')
    self.line('%s = tf.placeholder(%s)' % (name, text))
    self.values[name] = value
    return Tensor(name, shape, 1.5, frozenset([name]), True)

  def begin(self):
    self.counts = [self.placeholder(
        'tf.int32, []', lambda: self.random.randrange(5)) for _ in range(2)]
    self.flags = [self.placeholder(
        'tf.bool, []', lambda: self.chance(50)) for _ in range(2)]
    for _ in range(3):
      shape = self.choose(*SHAPES)
      static = [None] * len(shape) if self.unknown else list(shape)
      made = self.placeholder('tf.float32, %s' % static,
                              lambda s=shape: self.literal(s), shape)
      self.join_pool(made, [])
    for _ in range(self.random.randrange(5)):
      self.variable()
    if self.variables:
      self.line('step(tf.global_variables_initializer())')

  def fed(self, feeds, more=''):
    return '{%s}' % ', '.join(
        ['%s: %s' % (name, self.values[name]()) for name in sorted(feeds)] +
        ([more] if more else []))

  def fetches(self):
    made = [t for t in self.pool[-12:] if t.name not in self.values]
    return self.random.sample(made, min(len(made), self.choose(1, 2, 4)))

  def step(self):
    fetches = self.fetches()
    names = [t.name for t in fetches]
    feeds = frozenset().union(*[t.feeds for t in fetches])
    if self.chance(20):
      written = [w for a in self.accesses.values() for w in a.writes]
      names.append('tf.group(%s)' % ', '.join(written))
      feeds = self.values
    # Only what no state is behind: who waits for it would wait no more.
    pure = [t for t in self.pool if t.pure and t.name not in self.values and
            t not in fetches]
    more = ''
    if pure and self.chance(25):
      t = self.random.choice(pure)
      more = '%s: %s' % (t.name, self.literal(t.shape))
    self.line('step([%s], %s, %d)' % (', '.join(names), self.fed(feeds, more),
                                      self.random.randrange(2)))

  def partial(self):
    given, parts = frozenset(), []
    for t in self.fetches():
      parts.append('([%s], %s)' % (t.name, self.fed(t.feeds - given)))
      given |= t.feeds
    if given:
      self.line('partial_steps([%s])' % ', '.join(parts))

  def queue(self):
    """Steps that put into a queue and steps that take from it."""
    shape, name = self.choose(*SHAPES), self.name('q')
    device = self.device(self.random.randrange(DEVICES))
    self.say('%s = tf.FIFOQueue(9, tf.float32, [%s], shared_name=%r)' %
             (name, list(shape), name), device)
    held = 0
    for _ in range(self.choose(3, 5)):
      put = self.like(shape) if not held or self.chance(50) else None
      text, change = ('enqueue(%s)' % put.name, 1) if put else self.choose(
          ('dequeue() * 2', -1), ('size()', 0), ('dequeue_many(1)', -1))
      op = self.name('o')
      self.say('%s = %s.%s' % (op, name, text), device)
      self.line('step(%s, %s, %d)' % (op, self.fed(put.feeds if put else ()),
                                      self.random.randrange(2)))
      held += change

  def table(self):
    """A table that a step fills."""
    name = self.name('h')
    self.say('%s = tf.lookup.StaticHashTable('
             'tf.lookup.KeyValueTensorInitializer([3, 5], [.25, .5]), -1.)' %
             name, self.device(self.random.randrange(DEVICES)))
    self.line('step(tf.tables_initializer())')
    self.tensor('%s.lookup(tf.constant([3, 4]))' % name, (2,), 1,
                [Tensor(None, (), 0, frozenset(), False)], 'tf.device(None)')

  def failure(self):
    """A last step with one error; what it does beside is not looked at."""
    a, b = self.any(), self.like((2,))
    text, shape = self.choose(
        ('tf.check_numerics({a} / tf.zeros_like({a}), "bad")', a.shape),
        ('tf.gather({b}, tf.cast({b} * 0, tf.int32) + 2)', (2,)),
        ('tf.reshape({b}, [%s + 3])' % self.counts[0].name, (2,)),
                ('tf.Variable([1., 2.], use_resource=%s) * 2' % self.chance(50),
         (2,)),
        ('tf.placeholder(tf.float32, []) * 2.', ()))
    bad = self.tensor(text.format(a=a.name, b=b.name), shape, 1, [a, b])
    # What else may fail would make two errors.
    self.pool, self.variables = [bad], []
    self.grow(self.random.randrange(4))
    self.line('step([%s, %s], %s)' % (self.pool[-1].name, bad.name,
                                      self.fed(self.values)))


def text_of(seed):
  """The program of this seed."""
  program = Program(seed)
  program.begin()
  # The graph of a session grows between its steps.
  for _ in range(program.choose(1, 1, 2, 3)):
    program.grow(program.random.randrange(2, 12))
    for _ in range(program.choose(1, 2, 3)):
      program.step()
    if program.chance(15):
      program.partial()
    if program.chance(20):
      program.queue()
    if program.chance(10):
      program.table()
    if program.variables:
      program.line('step([%s])' % ', '.join(v.name for v in program.variables))
  if program.chance(15):
    program.failure()
  return '\n'.join(program.lines) + '\n'


class Failed(Exception):
  """A step of a program gave an error, after which nothing is certain."""


class Runner:
  """Runs programs on one cluster, whose servers it starts."""

  def __init__(self):
    from common import np, tf
    from free_ports import free_ports
    self.tf, self.np = tf, np
    cluster = {'ps': 1, 'worker': 2}
    ports = iter(free_ports(3))
    spec = {job: ['localhost:%d' % next(ports) for _ in range(tasks)]
            for job, tasks in cluster.items()}
    # Two devices of one task share buffers, those of two tasks do not.
    self.servers = [
        tf.train.Server(spec, job, task, config=self.config(devices))
        for job, task, devices in (('ps', 0, 1), ('worker', 0, 2),
                                   ('worker', 1, 1))]

  def config(self, devices):
    """Graphs as they are written: what Grappler makes of stateful ones is no
    oracle."""
    config = self.tf.ConfigProto(device_count={'CPU': devices})
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return config

  def run(self, seed, text):
    tf = self.tf
    if seed % 3:
      devices = ['/job:ps/task:0/cpu:0', '/job:worker/task:0/cpu:0',
                 '/job:worker/task:0/cpu:1', '/job:worker/task:1/cpu:0']
      targets = [self.servers[(seed + i) % 3].target for i in (0, 1)]
      tf.Session.reset(targets[0])
    else:
      devices = ['/cpu:%d' % i for i in range(DEVICES)]
      targets = ['']
    results = []
    with tf.Graph().as_default():
      sessions = [tf.Session(t, config=self.config(DEVICES))
                  for t in targets]

      def keep(call):
        try:
          results.append(self.plain(call()))
        except tf.errors.OpError as e:
          # Sluice finds a place for more, and leaves what no step needs.
          unplaced = any(text in str(e) for text in (
              'Cannot assign a device', 'Cannot colocate'))
          results.append(
              {'error': 'placement' if unplaced else type(e).__name__})
          print('%s: %s' % (seed, str(e)[:4000]), file=sys.stderr)
          raise Failed

      def step(fetches, feeds={}, session=0):
        run = sessions[session % len(sessions)].run
        keep(lambda: run(fetches, feeds))

      def partial_steps(parts):
        handle = sessions[0].partial_run_setup(
            [f for fetches, _ in parts for f in fetches],
            [x for _, feeds in parts for x in feeds])
        for fetches, feeds in parts:
          keep(lambda: sessions[0].partial_run(handle, fetches, feeds))

      def gradients(y, xs, colocate):
        found = tf.gradients(y, xs, colocate_gradients_with_ops=colocate)
        return [tf.zeros_like(x) - 1 if g is None else tf.convert_to_tensor(g)
                for g, x in zip(found, xs)]

      try:
        exec(text, {'tf': tf, 'D': devices, 'step': step,
                    'partial_steps': partial_steps, 'gradients': gradients})
      except Failed:
        pass
      except Exception as e:
        results.append({'raises': type(e).__name__})
        print('%s: %s' % (seed, str(e)[:4000]), file=sys.stderr)
      for session in sessions:
        session.close()
    return results

  def plain(self, value):
    if isinstance(value, (list, tuple)):
      return [self.plain(v) for v in value]
    return value if value is None else self.np.asarray(value).tolist()


def main(first, last):
  runner = Runner()
  for seed in range(first, last + 1):
    faulthandler.dump_traceback_later(PROGRAM_SECONDS, exit=True)
    results = runner.run(seed, text_of(seed))
    faulthandler.cancel_dump_traceback_later()
    print(json.dumps([seed, results]), flush=True)
  # Servers would wait for who may still call them.
  os._exit(0)


if __name__ == '__main__':
  if sys.argv[1] == '--print':
    print(text_of(int(sys.argv[2])))
  else:
    main(int(sys.argv[1]), int(sys.argv[2]))
