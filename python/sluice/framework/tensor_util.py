"""Between NumPy values and TensorProtos."""

from sluice import _sluice
from sluice.framework import constant_op
from sluice.framework import protos


def make_tensor_proto(values, dtype=None, shape=None, verify_shape=False,
                      allow_broadcast=False):
    """The TensorProto of a value."""
    if isinstance(values, protos.TensorProto):
        return values
    value, _, _ = constant_op.tensor_value(values, dtype, shape, verify_shape)
    return protos.TensorProto.FromString(_sluice.tensor_to_proto(value))


def make_ndarray(tensor):
    """The NumPy array of a TensorProto."""
    return _sluice.tensor_from_proto(tensor.SerializeToString()).numpy()
