"""Programs with loops: each gives the tensors to fetch and their feeds."""
import numpy as np

def power(tf):
    w = tf.Variable(0.5, name="w")
    n = tf.placeholder(tf.int32, [], name="n")
    x0 = tf.constant([1.0, 2.0])
    i, x = tf.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, tf.tanh(x * w)), [0, x0])
    return [i, x] + tf.gradients(tf.reduce_sum(x), [w, x0]), {n: 3}

def power_never_runs(tf):
    f, _ = power(tf)
    return f, {tf.get_default_graph().get_tensor_by_name("n:0"): 0}

def nested(tf):
    x = tf.constant([0.5, -0.3, 0.8])
    def inner(j, s):
        return j + 1, tf.sin(s) * x
    def outer(i, a):
        _, s = tf.while_loop(lambda j, s: j < i + 1, inner, [0, a])
        return i + 1, a + s * tf.cast(i, tf.float32)
    _, y = tf.while_loop(lambda i, a: i < 3, outer, [0, x * 2.0])
    return [y] + tf.gradients(y, x), {}

def nested_unknown_shape(tf):
    x = tf.placeholder(tf.float32, [None], name="x")
    def outer(i, a):
        _, s = tf.while_loop(lambda j, s: j < 2, lambda j, s: (j + 1, s * x + a), [0, a])
        return i + 1, s / 2.0
    _, y = tf.while_loop(lambda i, a: i < 3, outer, [0, x])
    return [y] + tf.gradients(y, x), {x: np.float32([0.5, 2.0])}

def cond_in_while(tf):
    x = tf.constant(1.5)
    v = tf.Variable(0.7, name="v")
    def body(i, a):
        b = tf.cond(tf.equal(i % 2, 0), lambda: a * v, lambda: tf.square(a) + x)
        return i + 1, b
    _, y = tf.while_loop(lambda i, a: i < 5, body, [0, x])
    return [y] + tf.gradients(y, [x, v]), {}

def cond_in_while_unknown_shape(tf):
    x = tf.placeholder(tf.float32, [None], name="x")
    def body(i, a):
        b = tf.cond(tf.equal(i % 2, 0), lambda: a * x, lambda: tf.sin(a))
        return i + 1, b
    _, y = tf.while_loop(lambda i, a: i < 4, body, [0, x])
    return [y] + tf.gradients(y, x), {x: np.float32([0.5, 2.0])}

def while_in_cond(tf):
    p = tf.placeholder(tf.bool, [], name="p")
    x = tf.constant(2.0)
    def loop():
        return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x), [0, x])[1]
    y = tf.cond(p, loop, lambda: x * 10.0)
    return [y] + tf.gradients(y, x), {p: True}

def while_in_cond_not_taken(tf):
    f, _ = while_in_cond(tf)
    return f, {tf.get_default_graph().get_tensor_by_name("p:0"): False}

def sparse_rows(tf):
    table = tf.Variable(np.float32([[1, 2], [3, 4], [5, 6]]), name="table")
    def body(i, a):
        return i + 1, a + tf.reduce_sum(tf.gather(table, [i, 2]) * tf.cast(i + 1, tf.float32))
    _, y = tf.while_loop(lambda i, a: i < 2, body, [0, tf.constant(0.0)])
    g = tf.gradients(y, table)[0]
    return [y, tf.convert_to_tensor(g)], {}

def invariants(tf):
    k, grow = tf.while_loop(lambda k, g: k < 4, lambda k, g: (k + 1, tf.concat([g, g], 0)),
                            [0, tf.ones([1, 2])], shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 2])])
    return [k, tf.shape(grow)], {}

def at_most(tf):
    i = tf.while_loop(lambda i: i < 100, lambda i: i + 1, [tf.constant(0)], maximum_iterations=7)
    return [i], {}

def no_back_prop(tf):
    x = tf.constant(3.0)
    _, y = tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, a * x), [0, x], back_prop=False)
    z = y + x * x
    return [z] + tf.gradients(z, x), {}

def one_at_a_time(tf):
    x = tf.constant([1.0, -2.0])
    _, y = tf.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, tf.sigmoid(a * x)), [0, x], parallel_iterations=1, swap_memory=True)
    return [y] + tf.gradients(y, x), {}

def structures(tf):
    start = {"a": tf.constant(1), "b": (tf.constant(2.0), tf.constant([3.0]))}
    _, out = tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, {"a": s["a"] * 2, "b": (s["b"][0] + 1.0, s["b"][1] * 2.0)}), [0, start])
    return [out["a"], out["b"][0], out["b"][1]], {}

def arrays(tf):
    x = tf.constant([1.0, 2.0, 3.0])
    ta = tf.TensorArray(tf.float32, size=3, clear_after_read=False).unstack(x)
    def body(i, out):
        return i + 1, out.write(i, ta.read(i) * ta.read(2 - i))
    _, out = tf.while_loop(lambda i, _: i < 3, body, [0, tf.TensorArray(tf.float32, size=3)])
    y = out.stack()
    return [y, out.size()] + tf.gradients(y, x), {}

def maps(tf):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    m = tf.map_fn(lambda r: tf.reduce_sum(r * r), x)
    s = tf.scan(lambda a, e: a * 0.5 + e, x)
    s2 = tf.scan(lambda a, e: a + tf.reduce_sum(e), x, initializer=tf.constant(10.0), reverse=True)
    l = tf.foldl(lambda a, e: a * 2.0 + e, x)
    r = tf.foldr(lambda a, e: a * 2.0 + e, x, initializer=tf.constant([1.0, 1.0]))
    total = tf.reduce_sum(m) + tf.reduce_sum(s) + tf.reduce_sum(s2) + tf.reduce_sum(l) + tf.reduce_sum(r)
    return [m, s, s2, l, r] + tf.gradients(total, x), {}

def splits(tf):
    x = tf.constant([1.0, 2.0, 3.0, 4.0])
    ta = tf.TensorArray(tf.float32, size=2, infer_shape=False).split(x, [1, 3])
    y = ta.concat()
    return [y] + tf.gradients(tf.reduce_sum(y * y), x), {}

def control_dependency(tf):
    v = tf.Variable(1.0, name="v")
    add = v.assign_add(1.0)
    with tf.control_dependencies([add]):
        i, y = tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, a + tf.constant(0.5)), [0, v.read_value()])
    return [y], {}

PROGRAMS = [power, power_never_runs, nested, nested_unknown_shape, cond_in_while, cond_in_while_unknown_shape, while_in_cond,
            while_in_cond_not_taken, sparse_rows, invariants, at_most, no_back_prop, one_at_a_time, structures, arrays, maps, splits, control_dependency]
