"""Records programs with functions: the GraphDef, and what a step fetches.

    python record_functions.py NAME > NAME.json

run by TensorFlow 1.15.5, or 2.15.1 for the programs that say so.
"""

import json
import sys

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1


def defuns():
    """Functions that call others, a gradient function, a cond, a loop, a
    result that is an argument, an integer, a variable."""
    from tensorflow.python.framework import function
    x = v1.placeholder(tf.float32, [3], name="x")

    @function.Defun(tf.float32)
    def inner(a):
        return tf.exp(a) * 2.0

    @function.Defun(tf.float32, tf.float32)
    def outer(a, b):
        return inner(a) + b, inner(inner(b)), a

    @function.Defun(tf.float32, tf.float32)
    def cube_grad(a, dy):
        return 100.0 * dy * a

    @function.Defun(tf.float32, grad_func=cube_grad)
    def cube(a):
        return a * a * a

    @function.Defun(tf.float32)
    def branches(a):
        return tf.cond(tf.reduce_sum(a) > 0, lambda: a + 1., lambda: a - 1.)

    @function.Defun(tf.float32)
    def loop(a):
        return tf.while_loop(lambda i, s: i < 3,
                             lambda i, s: (i + 1, s * 2.0), [0, a])[1]

    @function.Defun(tf.float32, tf.int32)
    def mixed(a, n):
        return a * 3.0, n + 1

    w = v1.Variable([1., 2., 3.], use_resource=False, name="w")

    @function.Defun(tf.float32)
    def captures(a):
        return a * w

    a, b, c = outer(x, x * 0.5, name="outer_call")
    y = [a, b, c, cube(x), branches(x), branches(-x), loop(x), loop(x + 1.)]
    g, n = mixed(x, [2, 0])
    y += [g, tf.cast(n, tf.float32), captures(x)]
    grads = v1.gradients(y[:4], x) + v1.gradients(g, x) + v1.gradients(
        y[-1], [x, w])
    return {x: [0.1, 0.2, 0.3]}, y + grads


def calls_of_2x():
    """tf.function under 2.15.1: PartitionedCall and StatefulPartitionedCall."""
    v1.disable_control_flow_v2()
    x = v1.placeholder(tf.float32, [2], name="x")
    v = v1.get_variable("v", initializer=[1., 10.], use_resource=True)

    @tf.function
    def pure(a):
        return tf.square(a) + 1.0, a

    @tf.function
    def changes(a):
        v.assign_add(a)
        return pure(v * 2.0)[0]

    first = pure(x)
    second = changes(x)
    with tf.control_dependencies([second]):
        third = tf.identity(v.read_value())
    return {x: [3., 4.]}, [first[0], first[1], second, third]


if __name__ == "__main__":
    if hasattr(v1, "disable_v2_behavior"):
        v1.disable_v2_behavior()
    np.set_printoptions(precision=17)
    with tf.Graph().as_default() as graph, v1.Session() as session:
        feeds, fetches = globals()[sys.argv[1]]()
        init = v1.global_variables_initializer()
        session.run(init)
        values = session.run(fetches, feeds)
        print(json.dumps({
            "graph": str(graph.as_graph_def()),
            "init": init.name,
            "feeds": {k.name: v for k, v in feeds.items()},
            "fetches": [[f.name, np.asarray(value).tolist()]
                        for f, value in zip(fetches, values)]}, indent=1))
