"""Usage: resume.py FOLDER STEPS. Trains that many steps more, from the last
checkpoint of the folder if there is one, and prints the step and the loss."""

import sys

from common import np, tf

folder, steps = sys.argv[1], int(sys.argv[2])
inputs = np.linspace(-1, 1, 24).reshape(8, 3).astype(np.float32)
labels = inputs.dot([[1.], [-2.], [3.]]).astype(np.float32) + .5

x = tf.constant(inputs)
with tf.variable_scope('layer'):
  w = tf.get_variable('w', [3, 1], initializer=tf.zeros_initializer())
  b = tf.get_variable('b', [1], initializer=tf.zeros_initializer())
loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - labels))
step = tf.train.get_or_create_global_step()
average = tf.train.ExponentialMovingAverage(0.9, step)
optimizer = tf.train.AdamOptimizer(
    tf.train.exponential_decay(0.1, step, 10, 0.9))
with tf.control_dependencies([optimizer.minimize(loss, step)]):
  train = average.apply([w, b])
tf.summary.scalar('loss', loss)
hook = tf.train.StopAtStepHook(num_steps=steps)
with tf.train.MonitoredTrainingSession(
    checkpoint_dir=folder, save_checkpoint_secs=None, save_checkpoint_steps=5,
    save_summaries_steps=1, hooks=[hook]) as session:
  while not session.should_stop():
    session.run(train)
  # The session is still there.
with tf.Session() as session:
  latest = tf.train.latest_checkpoint(folder)
  tf.train.Saver().restore(session, latest)
  print('result', *['%.6g' % float(v) for v in np.concatenate(
      [np.ravel(session.run(t)) for t in
       (step, loss, w, average.average(w))])])
