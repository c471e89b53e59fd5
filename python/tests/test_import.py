"""What `import sluice` and a ps may cost."""

import subprocess
import sys
import textwrap


def run(program):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_a_process_that_only_serves_loads_no_numpy():
    assert run("""
        import sys
        import sluice as tf
        server = tf.train.Server.create_local_server()
        print("numpy" in sys.modules)
    """) == "False\n"


def test_an_import_starts_no_thread():
    assert run("""
        import os
        os.environ["OPENBLAS_NUM_THREADS"] = "1"  # NumPy's own threads
        import sluice as tf
        a = tf.constant(1) + 2
        print(len(os.listdir("/proc/self/task")))
    """) == "1\n"


def test_types_are_those_of_numpy_once_asked_for():
    assert run("""
        import sluice as tf
        import numpy as np
        for t in (np.float32, np.int64, np.bool_, np.complex128, np.float16):
            assert tf.as_dtype(t).as_numpy_dtype is t, t
            assert tf.as_dtype(np.dtype(t)) == t, t
        assert tf.string.as_numpy_dtype is np.object_
        assert issubclass(np.int32, tf.compat.integral_types)
        try:
            tf.as_dtype(np.dtype("M8[s]"))
        except TypeError as e:
            print(e)
    """) == "Cannot convert value dtype('<M8[s]') to a TensorFlow DType.\n"
