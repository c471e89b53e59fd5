"""TensorArray: tensors by index, written once each, for loops."""

import contextlib

from sluice.framework import constant_op
from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework import tensor_shape
from sluice.framework.op_builder import apply_op, build
from sluice.ops import array_ops
from sluice.ops import math_ops


class TensorArray(object):
    """An array of tensors. Writing gives a new handle on the same array."""

    def __init__(self, dtype, size=None, dynamic_size=None,
                 clear_after_read=None, tensor_array_name=None, handle=None,
                 flow=None, infer_shape=True, element_shape=None,
                 colocate_with_first_write_call=True, name=None):
        if handle is not None and tensor_array_name:
            raise ValueError("Cannot construct with both handle and "
                             "tensor_array_name")
        if handle is not None and not isinstance(handle, ops.Tensor):
            raise TypeError("Handle must be a Tensor")
        if handle is None and size is None:
            raise ValueError("Size must be provided if handle is not "
                             "provided")
        if handle is not None and size is not None:
            raise ValueError("Cannot provide both a handle and size at the "
                             "same time")
        if handle is not None and element_shape is not None:
            raise ValueError("Cannot provide both a handle and element_shape "
                             "at the same time")
        if handle is not None and dynamic_size is not None:
            raise ValueError("Cannot provide both a handle and dynamic_size "
                             "at the same time")
        if handle is not None and clear_after_read is not None:
            raise ValueError("Cannot provide both a handle and "
                             "clear_after_read at the same time")
        self._dtype = dtypes.as_dtype(dtype).base_dtype
        self._infer_shape = infer_shape
        self._dynamic_size = bool(dynamic_size)
        self._colocate_with_first_write_call = colocate_with_first_write_call
        # Shared by all handles on the array, like the shape of its elements.
        self._colocate_with = [] if colocate_with_first_write_call else None
        self._element_shape = [tensor_shape.as_shape(element_shape)]
        with ops.name_scope(name, "TensorArray",
                            [handle, size, flow]) as scope:
            if handle is not None:
                self._handle = handle
                if flow is not None:
                    self._flow = flow
                else:
                    with ops.colocate_with(handle):
                        self._flow = constant_op.constant(
                            0, dtype=dtypes.float32)
                return
            with contextlib.ExitStack() as stack:
                if colocate_with_first_write_call:
                    stack.enter_context(ops.device(None))
                    stack.enter_context(ops.colocate_with(
                        None, ignore_existing=True))
                self._handle, self._flow = apply_op(
                    "TensorArrayV3", scope, size=size, dtype=self._dtype,
                    element_shape=self._element_shape[0],
                    identical_element_shapes=infer_shape,
                    dynamic_size=self._dynamic_size,
                    clear_after_read=clear_after_read is not False,
                    tensor_array_name=tensor_array_name or "")

    flow = property(lambda self: self._flow)
    handle = property(lambda self: self._handle)
    dtype = property(lambda self: self._dtype)
    dynamic_size = property(lambda self: self._dynamic_size)
    element_shape = property(lambda self: self._element_shape[0])

    @contextlib.contextmanager
    def _beside_first_write(self, value):
        if not self._colocate_with_first_write_call:
            yield
            return
        if not self._colocate_with:
            self._colocate_with.append(value)
        with ops.colocate_with(self._colocate_with[0]):
            yield

    def _check_element_shape(self, shape):
        known = self._element_shape[0]
        if not shape.is_compatible_with(known):
            raise ValueError(
                "Inconsistent shapes: saw %s but expected %s (and "
                "infer_shape=True)" % (shape, known))
        if self._infer_shape:
            self._element_shape[0] = known.merge_with(shape)

    def _value(self, value):
        value = ops.convert_to_tensor(value, preferred_dtype=self._dtype,
                                      name="value")
        if value.dtype.base_dtype != self._dtype:
            raise TypeError(
                "Input value has dtype %s, but expected dtype %s. This leads "
                "to undefined behavior and will be an error in future "
                "versions of TensorFlow." % (value.dtype.name,
                                             self._dtype.name))
        return value

    def identity(self):
        return build_ta_with_new_flow(self, array_ops.identity(self._flow))

    def grad(self, source, flow=None, name=None):
        flow = self._flow if flow is None else flow
        with ops.name_scope(name, "TensorArrayGrad", [self._handle]):
            with ops.colocate_with(self._handle):
                handle, _ = apply_op("TensorArrayGradV3", name,
                                     handle=self._handle, source=source,
                                     flow_in=flow)
                with ops.control_dependencies([handle]):
                    flow = array_ops.identity(flow, name="gradient_flow")
                array = TensorArray(self._dtype, handle=handle, flow=flow,
                                    infer_shape=self._infer_shape,
                                    colocate_with_first_write_call=False)
                array._element_shape = self._element_shape
                return array

    def read(self, index, name=None):
        value = apply_op("TensorArrayReadV3", name, handle=self._handle,
                         index=index, flow_in=self._flow, dtype=self._dtype)
        value.set_shape(self.element_shape)
        return value

    def write(self, index, value, name=None):
        with ops.name_scope(name, "TensorArrayWrite",
                            [self._handle, index, value]):
            value = self._value(value)
            self._check_element_shape(value.shape)
            with self._beside_first_write(value):
                flow = apply_op("TensorArrayWriteV3", None,
                                handle=self._handle, index=index, value=value,
                                flow_in=self._flow)
            return build_ta_with_new_flow(self, flow)

    def size(self, name=None):
        return apply_op("TensorArraySizeV3", name, handle=self._handle,
                        flow_in=self._flow)

    def stack(self, name=None):
        with ops.colocate_with(self._handle):
            with ops.name_scope(name, "TensorArrayStack", [self._handle]):
                return self.gather(math_ops.range(0, self.size()), name=name)

    def gather(self, indices, name=None):
        value = apply_op("TensorArrayGatherV3", name, handle=self._handle,
                         indices=indices, flow_in=self._flow,
                         dtype=self._dtype, element_shape=self.element_shape)
        if self.element_shape.ndims is not None:
            value.set_shape([None] + self.element_shape.as_list())
        return value

    def concat(self, name=None):
        shape = self.element_shape
        rest = shape[1:] if shape.ndims is not None else shape
        value, _ = apply_op("TensorArrayConcatV3", name, handle=self._handle,
                            flow_in=self._flow, dtype=self._dtype,
                            element_shape_except0=rest)
        if rest.ndims is not None:
            value.set_shape([None] + rest.as_list())
        return value

    def unstack(self, value, name=None):
        with ops.name_scope(name, "TensorArrayUnstack",
                            [self._handle, value]):
            count = array_ops.shape(value)[0]
            return self.scatter(math_ops.range(0, count), value, name=name)

    def scatter(self, indices, value, name=None):
        with ops.name_scope(name, "TensorArrayScatter",
                            [self._handle, value, indices]):
            value = self._value(value)
            if value.shape.ndims is not None:
                self._check_element_shape(value.shape[1:])
            with self._beside_first_write(value):
                flow = apply_op("TensorArrayScatterV3", name,
                                handle=self._handle, indices=indices,
                                value=value, flow_in=self._flow)
            return build_ta_with_new_flow(self, flow)

    def split(self, value, lengths, name=None):
        with ops.name_scope(name, "TensorArraySplit",
                            [self._handle, value, lengths]):
            value = self._value(value)
            with self._beside_first_write(value):
                lengths = math_ops.cast(lengths, dtypes.int64)
                known = constant_op.constant_value(lengths)
                if known is not None and known.size and \
                        value.shape.ndims is not None and \
                        known.max() == known.min():
                    self._check_element_shape(tensor_shape.TensorShape(
                        [int(known[0])] + value.shape.as_list()[1:]))
                flow = apply_op("TensorArraySplitV3", name,
                                handle=self._handle, value=value,
                                lengths=lengths, flow_in=self._flow)
            return build_ta_with_new_flow(self, flow)

    def close(self, name=None):
        return build("TensorArrayCloseV3", name, handle=self._handle)


def build_ta_with_new_flow(old, flow):
    """Another handle on the array of `old`, after what made `flow`."""
    new = TensorArray(
        old.dtype, handle=old.handle, flow=flow,
        infer_shape=old._infer_shape,
        colocate_with_first_write_call=old._colocate_with_first_write_call)
    new._dynamic_size = old._dynamic_size
    new._colocate_with = old._colocate_with
    new._element_shape = old._element_shape
    return new
