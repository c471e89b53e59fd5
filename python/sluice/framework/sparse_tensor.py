"""Sparse tensors: indices, values and a dense shape."""

import collections

from sluice.framework import default_session
from sluice.framework import dtypes
from sluice.framework import ops

SparseTensorValue = collections.namedtuple(
    "SparseTensorValue", ["indices", "values", "dense_shape"])


class SparseTensor(object):
    """Three tensors that stand for one."""

    def __init__(self, indices, values, dense_shape=None, shape=None):
        if dense_shape is None:
            dense_shape = shape
        with ops.name_scope(None, "SparseTensor",
                            [indices, values, dense_shape]):
            self._indices = ops.convert_to_tensor(indices, name="indices",
                                                  dtype=dtypes.int64)
            self._values = ops.internal_convert_to_tensor(values,
                                                          name="values")
            self._dense_shape = ops.convert_to_tensor(
                dense_shape, name="dense_shape", dtype=dtypes.int64)

            self._indices.shape.with_rank(2)
            self._values.shape.with_rank(1)
            self._dense_shape.shape.with_rank(1)

    indices = property(lambda self: self._indices)
    values = property(lambda self: self._values)
    dense_shape = property(lambda self: self._dense_shape)
    op = property(lambda self: self._values.op)
    dtype = property(lambda self: self._values.dtype)
    graph = property(lambda self: self._indices.graph)

    @property
    def shape(self):
        from sluice.framework import constant_op
        return constant_op.constant_value_as_shape(self._dense_shape)

    def get_shape(self):
        return self.shape

    def eval(self, feed_dict=None, session=None):
        return default_session.eval_tensor(self, feed_dict, self.graph, session)

    def __str__(self):
        return "SparseTensor(indices=%s, values=%s, dense_shape=%s)" % (
            self._indices, self._values, self._dense_shape)


