"""Tensors that stay with a session between its steps."""

from sluice.framework import device as _device
from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework.op_builder import apply_op, build
from sluice.ops import array_ops


class TensorHandle(object):
    """What fetching a `get_session_handle` gives: a tensor that is still where
    it came about. It is dropped when the handle is deleted or collected, or
    when its session is closed."""

    def __init__(self, handle, dtype, session):
        self._handle = handle.decode() if isinstance(handle, bytes) else handle
        self._dtype = dtype
        self._session = session
        self._auto_gc_enabled = True

    def __del__(self):
        if self._auto_gc_enabled:
            self._session._register_dead_handle(self._handle)

    def __str__(self):
        return self._handle

    handle = property(lambda self: self._handle)

    def eval(self):
        """The tensor's value."""
        if not self._auto_gc_enabled:
            raise TypeError("Persistent tensor %s may have already been "
                            "deleted." % self._handle)
        holder, tensor = _reader(self._session.graph, self._handle,
                                 self._dtype)
        return self._session.run(tensor, {holder: self._handle})

    to_numpy_array = eval

    def delete(self):
        """Drops the tensor."""
        if not self._auto_gc_enabled:
            raise TypeError("Persistent tensor %s may have already been "
                            "deleted." % self._handle)
        self._auto_gc_enabled = False
        delete(self._session, [self._handle])

    def get_raw_handle(self):
        """The handle as a text. It is no longer dropped by itself."""
        self._auto_gc_enabled = False
        return self._handle

    @staticmethod
    def _get_device_name(handle):
        """The device that a handle's tensor is on."""
        text = handle.decode() if isinstance(handle, bytes) else str(handle)
        return _device.canonical_name(text.split(";")[-1])


def get_session_handle(data, name=None):
    """Keeps `data` with the session; fetch the result for a TensorHandle."""
    if not isinstance(data, ops.Tensor):
        raise TypeError("`data` must be of type Tensor.")
    with ops.colocate_with(data):
        return apply_op("GetSessionHandle", name, value=data)


def get_session_tensor(handle, dtype, name=None):
    """(holder, tensor): feed a handle for `holder` and `tensor` is its value,
    on the device of `handle`."""
    with ops.device(TensorHandle._get_device_name(handle)):
        holder = array_ops.placeholder(dtypes.string)
        tensor = apply_op("GetSessionTensor", name, handle=holder, dtype=dtype)
    holder.graph._handle_holders.add(holder)
    return holder, tensor


def delete_session_tensor(handle, name=None):
    """(holder, deleter): feed a handle for `holder`, and `deleter` drops its
    tensor."""
    with ops.device(TensorHandle._get_device_name(handle)):
        holder = array_ops.placeholder(dtypes.string)
        deleter = build("DeleteSessionTensor", name, handle=holder)
    holder.graph._handle_holders.add(holder)
    return holder, deleter


def is_handle(element):
    return isinstance(element, ops.Tensor) and element.op.type in (
        "GetSessionHandle", "GetSessionHandleV2")


def _once_a_device(graph, handle, what, make):
    """The nodes for `what` on the handle's device, made at first use."""
    key = (what, TensorHandle._get_device_name(handle))
    if key not in graph._handle_nodes:
        with graph.as_default(), ops.control_dependencies(None):
            graph._handle_nodes[key] = make()
    return graph._handle_nodes[key]


def _reader(graph, handle, dtype):
    return _once_a_device(graph, handle, dtype,
                          lambda: get_session_tensor(handle, dtype))


def delete(session, handles):
    for handle in handles:
        holder, deleter = _once_a_device(
            session.graph, handle, "delete",
            lambda: delete_session_tensor(handle))
        session.run(deleter, {holder: handle})
