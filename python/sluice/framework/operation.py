"""Operations and tensors: handles of nodes of the engine's graph.

An Operation is (graph, id), and there is one object per id.
"""

import traceback

from sluice import _sluice
from sluice.framework import call_stack
from sluice.framework import default_session
from sluice.framework import dtypes
from sluice.framework import errors
from sluice.framework import protos
from sluice.framework import tensor_shape


def _shape_conflict(ours, theirs):
    """Why two shapes cannot be those of one tensor."""
    if ours.ndims != theirs.ndims:
        return "Shapes must be equal rank, but are %d and %d" % (
            ours.ndims, theirs.ndims)
    def text(shape):
        return "[%s]" % ",".join("?" if d is None else str(d)
                                 for d in shape.as_list())
    for i, (a, b) in enumerate(zip(ours.as_list(), theirs.as_list())):
        if a is not None and b is not None and a != b:
            return ("Dimension %d in both shapes must be equal, but are %d "
                    "and %d. Shapes are %s and %s." %
                    (i, a, b, text(ours), text(theirs)))
    return "Shapes %s and %s are not compatible" % (ours, theirs)


class Tensor(object):
    """One output of an operation."""

    __slots__ = ("_op", "_index", "_dtype", "__weakref__", "_keras_mask",
                 "_uses_learning_phase", "assign")
    __array_priority__ = 100
    OVERLOADABLE_OPERATORS = {
        "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__",
        "__div__", "__rdiv__", "__truediv__", "__rtruediv__", "__floordiv__",
        "__rfloordiv__", "__mod__", "__rmod__", "__lt__", "__le__", "__gt__",
        "__ge__", "__and__", "__rand__", "__or__", "__ror__", "__xor__",
        "__rxor__", "__getitem__", "__pow__", "__rpow__", "__invert__",
        "__neg__", "__abs__", "__matmul__", "__rmatmul__",
    }

    def __init__(self, op, index, dtype):
        self._op = op
        self._index = index
        self._dtype = dtype

    @property
    def op(self):
        return self._op

    @property
    def graph(self):
        return self._op._graph

    @property
    def dtype(self):
        return self._dtype

    @property
    def name(self):
        return "%s:%d" % (self._op._name, self._index)

    @property
    def device(self):
        return self._op.device

    @property
    def value_index(self):
        return self._index

    @property
    def shape(self):
        return tensor_shape.TensorShape._of(
            self._op._graph._core.shape(self._op._id, self._index))

    def get_shape(self):
        return self.shape

    def set_shape(self, shape):
        shape = tensor_shape.as_shape(shape)
        try:
            self._op._graph._core.set_shape(self._op._id, self._index,
                                            shape._core())
        except errors.InvalidArgumentError:
            raise ValueError(_shape_conflict(self.shape, shape)) from None

    @property
    def _key(self):
        return self._op._id, self._index

    def consumers(self):
        graph = self._op._graph
        return [graph._op(i) for i in
                graph._core.node_consumers(self._op._id, self._index)]

    def eval(self, feed_dict=None, session=None):
        return default_session.eval_tensor(self, feed_dict, self.graph, session)

    def _shape_as_list(self):
        return None if self.shape.ndims is None else self.shape.as_list()

    def _as_node_def_input(self):
        if self._index == 0:
            return self._op._name
        return "%s:%d" % (self._op._name, self._index)

    def __str__(self):
        text = 'Tensor("%s"' % self.name
        shape = self.shape
        if shape.ndims is not None:
            text += ", shape=%s" % shape
        text += ", dtype=%s" % self._dtype.name
        if self.device:
            text += ", device=%s" % self.device
        return text + ")"

    def __repr__(self):
        return "<tf.Tensor '%s' shape=%s dtype=%s>" % (
            self.name, self.shape, self._dtype.name)

    def __hash__(self):
        return id(self)

    def __eq__(self, other):
        return self is other

    def __ne__(self, other):
        return self is not other

    def __iter__(self):
        raise errors.OperatorNotAllowedInGraphError(
            "iterating over `tf.Tensor` is not allowed in Graph execution. "
            "Use Eager execution or decorate this function with @tf.function.")

    def __bool__(self):
        raise errors.OperatorNotAllowedInGraphError(
            "using a `tf.Tensor` as a Python `bool` is not allowed in Graph "
            "execution. Use Eager execution or decorate this function with "
            "@tf.function.")

    __nonzero__ = __bool__

    def __len__(self):
        raise TypeError("len is not well defined for symbolic Tensors. (%s) "
                        "Please call `x.shape` rather than `len(x)` for "
                        "shape information." % self.name)

    def __array__(self, dtype=None, copy=None):
        raise NotImplementedError(
            "Cannot convert a symbolic Tensor (%s) to a numpy array." %
            self.name)

    @staticmethod
    def _override_operator(operator, func):
        setattr(Tensor, operator, func)


