"""Programs may override any method of an optimizer."""

import pytest

import sluice as tf
from sluice.framework.op_builder import apply_op


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


def train(optimizer, variable, steps=1, sparse=False):
    """The variable after steps along the gradient of its (first row's) sum."""
    loss = tf.reduce_sum(tf.gather(variable, [0]) if sparse else variable)
    op = optimizer.minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(steps):
            session.run(op)
        return session.run(variable).tolist()


def variable(resource):
    return tf.get_variable("v", initializer=[[1.0], [2.0]],
                           use_resource=resource)


class OwnUpdates(tf.train.Optimizer):
    """All of its updates are its own, as in TensorFlow's documentation."""

    def __init__(self):
        super().__init__(False, "Own")
        self.called = []

    def _create_slots(self, var_list):
        for v in var_list:
            self._zeros_slot(v, "seen", self._name)

    def _prepare(self):
        self._rate = tf.convert_to_tensor(0.5, name="rate")

    def _apply_dense(self, grad, var):
        self.called.append("_apply_dense")
        seen = self.get_slot(var, "seen")
        with tf.control_dependencies([seen.assign_add(grad)]):
            return var.assign_sub(self._rate * grad)

    def _apply_sparse(self, grad, var):
        self.called.append("_apply_sparse")
        return tf.scatter_sub(var, grad.indices, self._rate * grad.values)

    def _resource_apply_dense(self, grad, handle):
        self.called.append("_resource_apply_dense")
        return handle.assign_sub(self._rate * grad)

    def _resource_apply_sparse(self, grad, handle, indices):
        self.called.append("_resource_apply_sparse")
        return apply_op("ResourceScatterSub", None, resource=handle.handle,
                        indices=indices, updates=self._rate * grad)

    def _finish(self, update_ops, name_scope):
        self.called.append("_finish")
        return super()._finish(update_ops, name_scope)


@pytest.mark.parametrize("resource,sparse,method", [
    (False, False, "_apply_dense"), (False, True, "_apply_sparse"),
    (True, False, "_resource_apply_dense"),
    (True, True, "_resource_apply_sparse")])
def test_an_optimizer_of_ones_own(resource, sparse, method):
    optimizer = OwnUpdates()
    assert train(optimizer, variable(resource), 2, sparse) == \
        [[0.0], [2.0 if sparse else 1.0]]
    assert optimizer.called == [method, "_finish"]
    assert optimizer.get_slot_names() == ["seen"]


def test_a_subclass_changes_the_gradient_and_leaves_the_rest_to_its_base():
    class Halved(tf.train.GradientDescentOptimizer):
        def _apply_dense(self, grad, var):
            return super()._apply_dense(0.5 * grad, var)

        def _resource_apply_dense(self, grad, handle):
            return super()._resource_apply_dense(0.5 * grad, handle)

        def _apply_sparse_duplicate_indices(self, grad, var):
            return super()._apply_sparse_duplicate_indices(
                tf.IndexedSlices(0.5 * grad.values, grad.indices,
                                 grad.dense_shape), var)

    for resource in (False, True):
        with tf.Graph().as_default():
            assert train(Halved(1.0), variable(resource)) == [[0.5], [1.5]]
    with tf.Graph().as_default():
        assert train(Halved(1.0), variable(False), sparse=True) == \
            [[0.5], [2.0]]


def test_gradients_may_be_replaced_between_computing_and_applying():
    class Clipped(tf.train.AdagradOptimizer):
        def compute_gradients(self, *args, **kwargs):
            return [(tf.clip_by_value(g, -0.25, 0.25), v) for g, v in
                    super().compute_gradients(*args, **kwargs)]

        def apply_gradients(self, grads_and_vars, global_step=None,
                            name=None):
            return super().apply_gradients(grads_and_vars[:1], global_step,
                                           "mine")

    v = variable(False)
    result = train(Clipped(0.1), v)
    step = 0.1 * 0.25 / (0.1 + 0.25 ** 2) ** 0.5
    assert result == [[pytest.approx(1 - step)], [pytest.approx(2 - step)]]
    assert tf.get_collection(tf.GraphKeys.TRAIN_OP)[0].name == "mine"


def test_slots_and_powers_may_come_from_elsewhere():
    class OwnPowers(tf.train.AdamOptimizer):
        def _create_slots(self, var_list):
            super()._create_slots(var_list)
            self._mine = [tf.Variable(p, trainable=False, name=n)
                          for p, n in ((0.9, "one"), (0.999, "two"))]

        def _get_beta_accumulators(self):
            return tuple(self._mine)

    optimizer = OwnPowers(0.1)
    train(optimizer, variable(False))
    nodes = {n.name: n for n in tf.get_default_graph().as_graph_def().node}
    assert "one/read" in nodes["Adam/update_v/ApplyAdam"].input
    assert nodes["Adam/Assign"].input[0] == "one"


def test_a_finalized_graph_is_not_trained():
    v = variable(False)
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    grads = [(tf.constant([[1.0], [1.0]]), v)]
    tf.get_default_graph().finalize()
    with pytest.raises(RuntimeError, match="finalized"):
        optimizer.apply_gradients(grads)
