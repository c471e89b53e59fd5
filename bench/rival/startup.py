"""A whole small program: import, build, run, end."""

from rows import tf

with tf.Session() as session:
    assert session.run(tf.constant(1.0) + tf.constant(2.0)) == 3.0
