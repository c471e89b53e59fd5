"""Usage: checkpoints.py save|restore FOLDER. What one implementation saves, the
others restore: plain, sharded over devices, in parts, old format, as objects,
and with meta graph."""

import os
import sys

from common import equal, np, run_checks, tf

# Every kind that a variable can hold.
VALUES = [
    ('float', np.array([[1.5, -2.25], [3e38, 1e-38]], np.float32)),
    ('double', np.array([1e300, -0.1], np.float64)),
    ('int', np.array([-2**31, 2**31 - 1], np.int32)),
    ('long', np.array(2**62, np.int64)),
    ('flags', np.array([True, False, True])),
    ('texts', np.array([b'', b'a\0b', b'x' * 300], object)),
    ('empty', np.zeros([0, 3], np.float32)),
    ('scope/inner', np.arange(1000, dtype=np.float32).reshape(10, 100)),
]


def variables():
  made = []
  for i, (name, value) in enumerate(VALUES):
    with tf.device('/cpu:%d' % (i % 2)):
      made.append(tf.Variable(value, name=name, use_resource=i % 3 == 0))
  return made


def session():
  return tf.Session(config=tf.ConfigProto(device_count={'CPU': 2}))


def save_with(folder, name, **options):
  made = variables()
  saver = tf.train.Saver(**options)
  with session() as s:
    s.run(tf.global_variables_initializer())
    path = saver.save(s, os.path.join(folder, name), global_step=7)
  assert path.endswith('%s-7' % name), path
  return made


def save_plain(folder):
  save_with(folder, 'plain')


def save_sharded(folder):
  save_with(folder, 'sharded', sharded=True)
  files = os.listdir(folder)
  assert 'sharded-7.data-00001-of-00002' in files, files


def save_version_one(folder):
  save_with(folder, 'old', write_version=tf.train.SaverDef.V1)
  assert 'old-7' in os.listdir(folder)


def save_version_one_sharded(folder):
  made = variables()
  saver = tf.train.Saver(sharded=True, write_version=tf.train.SaverDef.V1)
  with session() as s:
    s.run(tf.global_variables_initializer())
    path = saver.save(s, os.path.join(folder, 'olds'))
  assert path.endswith('olds-?????-of-00002'), path
  assert len(made) == len(VALUES)


# A variable in parts, saved in 3 of them and restored in others.
TABLE = np.arange(7 * 5, dtype=np.float32).reshape(7, 5)


def parts(partitioner):
  return tf.get_variable(
      'table', shape=TABLE.shape, partitioner=partitioner,
      initializer=lambda shape, dtype=None, partition_info=None:
      tf.constant(TABLE[
          partition_info.var_offset[0]:partition_info.var_offset[0] + shape[0],
          partition_info.var_offset[1]:partition_info.var_offset[1] + shape[1]
      ]))


def save_in_parts(folder):
  parts(tf.fixed_size_partitioner(3))
  saver = tf.train.Saver()
  with session() as s:
    s.run(tf.global_variables_initializer())
    saver.save(s, os.path.join(folder, 'parts'))


def save_objects(folder):
  w = tf.get_variable('model/w', initializer=TABLE, use_resource=True)
  step = tf.get_variable('step', initializer=np.int64(9), use_resource=True)
  checkpoint = tf.train.Checkpoint(inner=w, counter=step)
  with session() as s:
    s.run(tf.global_variables_initializer())
    checkpoint.write(os.path.join(folder, 'objects'), session=s)


def save_a_trained_model(folder):
  x = tf.placeholder(tf.float32, [None, 2], name='x')
  w = tf.get_variable('w', initializer=[[1.], [2.]])
  y = tf.matmul(x, w, name='y')
  step = tf.train.get_or_create_global_step()
  loss = tf.reduce_mean(tf.square(y - 1.), name='loss')
  train = tf.train.AdamOptimizer(0.1).minimize(loss, step, name='train')
  tf.add_to_collection('to_train', train)
  saver = tf.train.Saver(max_to_keep=2)
  inputs = np.array([[1., 2.], [-1., .5]], np.float32)
  with session() as s:
    s.run(tf.global_variables_initializer())
    for _ in range(3):
      s.run(train, {x: inputs})
      saver.save(s, os.path.join(folder, 'trained', 'model'), global_step=step)
    after = []
    for _ in range(2):
      s.run(train, {x: inputs})
      after.append(s.run([w, loss], {x: inputs}))
  np.savez(os.path.join(folder, 'trained.npz'), inputs=inputs,
           w=[a[0] for a in after], loss=[a[1] for a in after])


