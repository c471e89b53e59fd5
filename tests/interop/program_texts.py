"""The statements of random TensorFlow 1 programs, as text.

They use `tf` and the devices `D` of random_programs.py, which makes programs of
them. A program has one meaning only: whatever touches a variable waits, by
control dependencies, for whatever touched it before and conflicts. What is read
of a ref variable is copied where the variable is, since an identity of it may
show later writes, and a transfer of it does not wait for the control inputs of
the reader.
"""

import collections
import functools
import operator
import random

DEVICES = 4
SHAPES = [(), (2,), (3,), (2, 2), (2, 3), (3, 2), (2, 3, 2)]
# Larger values are squeezed, so that no sum of rounding errors is seen.
LARGEST = 6

# `feeds` are the placeholders it needs; one is pure if no state is behind it.
Tensor = collections.namedtuple('Tensor', 'name shape bound feeds pure')
Variable = collections.namedtuple('Variable', 'name shape device ref')


class Access:
  """What was done to a variable in a scope since its last write, with it."""

  def __init__(self, writes, feeds):
    self.writes = writes
    self.reads = []
    self.feeds = feeds


class Statements:
  """The text of a program that grows; `grow` adds statements of all kinds."""

  def __init__(self, seed):
    self.random = random.Random(seed)
    self.lines, self.indent = [], ''
    self.count = self.depth = 0
    self.pool, self.variables = [], []
    self.accesses = {}
    # What everything in a function waits for.
    self.entry = None
    # By tensor: what it is made from, which gradients may ask for.
    self.origins = {}
    # Whether placeholders have no static shape.
    self.unknown = self.chance(15)
    self.values = {}
    self.flags = []
    self.counts = []

  def chance(self, percent):
    return self.random.randrange(100) < percent

  def choose(self, *choices):
    return self.random.choice(choices)

  def name(self, letter='t'):
    self.count += 1
    return letter + str(self.count)

  def line(self, text):
    self.lines.append(self.indent + text)

  def say(self, text, *contexts):
    """A statement in those contexts that are not empty."""
    contexts = ', '.join([c for c in contexts if c])
    self.line('with %s: %s' % (contexts, text) if contexts else text)

  def device(self, device=None):
    """The context of a device; without one any, and now and then none."""
    if device is None:
      if self.chance(15):
        return ''
      device = self.random.randrange(DEVICES)
    return 'tf.device(D[%d])' % device

  def after(self, tokens):
    return 'tf.control_dependencies([%s])' % ', '.join(tokens)

  def number(self):
    return round(self.random.uniform(-1.5, 1.5), 2)

  def literal(self, shape):
    if not shape:
      return self.number()
    return [self.literal(shape[1:]) for _ in range(shape[0])]

  def tensor(self, text, shape, bound, sources, before='', device=None):
    """A statement that makes a tensor, which joins the pool."""
    if bound > LARGEST:
      text, bound = 'tf.tanh(%s)' % text, 1
    name = self.name()
    self.say('%s = %s' % (name, text), before,
             '' if 'tf.device' in before else self.device(device))
    feeds = frozenset().union(*[s.feeds for s in sources])
    pure = 'control' not in before and all(s.pure for s in sources)
    made = Tensor(name, tuple(shape), bound, feeds, pure)
    self.join_pool(made, sources)
    return made

  def join_pool(self, made, sources):
    self.pool.append(made)
    self.origins[made.name] = frozenset([made.name]).union(
        *[self.origins.get(s.name, ()) for s in sources])

  def constant(self, shape):
    return self.tensor('tf.constant(%s)' % self.literal(shape), shape, 1.5, [])

  def any(self, rank=0):
    """A tensor of at least this rank, rather a new one."""
    found = [t for t in self.pool if len(t.shape) >= rank]
    if not found or self.chance(5):
      return self.constant(self.choose(*[s for s in SHAPES if len(s) >= rank]))
    return self.recent(found)

  def recent(self, found):
    return found[max(self.random.randrange(len(found)) for _ in range(2))]

  def like(self, shape):
    found = [t for t in self.pool if t.shape == tuple(shape)]
    if found and not self.chance(10):
      return self.recent(found)
    return self.constant(shape)

  # Ops without state.

  def unary(self):
    a = self.any()
    text, bound = self.choose(
        ('tf.tanh(%s)', 1), ('tf.sin(%s)', 1), ('tf.sigmoid(%s)', 1),
        ('tf.nn.relu(%s)', a.bound), ('tf.abs(%s)', a.bound),
        ('-%s', a.bound), ('tf.square(%s)', a.bound ** 2),
        ('tf.identity(%s)', a.bound), ('tf.exp(-tf.abs(%s))', 1),
        ('tf.stop_gradient(%s)', a.bound), ('tf.zeros_like(%s)', 1),
        ('tf.nn.softplus(%s)', a.bound + 1),
        ('tf.cast(tf.cast(%s, tf.float64) * 2, tf.float32)', a.bound * 2))
    return self.tensor(text % a.name, a.shape, bound, [a])

  def binary(self):
    a = self.any()
    b = self.like(self.choose(a.shape, a.shape[1:], ()))
    total, product = a.bound + b.bound, a.bound * b.bound
    ways = [('{0} + {1}', total), ('{0} - {1}', total),
            ('{0} * {1}', product), ('tf.maximum({0}, {1})', total),
            ('tf.minimum({0}, {1})', total),
            ('tf.squared_difference({0}, {1})', total ** 2)]
    if a.shape == b.shape:
      ways += [('tf.where({0} > {1}, {0}, {1})', total)] * 2
    text, bound = self.choose(*ways)
    return self.tensor(text.format(a.name, b.name), a.shape, bound, [a, b])

  def reduce(self):
    a = self.any(1)
    axis = self.random.randrange(len(a.shape))
    keep = self.chance(30)
    shape = a.shape[:axis] + ((1,) if keep else ()) + a.shape[axis + 1:]
    kind = self.choose('sum', 'mean', 'max', 'min', 'logsumexp')
    return self.tensor('tf.reduce_%s(%s, %d, keepdims=%s)' %
                       (kind, a.name, axis, keep), shape,
                       a.bound * 4 + 2, [a])

  def matmul(self):
    a = self.random.choice([t for t in self.pool if len(t.shape) == 2] or
                           [self.constant((2, 3))])
    turned = self.chance(40)
    inner, rows = a.shape if turned else a.shape[::-1]
    columns = self.choose(2, 3)
    other = self.chance(40)
    b = self.like((columns, inner) if other else (inner, columns))
    return self.tensor('tf.matmul(%s, %s, %s, %s)' %
                       (a.name, b.name, turned, other), (rows, columns),
                       inner * a.bound * b.bound, [a, b])

  def join(self):
    a = self.any()
    b, c = self.like(a.shape), self.like(a.shape)
    names = ', '.join([a.name, b.name, c.name])
    bound = max(a.bound, b.bound, c.bound)
    if not a.shape or self.chance(20):
      text, shape = self.choose(('tf.add_n([%s])', a.shape),
                                ('tf.stack([%s])', (3,) + a.shape))
      return self.tensor(text % names, shape, bound * 3, [a, b, c])
    axis = self.random.randrange(len(a.shape))
    joined = self.tensor('tf.concat([%s], %d)' % (names, axis),
                         a.shape[:axis] + (a.shape[axis] * 3,) +
                         a.shape[axis + 1:], bound, [a, b, c])
    return self.tensor('tf.split(%s, 3, %d)[%d]' %
                       (joined.name, axis, self.random.randrange(3)), a.shape,
                       bound, [joined])

  def part(self):
    a = self.any(1)
    n, rest = a.shape[0], a.shape[1:]
    size = functools.reduce(operator.mul, a.shape)
    text, shape = self.choose(
        ('%s[1:]', (n - 1,) + rest), ('%s[::-1]', a.shape),
        ('%s[0]', rest), ('%s[..., -1]', a.shape[:-1]),
        ('%s[tf.newaxis]', (1,) + a.shape),
        ('tf.gather(%%s, [%d, 0, 0])' % (n - 1), (3,) + rest),
        ('tf.unstack(%%s, %d)[-1]' % n, rest),
        ('tf.transpose(%s)', a.shape[::-1]),
        ('tf.reshape(%s, [-1])', (size,)),
        ('tf.pad(%%s, [[0, 1]%s])' % (', [0, 0]' * len(rest)), (n + 1,) + rest),
        ('tf.tile(%%s, [2%s])' % (', 1' * len(rest)), (2 * n,) + rest),
        ('tf.slice(%%s, [0%s], [1%s])' %
         (', 0' * len(rest), ', -1' * len(rest)), (1,) + rest),
        ('tf.nn.top_k(%%s, %d)[0]' % a.shape[-1], a.shape),
        ('tf.cumsum(%s)', a.shape), ('tf.nn.softmax(%s)', a.shape),
        ('tf.boolean_mask(%%s, %s)' % ([True] + [False] * (n - 1)),
         (1,) + rest),
        ('tf.unsorted_segment_sum(%%s, %s, 2)' % ([0] + [1] * (n - 1)),
         (2,) + rest),
        ('tf.dynamic_partition(%%s, %s, 2)[0]' % ([0] + [1] * (n - 1)),
         (1,) + rest))
    if 0 in shape or size > 24:
      return a
    return self.tensor(text % a.name, shape, a.bound * 3, [a])

  # Variables.

  def access(self, v):
    if v not in self.accesses:
      self.accesses[v] = Access([self.entry.name] if self.entry else [],
                                self.entry.feeds if self.entry else frozenset())
    return self.accesses[v]

  def variable(self):
    shape = self.choose(*SHAPES[1:])
    v = Variable(self.name('v'), shape, self.random.randrange(DEVICES),
                 self.chance(50))
    value = 'tf.constant(%s)' % self.literal(shape)
    alike = [w for w in self.variables if w.shape == shape]
    if alike and self.chance(30):
      v = v._replace(device=alike[0].device)
      value = '%s.initialized_value() * .5' % alike[0].name
    self.say('%s = tf.Variable(%s, name=%r, use_resource=%s)' %
             (v.name, value, v.name, not v.ref), self.device(v.device))
    self.variables.append(v)

  def read(self):
    v = self.random.choice(self.variables)
    access = self.access(v)
    if v.ref:
      # The variable itself would be its `read`, which waits for nothing.
      self.copy(v, v.name + self.choose('.read_value()', '._ref()'),
                self.after(access.writes), v.device)
    elif self.chance(30):
      self.copy(v, v.name, self.after(access.writes), None)
    else:
      text, shape = self.choose(('%s.read_value()', v.shape),
                                ('tf.gather(%s, [1, 0])', (2,) + v.shape[1:]))
      self.take(v, text % v.name, shape, self.after(access.writes))

  def copy(self, v, name, before, device):
    self.take(v, 'tf.multiply(%s, %s)' % (name, self.number()), v.shape, before,
              device)

  def take(self, v, text, shape, before, device=None):
    # What is in a variable has no bound, but nobody adds to it for long.
    access = self.access(v)
    source = Tensor(None, (), 0, access.feeds, False)
    made = self.tensor(text, shape, 9, [source], before, device)
    access.reads.append(made.name)

  def write(self):
    v = self.random.choice(self.variables)
    value = self.like(v.shape)
    access = self.access(v)
    text = self.choose(
        'tf.assign({v}, {x})', 'tf.assign_add({v}, {x})',
        'tf.assign_sub({v}, {x})', 'tf.scatter_add({v}, [1], {x}[:1])',
        'tf.scatter_sub({v}, [0, 0], tf.stack([{x}[0], {x}[-1]]))',
        'tf.scatter_update({v}, [1], {x}[:1])', '{v}[1].assign({x}[0])')
    write = self.name('w')
    self.say('%s = %s%s' % (write, text.format(v=v.name, x=value.name),
                            '' if v.ref else '.op'),
             self.device(v.device), self.after(access.writes + access.reads))
    access.writes, access.reads = [write], []
    access.feeds |= value.feeds
    if v.ref and 'scatter_update' not in text and self.chance(40):
      # What a write gives may be read from anywhere; of scatter_update there is
      # no gradient.
      self.copy(v, write, '', None)

  # Control flow.

  def predicate(self):
    a = self.any()
    flag, count = self.choose(*self.flags), self.choose(*self.counts)
    return self.choose(
        ('tf.reduce_sum(%s) > %s' % (a.name, self.number()), [a]),
        (flag.name, [flag]), ('tf.equal(%s, 2)' % count.name, [count]))

  def body(self, entry, shapes, head, write):
    """The lines of a function whose first value waits for all it does."""
    outside = (self.lines, self.pool, self.accesses, self.entry, self.indent)
    self.pool = list(self.pool)
    self.lines, self.accesses, self.entry = [], {}, entry
    self.line(head)
    self.indent += '  '
    self.depth += 1
    write()
    self.grow(self.random.randrange(1, 6))
    results = [self.like(s) for s in shapes]
    if self.unknown:
      # A loop gives back the shapes that it takes.
      results = [self.tensor('tf.reshape(%s, %s)' % (r.name, list(r.shape)),
                             r.shape, r.bound, [r]) for r in results]
    tokens = [t for v in self.accesses.values() for t in v.writes + v.reads]
    feeds = frozenset().union(
        *[s.feeds for s in results + list(self.accesses.values())])
    pure = not tokens and all(r.pure for r in results)
    first = self.name()
    # Also for what was done before it, which the other branch may not touch.
    self.say('%s = tf.identity(%s)' % (first, results[0].name),
             self.after([entry.name] + tokens))
    self.origins[first] = self.origins[results[0].name]
    touched = list(self.accesses)
    made = self.lines
    self.lines, self.pool, self.accesses, self.entry, self.indent = outside
    self.depth -= 1
    return (made, [first] + [r.name for r in results[1:]], feeds, pure, touched,
            max(r.bound for r in results))

  def flow(self, shapes, first, bodies, call, sources):
    """What stands before, in and after functions that `call` calls."""
    touched = sorted(set(v for b in bodies for v in b[4]))
    tokens = [t for v in touched
              for t in self.access(v).writes + self.access(v).reads]
    entry, source = first
    self.say('%s = tf.identity(%s)' % (entry, source.name), self.after(tokens))
    for made, results, _, _, _, _ in bodies:
      self.lines += made
      self.line('  return ' + ', '.join(
          ([] if call.startswith('tf.cond') else ['i + 1']) + results))
    feeds = frozenset().union(
        *([b[2] for b in bodies] + [s.feeds for s in sources] +
          [self.access(v).feeds for v in touched]))
    pure = all(b[3] for b in bodies) and all(s.pure for s in sources)
    names = [self.name() for _ in shapes]
    targets = names if call.startswith('tf.cond') else ['_'] + names
    self.say('%s = %s' % (', '.join(targets), call), self.device())
    results = [Tensor(n, s, max(b[5] for b in bodies), feeds, pure)
               for n, s in zip(names, shapes)]
    made = [Tensor(n, (), 0, (), False) for b in bodies for n in b[1]]
    for result in results:
      self.join_pool(result, made + list(sources))
    for v in touched:
      access = self.access(v)
      access.writes, access.reads = [names[0]], []
      access.feeds |= feeds

  def cond(self):
    source = self.any()
    entry = Tensor(self.name(), source.shape, source.bound, source.feeds, False)
    shapes = [self.any().shape for _ in range(self.choose(1, 1, 2))]
    condition, needs = self.predicate()
    functions, bodies = [], []
    for _ in range(2):
      functions.append(self.name('f'))
      inside = entry._replace(name=self.name())
      def begin():
        self.say('%s = tf.identity(%s)' % (inside.name, entry.name),
                 self.device())
        self.join_pool(inside, [source])
      bodies.append(self.body(inside, shapes, 'def %s():' % functions[-1],
                              begin))
    self.flow(shapes, (entry.name, source), bodies, 'tf.cond(%s, %s, %s)' %
              (condition, functions[0], functions[1]), needs + [source])

  def loop(self):
    """A while loop whose variables keep their shapes."""
    sources = [self.any() for _ in range(self.choose(1, 2))]
    entry = Tensor(self.name(), sources[0].shape, LARGEST, sources[0].feeds,
                   False)
    inside = [Tensor(self.name('x'), s.shape, LARGEST, s.feeds, False)
              for s in sources]
    shapes = [s.shape for s in sources]
    function, test = self.name('f'), self.name('f')
    arguments = ', '.join(['i'] + [x.name for x in inside])
    body = self.body(inside[0], shapes, 'def %s(%s):' % (function, arguments),
                     lambda: [self.join_pool(*p) for p in zip(
                         inside, [[s] for s in sources])])
    count = self.choose(*self.counts)
    self.line('def %s(%s):' % (test, arguments))
    self.line('  return ' + self.choose(
        'i < %s' % count.name, 'i < 3', 'i < 0', 'tf.logical_and(i < %s, '
        'tf.reduce_sum(%s) < 3.3)' % (count.name, inside[0].name)))
    self.flow(shapes, (entry.name, sources[0]), [body],
              'tf.while_loop(%s, %s, [tf.constant(0), %s], '
              'parallel_iterations=%d, swap_memory=%s)' %
              (test, function,
               ', '.join([entry.name] + [s.name for s in sources[1:]]),
               self.choose(1, 2, 10), self.chance(20)), sources + [count])
