"""Usage: server.py PS_PORT WORKER_PORT JOB. Serves one task of a cluster of one
ps and one worker until its standard input is closed."""

import sys

from common import tf

if __name__ == '__main__':
  cluster = {'ps': ['localhost:' + sys.argv[1]],
             'worker': ['localhost:' + sys.argv[2]]}
  server = tf.train.Server(cluster, job_name=sys.argv[3], task_index=0)
  print('serving', flush=True)
  sys.stdin.read()
