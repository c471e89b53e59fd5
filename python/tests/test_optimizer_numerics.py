"""Optimizers against a NumPy model of their formulas (training.md, recipe 11):
five dense and five sparse steps with repeated rows, ref and resource."""

import numpy as np
import pytest

import sluice as tf

STEPS = 5


def f32(x):
    """A hyper-parameter as the graph has it: rounded to float32."""
    return float(np.float32(x))


class Model(object):
    """State and one update; `g` is what came for the rows of `v`."""

    def __init__(self, v):
        self.n = 0

    def slot(self, v, value=0.0):
        return np.full_like(v, value)


class Sgd(Model):
    def update(self, rows, v, g, sparse):
        v[rows] -= f32(0.1) * g


class Momentum(Model):
    def __init__(self, v, nesterov=False):
        self.a, self.nesterov = self.slot(v), nesterov

    def update(self, rows, v, g, sparse):
        lr, mu = f32(0.1), f32(0.9)
        self.a[rows] = mu * self.a[rows] + g
        step = lr * g + lr * mu * self.a[rows] if self.nesterov else \
            lr * self.a[rows]
        v[rows] -= step


class Adagrad(Model):
    def __init__(self, v):
        self.a = self.slot(v, 0.1)

    def update(self, rows, v, g, sparse):
        self.a[rows] += g * g
        v[rows] -= f32(0.1) * g / np.sqrt(self.a[rows])


class Adadelta(Model):
    def __init__(self, v):
        self.a, self.d = self.slot(v), self.slot(v)

    def update(self, rows, v, g, sparse):
        rho, eps = f32(0.95), f32(1e-8)
        self.a[rows] = rho * self.a[rows] + (1 - rho) * g * g
        u = np.sqrt(self.d[rows] + eps) / np.sqrt(self.a[rows] + eps) * g
        v[rows] -= f32(0.5) * u
        self.d[rows] = rho * self.d[rows] + (1 - rho) * u * u


class Adam(Model):
    def __init__(self, v):
        self.m, self.v, self.n = self.slot(v), self.slot(v), 0

    def update(self, rows, v, g, sparse):
        b1, b2 = f32(0.9), f32(0.999)
        self.n += 1
        alpha = f32(0.001) * np.sqrt(1 - b2 ** self.n) / (1 - b1 ** self.n)
        whole = np.zeros_like(v)
        whole[rows] = g
        self.m += (1 - b1) * (whole - self.m)
        self.v += (1 - b2) * (whole * whole - self.v)
        v -= alpha * self.m / (np.sqrt(self.v) + f32(1e-8))


class RmsProp(Model):
    def __init__(self, v, centered=False):
        self.s, self.p, self.c = self.slot(v, 1.0), self.slot(v), None
        if centered:
            self.c = self.slot(v)

    def update(self, rows, v, g, sparse):
        rho, mu = f32(0.9), f32(0.3)
        self.s[rows] = rho * self.s[rows] + (1 - rho) * g * g
        under = self.s[rows] + f32(1e-10)
        if self.c is not None:
            self.c[rows] = rho * self.c[rows] + (1 - rho) * g
            under = under - self.c[rows] ** 2
        self.p[rows] = mu * self.p[rows] + f32(0.01) * g / np.sqrt(under)
        v[rows] -= self.p[rows]


class Ftrl(Model):
    def __init__(self, v, shrink=0.0):
        self.a, self.l, self.shrink = self.slot(v, 0.1), self.slot(v), shrink

    def update(self, rows, v, g, sparse):
        lr, l1, l2 = f32(0.1), f32(0.05), f32(0.1)
        a, new = self.a[rows], self.a[rows] + g * g
        shrunk = g + 2 * f32(self.shrink) * v[rows]
        self.l[rows] += shrunk - (np.sqrt(new) - np.sqrt(a)) / lr * v[rows]
        line = self.l[rows]
        v[rows] = np.where(np.abs(line) <= l1, 0.0, (
            np.sign(line) * l1 - line) / (np.sqrt(new) / lr + 2 * l2))
        self.a[rows] = new


class ProximalSgd(Model):
    def update(self, rows, v, g, sparse):
        v[rows] = shrunk(v[rows] - f32(0.1) * g, f32(0.1))


class ProximalAdagrad(Model):
    def __init__(self, v):
        self.a = self.slot(v, 0.1)

    def update(self, rows, v, g, sparse):
        self.a[rows] += g * g
        lr = f32(0.1) / np.sqrt(self.a[rows])
        v[rows] = shrunk(v[rows] - lr * g, lr)