class Operation(object):
    """A node of a graph."""

    __slots__ = ("_graph", "_id", "_name", "_type", "_outputs", "_frames",
                 "_device_scopes", "_colocations", "__weakref__", "__dict__")

    def __init__(self, graph, description, frames):
        self._id, self._name, self._type, outputs = description
        self._graph = graph
        self._frames = frames
        self._device_scopes = graph._device_scopes
        self._colocations = graph._colocations
        all_types = dtypes._ALL
        self._outputs = [Tensor(self, i, all_types[t])
                         for i, (t, _) in enumerate(outputs)]

    @property
    def graph(self):
        return self._graph

    @property
    def name(self):
        return self._name

    @property
    def type(self):
        return self._type

    @property
    def _id_value(self):
        return self._id + 1

    @property
    def outputs(self):
        return self._outputs

    @property
    def device(self):
        return self._graph._core.node_device(self._id)

    def _set_device(self, device):
        self._graph._core.set_node_device(
            self._id, device if isinstance(device, str)
            else device.to_string())

    @property
    def inputs(self):
        graph = self._graph
        return _InputList(graph._op(n)._outputs[i] for n, i in
                          graph._core.node_inputs(self._id))

    @property
    def control_inputs(self):
        graph = self._graph
        return [graph._op(i) for i in
                graph._core.node_control_inputs(self._id)]

    @property
    def _control_outputs(self):
        graph = self._graph
        return [graph._op(i) for i in
                graph._core.node_control_consumers(self._id)]

    @property
    def node_def(self):
        return protos.NodeDef.FromString(
            self._graph._core.node_def(self._id))

    @property
    def op_def(self):
        return protos.OpDef.FromString(_sluice.op_def(self._type))

    def get_attr(self, name):
        try:
            value = self._graph._core.node_attr(self._id, name)
        except KeyError:
            raise ValueError("Operation '%s' has no attr named '%s'." %
                             (self._name, name)) from None
        return _attr_from_core(value)

    def _set_attr(self, name, value):
        """`value` is an AttrValue message or a plain value."""
        if hasattr(value, "WhichOneof"):
            kind = value.WhichOneof("value")
            if kind == "list":
                value = list(value.list.s) or list(value.list.i)
            else:
                value = getattr(value, kind)
        self._graph._core.set_node_attr(self._id, name, value)

    def _add_control_input(self, op):
        self._graph._core.add_control_edge(op._id, self._id)

    def _add_control_inputs(self, ops):
        for op in ops:
            self._add_control_input(op)

    def _update_input(self, index, tensor):
        self._graph._core.set_input(self._id, index, tensor._op._id,
                                    tensor._index)

    def colocation_groups(self):
        own = [b"loc:@" + self._name.encode()]
        try:
            groups = [g for g in self.get_attr("_class")
                      if g.startswith(b"loc:@")]
        except ValueError:
            return own
        return groups or own

    def values(self):
        return tuple(self._outputs)

    def run(self, feed_dict=None, session=None):
        default_session.run_operation(self, feed_dict, self._graph, session)

    @property
    def traceback(self):
        return call_stack.expand(self._frames)

    def traceback_text(self):
        return traceback.format_list(call_stack.expand(self._frames))

    def defined_at(self):
        """The user's line that made this operation, as file:line."""
        return call_stack.innermost_of_user(self._frames or ())

    @property
    def _original_op(self):
        """The operation whose gradient this one is a part of, or None."""
        origin = self._graph._gradient_origin(self._id)
        if origin is not None and origin._name + "_grad" in self._name:
            return origin
        return None

    def device_summary(self):
        """The device scopes that this operation was made in."""
        return _summary("Device assignments", "device", self._name,
                        self._device_scopes)

    def colocation_summary(self):
        return _summary("Node-device colocations", "colocate_with", self._name,
                        self._colocations)

    def __str__(self):
        return str(self.node_def)

    def __repr__(self):
        return "<tf.Operation '%s' type=%s>" % (self._name, self._type)


def _summary(what, function, name, scopes):
    if not scopes:
        return "No %s were active during op '%s' creation." % (
            what[0].lower() + what[1:], name)
    lines = ["%s active during op '%s' creation:" % (what, name)]
    for item, where in scopes:
        if callable(item):
            code = getattr(item, "__code__", None) or getattr(
                getattr(item, "__call__"), "__code__", None)
            text = getattr(item, "__name__", type(item).__name__)
            if code is not None:
                text += "<%s, %d>" % (code.co_filename, code.co_firstlineno)
        else:
            text = item if item is None or isinstance(item, str) else \
                item.to_string()
        lines.append("  with tf.%s(%s): <%s>" % (function, text, where))
    return "\n".join(lines)


class _InputList(object):
    """A read-only view of inputs."""

    def __init__(self, inputs):
        self._inputs = list(inputs)

    def __iter__(self):
        return iter(self._inputs)

    def __len__(self):
        return len(self._inputs)

    def __getitem__(self, i):
        return self._inputs[i]

    def __bool__(self):
        return bool(self._inputs)


def _attr_from_core(value):
    if isinstance(value, tuple):
        kind, content = value
        if kind == "type":
            return dtypes.as_dtype(content)
        if kind == "shape":
            return tensor_shape.TensorShape._of(content).as_proto()
        return content
    if isinstance(value, list):
        return [_attr_from_core(v) for v in value]
    if isinstance(value, _sluice.TensorValue):
        return protos.TensorProto.FromString(_sluice.tensor_to_proto(value))
    return value
