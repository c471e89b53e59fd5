"""What the programs of this folder share.

They are written for TensorFlow 1 and run on TensorFlow 1.15, on 2.x in its
version-1 mode, and on Sluice; which one `import tensorflow` finds is the
caller's choice.
"""

import faulthandler
import os
import sys
import traceback

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

import numpy as np
import tensorflow as tf

RELEASE = tf.__version__
if RELEASE >= '2':
  tf = tf.compat.v1
  tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)

# No check needs this long; one that does is stuck, and says where.
CHECK_SECONDS = 120

PS = '/job:ps/task:0'
WORKER = '/job:worker/task:0'


def close_to(got, want, tolerance=1e-5):
  np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def equal(got, want):
  np.testing.assert_array_equal(got, want)


def raises(kind, call):
  """The exception of this class that `call` raises."""
  try:
    call()
  except kind as error:
    return error
  raise AssertionError('%s was expected' % kind.__name__)


def run_checks(checks, *arguments):
  """Runs each check in a graph of its own, prints one line for each and `end`
  after the last, and ends the process with 1 if one failed."""
  failed = 0
  only = os.environ.get('SLUICE_INTEROP_ONLY', '').split(',')
  for check in checks:
    name = check.__name__.replace('_', ' ')
    if not any(part in name for part in only):
      continue
    faulthandler.dump_traceback_later(CHECK_SECONDS, exit=True)
    try:
      with tf.Graph().as_default():
        check(*arguments)
      print('ok   %s' % name)
    except Exception:
      failed += 1
      print('FAIL %s' % name)
      traceback.print_exc(file=sys.stdout)
    faulthandler.cancel_dump_traceback_later()
    sys.stdout.flush()
  print('end')
  sys.exit(1 if failed else 0)