def shrunk(p, lr):
    return np.sign(p) * np.maximum(np.abs(p) - lr * f32(0.05), 0) / (
        1 + f32(0.1) * lr)


class AdagradDa(Model):
    def __init__(self, v):
        self.g, self.q, self.n = self.slot(v), self.slot(v, 0.1), 0

    def update(self, rows, v, g, sparse):
        self.n += 1
        lr, l1, l2 = f32(0.1), f32(0.01), f32(0.02)
        self.g[rows] += g
        self.q[rows] += g * g
        v[rows] = -np.sign(self.g[rows]) * lr * np.maximum(
            np.abs(self.g[rows]) - self.n * l1, 0) / (
                l2 * self.n * lr + np.sqrt(self.q[rows]))


REGULAR = {"l1_regularization_strength": 0.05,
           "l2_regularization_strength": 0.1}
CASES = {
    "sgd": (lambda s: tf.train.GradientDescentOptimizer(0.1), Sgd),
    "momentum": (lambda s: tf.train.MomentumOptimizer(0.1, 0.9), Momentum),
    "nesterov": (lambda s: tf.train.MomentumOptimizer(
        0.1, 0.9, use_nesterov=True), lambda v: Momentum(v, True)),
    "adagrad": (lambda s: tf.train.AdagradOptimizer(0.1), Adagrad),
    "adadelta": (lambda s: tf.train.AdadeltaOptimizer(0.5), Adadelta),
    "adam": (lambda s: tf.train.AdamOptimizer(), Adam),
    "rmsprop": (lambda s: tf.train.RMSPropOptimizer(0.01, momentum=0.3),
                RmsProp),
    "centered": (lambda s: tf.train.RMSPropOptimizer(
        0.01, momentum=0.3, centered=True), lambda v: RmsProp(v, True)),
    "ftrl": (lambda s: tf.train.FtrlOptimizer(0.1, **REGULAR), Ftrl),
    "shrinkage": (lambda s: tf.train.FtrlOptimizer(
        0.1, l2_shrinkage_regularization_strength=0.2, **REGULAR),
        lambda v: Ftrl(v, 0.2)),
    "proximal_sgd": (lambda s: tf.train.ProximalGradientDescentOptimizer(
        0.1, **REGULAR), ProximalSgd),
    "proximal_adagrad": (lambda s: tf.train.ProximalAdagradOptimizer(
        0.1, **REGULAR), ProximalAdagrad),
    "adagrad_da": (lambda s: tf.train.AdagradDAOptimizer(
        0.1, s, l1_regularization_strength=0.01,
        l2_regularization_strength=0.02), AdagradDa),
}


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted(CASES))
def test_five_dense_and_five_sparse_steps_of(name, dtype, resource):
    make, model_class = CASES[name]
    rng = np.random.RandomState(3)
    start = rng.randn(6, 3).astype(dtype)
    tolerance = 1e-5 if name == "adam" else \
        1e-9 if dtype == "float64" else 1e-6
    with tf.Graph().as_default():
        v = tf.get_variable("v", initializer=start, use_resource=resource)
        step = tf.train.create_global_step()
        optimizer = make(step)
        dense = tf.placeholder(dtype, [6, 3])
        rows = tf.placeholder(tf.int32, [None])
        values = tf.placeholder(dtype, [None, 3])
        by_dense = optimizer.apply_gradients([(dense, v)], step)
        by_rows = optimizer.apply_gradients(
            [(tf.IndexedSlices(values, rows, tf.constant([6, 3])), v)], step)
        expected = start.astype(np.float64)
        model = model_class(expected)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(STEPS):
                g = rng.randn(6, 3).astype(dtype)
                session.run(by_dense, {dense: g})
                model.update(slice(None), expected, g.astype(np.float64),
                             False)
                np.testing.assert_allclose(session.run(v), expected,
                                           rtol=tolerance, atol=tolerance)
            for _ in range(STEPS):
                at = rng.randint(0, 6, 8)
                g = rng.randn(8, 3).astype(dtype)
                session.run(by_rows, {rows: at, values: g})
                unique = np.unique(at)
                sums = np.stack([g.astype(np.float64)[at == i].sum(0)
                                 for i in unique])
                model.update(unique, expected, sums, True)
                np.testing.assert_allclose(session.run(v), expected,
                                           rtol=tolerance * 10,
                                           atol=tolerance * 10)
            assert session.run(step) == 2 * STEPS
