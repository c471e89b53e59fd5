"""Usage: lost_peers.py SLUICE PS_PORT WORKER_PORT. Starts the two servers of a
cluster by the command SLUICE, kills and restarts them, and looks at what that
means for a client: variables, peers that are lost, queues."""

import os
import socket
import subprocess
import sys
import threading
import time

from common import PS, WORKER, raises, run_checks, tf

SLUICE, PS_PORT, WORKER_PORT = sys.argv[1:4]
TARGET = 'grpc://localhost:' + WORKER_PORT
PORTS = {'ps': PS_PORT, 'worker': WORKER_PORT}
servers = {}


def start(job):
  servers[job] = subprocess.Popen(
      [SLUICE, 'server', '--cluster',
       'ps=localhost:%s;worker=localhost:%s' % (PS_PORT, WORKER_PORT),
       '--job', job, '--task', '0'],
      stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
      stderr=subprocess.DEVNULL)
  while True:
    try:
      socket.create_connection(('localhost', PORTS[job])).close()
      return
    except OSError:
      assert servers[job].poll() is None, '%s has ended' % job
      time.sleep(0.05)


def kill(job):
  servers[job].kill()
  servers[job].wait()


def model():
  """A variable of the ps, its update, and its double on the worker."""
  with tf.device(PS):
    v = tf.Variable(1., name='v', use_resource=False)
    add = v.assign_add(1.)
  with tf.device(WORKER):
    return v.initializer, add, v * 2


def once_connected(call):
  """The error of `call` once the client has noticed that the server is back."""
  while True:
    error = raises(tf.errors.OpError, call)
    if not isinstance(error, tf.errors.UnavailableError):
      return error
    time.sleep(0.1)


def variables_outlive_their_session_but_not_their_task():
  init, add, double = model()
  with tf.Session(TARGET) as session:
    session.run(init)
    session.run(add)
  with tf.Session(TARGET) as session:
    assert session.run(double) == 4
  isolated = tf.ConfigProto(isolate_session_state=True)
  with tf.Session(TARGET, config=isolated) as session:
    raises(tf.errors.FailedPreconditionError, lambda: session.run(double))
  kill('ps')
  start('ps')
  with tf.Session(TARGET) as session:
    error = once_connected(lambda: session.run(double))
    assert isinstance(error, tf.errors.FailedPreconditionError), error


def a_dead_ps_is_unavailable_and_a_restarted_one_aborts():
  init, add, double = model()
  session = tf.Session(TARGET)
  session.run(init)
  assert session.run(double) == 2
  kill('ps')
  # TensorFlow's own cluster would wait here for ever.
  error = raises(tf.errors.UnavailableError, lambda: session.run(double))
  assert 'ps' in error.message, error.message
  start('ps')
  assert isinstance(once_connected(lambda: session.run(double)),
                    tf.errors.AbortedError)
  session = tf.Session(TARGET)
  session.run(init)
  session.run(add)
  assert session.run(double) == 4
  session.close()


def a_restarted_master_knows_no_session():
  init, _, double = model()
  session = tf.Session(TARGET)
  session.run(init)
  kill('worker')
  start('worker')
  assert isinstance(once_connected(lambda: session.run(double)),
                    tf.errors.AbortedError)
  with tf.Session(TARGET) as other:
    assert other.run(double) == 2


def a_dequeue_ends_with_its_ps():
  with tf.device(PS):
    queue = tf.FIFOQueue(1, tf.float32)
    element = queue.dequeue()
  session = tf.Session(TARGET)
  session.run(queue.size())
  ended = []

  def wait():
    ended.append(raises(tf.errors.OpError, lambda: session.run(element)))

  waiting = threading.Thread(target=wait)
  waiting.start()
  kill('ps')
  waiting.join()
  # Killed before the step came there, or while it waited.
  assert isinstance(ended[0], (tf.errors.UnavailableError,
                               tf.errors.AbortedError)), ended
  start('ps')


def queues_close_and_cancel():
  with tf.device(PS):
    queue = tf.FIFOQueue(2, tf.float32, shapes=[[]], shared_name='closing')
    one = queue.enqueue(1.)
    element = queue.dequeue()
    many = queue.dequeue_many(2)
    close, cancel = queue.close(), queue.close(cancel_pending_enqueues=True)
  with tf.Session(TARGET) as session:
    session.run(one)
    session.run(one)
    ended = []
    pending = threading.Thread(target=lambda: ended.append(
        raises(tf.errors.CancelledError, lambda: session.run(one))))
    pending.start()
    # Whether it waits already or comes later.
    session.run(cancel)
    pending.join()
    assert ended
    raises(tf.errors.CancelledError, lambda: session.run(close))
    raises(tf.errors.CancelledError, lambda: session.run(one))
    assert session.run(element) == 1
    raises(tf.errors.OutOfRangeError, lambda: session.run(many))
    assert session.run(element) == 1
    raises(tf.errors.OutOfRangeError, lambda: session.run(element))


if __name__ == '__main__':
  start('ps')
  start('worker')
  result = 1
  try:
    run_checks([
        variables_outlive_their_session_but_not_their_task,
        a_dead_ps_is_unavailable_and_a_restarted_one_aborts,
        a_restarted_master_knows_no_session, a_dequeue_ends_with_its_ps,
        queues_close_and_cancel])
  except SystemExit as end:
    result = end.code
  finally:
    for job in PORTS:
      kill(job)
    sys.stdout.flush()
    # TensorFlow's end of a session that is open still waits for its master.
    os._exit(result)
