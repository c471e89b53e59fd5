"""Usage: graphs.py export|run FOLDER. Graphs that one implementation builds, the
others import and run, with equal values."""

import glob
import os
import sys

from common import close_to, np, run_checks, tf


def linear_regression():
  x = tf.placeholder(tf.float32, [None, 3], name='x')
  w = tf.constant([[1.], [2.], [3.]])
  y = tf.matmul(x, w) + 0.5
  return {x: np.eye(3)}, [y, tf.gradients(tf.reduce_sum(y * y), x)[0]]


def softmax_classifier():
  x = tf.placeholder(tf.float32, [2, 4], name='x')
  labels = tf.constant([1, 3])
  hidden = tf.nn.relu(tf.matmul(x, np.linspace(-1, 1, 16)
                                .reshape(4, 4).astype(np.float32)))
  losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels,
                                                          logits=hidden)
  return ({x: np.arange(8.).reshape(2, 4)},
          [tf.nn.softmax(hidden), losses, tf.gradients(losses, x)[0]])


def shapes_and_slices():
  x = tf.placeholder(tf.int32, [None, 4], name='x')
  parts = tf.split(x, 2, axis=1)
  return ({x: np.arange(12).reshape(3, 4)},
          [tf.concat(parts[::-1], 1), x[1:, ::2], tf.transpose(x),
           tf.gather(x, [2, 0]), tf.shape(x), tf.stack(parts), tf.tile(x, [1, 2]),
           tf.reverse(x, [0]), tf.one_hot([0, 2], 3), tf.where(x > 5)])


def conditional():
  p = tf.placeholder(tf.bool, [], name='x')
  a = tf.constant(3.)
  return {p: True}, [tf.cond(p, lambda: a * 2, lambda: a - 1)]


def reductions():
  x = tf.placeholder(tf.float64, [2, 3], name='x')
  return ({x: np.array([[1., -2, 3], [4, 5, -6]])},
          [tf.reduce_sum(x, 0), tf.reduce_mean(x), tf.reduce_max(x, 1),
           tf.argmax(x, 1), tf.reduce_all(x > -7),
           tf.nn.l2_loss(x), tf.cumsum(x, 1)])


def strings():
  x = tf.placeholder(tf.string, [2], name='x')
  return ({x: np.array([b'ab', b'c'])},
          [tf.identity(x), tf.raw_ops.StringJoin(inputs=[x, x], separator='-'),
           tf.equal(x, 'c')])


def random_numbers():
  x = tf.placeholder(tf.int32, [1], name='x')
  return ({x: np.array([5])},
          [tf.random_uniform(x, seed=3), tf.random_normal(x, seed=4),
           tf.truncated_normal(x, seed=5)])


def variables():
  x = tf.placeholder(tf.float32, [], name='x')
  w = tf.Variable(2., name='w', use_resource=False)
  r = tf.get_variable('r', initializer=3., use_resource=True)
  with tf.control_dependencies([w.initializer, r.initializer]):
    product = w.read_value() * r.read_value()
  with tf.control_dependencies([product]):
    return {x: 1.}, [product, tf.identity(w.assign_sub(x)),
                     tf.identity(r.assign_add(product))]


PROGRAMS = [linear_regression, softmax_classifier, shapes_and_slices,
            conditional, reductions, strings, random_numbers,
            variables]


def plain(value):
  """Without Python objects, which releases of NumPy write in different ways."""
  value = np.asarray(value)
  return value.astype('S') if value.dtype.kind == 'O' else value


def export_graph(folder, program):
  feeds, fetches = program()
  with tf.Session() as session:
    values = session.run(fetches, feeds)
  (x, fed), = feeds.items()
  path = os.path.join(folder, program.__name__)
  with open(path + '.pb', 'wb') as f:
    f.write(tf.get_default_graph().as_graph_def().SerializeToString())
  np.savez(path + '.npz', feed=fed, names=[t.name for t in fetches],
           **{str(i): plain(v) for i, v in enumerate(values)})


def run_graph(path):
  saved = np.load(path + '.npz')
  graph = tf.GraphDef()
  with open(path + '.pb', 'rb') as f:
    graph.ParseFromString(f.read())
  names = [str(n) for n in saved['names']]
  fetches = tf.import_graph_def(graph, return_elements=names, name='there')
  with tf.Session() as session:
    values = session.run(fetches, {'there/x:0': saved['feed']})
  for i, value in enumerate(values):
    expected = saved[str(i)]
    if expected.dtype.kind == 'f':
      close_to(value, expected)
    else:
      np.testing.assert_array_equal(plain(value), expected)


def named(name, check, *arguments):
  def run():
    check(*arguments)
  run.__name__ = name
  return run


if __name__ == '__main__':
  action, folder = sys.argv[1:]
  if action == 'export':
    run_checks([named('export_' + p.__name__, export_graph, folder, p)
                for p in PROGRAMS])
  else:
    paths = sorted(p[:-3] for p in glob.glob(os.path.join(folder, '*.pb')))
    assert len(paths) == len(PROGRAMS), paths
    run_checks([named('run_' + os.path.basename(p), run_graph, p)
                for p in paths])