def check_restored(folder, name, **options):
  made = variables()
  saver = tf.train.Saver(**options)
  with session() as s:
    saver.restore(s, os.path.join(folder, name))
    for v, (_, value) in zip(made, VALUES):
      equal(s.run(v), value)


def restore_plain(folder):
  check_restored(folder, 'plain-7')


def restore_sharded(folder):
  check_restored(folder, 'sharded-7')


def restore_sharded_by_a_sharded_saver(folder):
  check_restored(folder, 'sharded-7', sharded=True)


def restore_version_one(folder):
  check_restored(folder, 'old-7')


def restore_version_one_sharded(folder):
  check_restored(folder, 'olds-?????-of-00002')


def restore_other_parts(folder):
  for i, partitioner in enumerate([
      None, tf.fixed_size_partitioner(2), tf.fixed_size_partitioner(4, axis=1)]):
    with tf.Graph().as_default():
      table = tf.get_variable('table', TABLE.shape, partitioner=partitioner,
                              initializer=tf.zeros_initializer())
      with session() as s:
        tf.train.Saver().restore(s, os.path.join(folder, 'parts'))
        equal(s.run(tf.convert_to_tensor(table)), TABLE)


def restore_objects_by_name(folder):
  w = tf.get_variable('model/w', TABLE.shape)
  step = tf.get_variable('step', [], tf.int64, tf.zeros_initializer())
  with session() as s:
    tf.train.Saver().restore(s, os.path.join(folder, 'objects'))
    equal(s.run(w), TABLE)
    assert s.run(step) == 9


def initialize_from(folder):
  table = tf.get_variable('here/table', TABLE.shape,
                          partitioner=tf.fixed_size_partitioner(2))
  tf.train.init_from_checkpoint(os.path.join(folder, 'parts'),
                                {'/': 'here/'})
  with session() as s:
    s.run(tf.global_variables_initializer())
    equal(s.run(tf.convert_to_tensor(table)), TABLE)


def read_by_name(folder):
  reader = tf.train.NewCheckpointReader(os.path.join(folder, 'plain-7'))
  shapes = reader.get_variable_to_shape_map()
  equal(sorted(shapes), sorted(name for name, _ in VALUES))
  for name, value in VALUES:
    equal(shapes[name], list(value.shape))
    equal(reader.get_tensor(name), value)


def go_on_from_a_meta_graph(folder):
  latest = tf.train.latest_checkpoint(os.path.join(folder, 'trained'))
  assert latest.endswith('model-3'), latest
  state = tf.train.get_checkpoint_state(os.path.join(folder, 'trained'))
  assert len(state.all_model_checkpoint_paths) == 2, state
  expected = np.load(os.path.join(folder, 'trained.npz'))
  saver = tf.train.import_meta_graph(latest + '.meta')
  train, = tf.get_collection('to_train')
  feed = {'x:0': expected['inputs']}
  with session() as s:
    saver.restore(s, latest)
    for w, loss in zip(expected['w'], expected['loss']):
      s.run(train, feed)
      np.testing.assert_allclose(s.run('w:0', feed), w, rtol=1e-6)
      np.testing.assert_allclose(s.run('loss:0', feed), loss, rtol=1e-5)
    assert s.run('global_step:0') == 5


CHECKS = {
    'save': [save_plain, save_sharded, save_version_one,
             save_version_one_sharded, save_in_parts, save_objects,
             save_a_trained_model],
    'restore': [restore_plain, restore_sharded,
                restore_sharded_by_a_sharded_saver, restore_version_one,
                restore_version_one_sharded, restore_other_parts,
                restore_objects_by_name, initialize_from, read_by_name,
                go_on_from_a_meta_graph],
}

if __name__ == '__main__':
  action, folder = sys.argv[1:]
  checks = list(CHECKS[action])
  # Sluice reads checkpoints of objects, but does not write them.
  if action == 'save' and not hasattr(tf.train, 'Checkpoint'):
    checks.remove(save_objects)
  if action == 'restore' and not os.path.exists(
      os.path.join(folder, 'objects.index')):
    checks.remove(restore_objects_by_name)
  run_checks(checks, folder)
