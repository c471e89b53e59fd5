"""Graphs, operations and tensors.

The engine's graph owns the nodes, their shapes and the stacks of scopes; the
classes here are handles. An Operation is (graph, id), and there is one object
per id. A `with` block pushes on the engine's stacks and pops at its end.
"""

import collections
import contextlib
import re
import sys
import threading
import traceback

from sluice.platform.lazy_numpy import np

from sluice import _sluice
from sluice.framework import device as device_lib
from sluice.framework import dtypes
from sluice.framework import errors
from sluice.framework import protos
from sluice.framework import tensor_shape

_PACKAGE = __name__.rsplit(".", 2)[0]


class GraphKeys(object):
    """Names of collections."""
    GLOBAL_VARIABLES = VARIABLES = "variables"
    LOCAL_VARIABLES = "local_variables"
    METRIC_VARIABLES = "metric_variables"
    MODEL_VARIABLES = "model_variables"
    TRAINABLE_VARIABLES = "trainable_variables"
    TRAINABLE_RESOURCE_VARIABLES = "trainable_resource_variables"
    SUMMARIES = "summaries"
    QUEUE_RUNNERS = "queue_runners"
    TABLE_INITIALIZERS = "table_initializer"
    ASSET_FILEPATHS = "asset_filepaths"
    MOVING_AVERAGE_VARIABLES = "moving_average_variables"
    REGULARIZATION_LOSSES = "regularization_losses"
    CONCATENATED_VARIABLES = "concatenated_variables"
    SAVERS = "savers"
    WEIGHTS = "weights"
    BIASES = "biases"
    ACTIVATIONS = "activations"
    UPDATE_OPS = "update_ops"
    LOSSES = "losses"
    SAVEABLE_OBJECTS = "saveable_objects"
    RESOURCES = "resources"
    LOCAL_RESOURCES = "local_resources"
    INIT_OP = "init_op"
    LOCAL_INIT_OP = "local_init_op"
    READY_OP = "ready_op"
    READY_FOR_LOCAL_INIT_OP = "ready_for_local_init_op"
    SUMMARY_OP = "summary_op"
    GLOBAL_STEP = "global_step"
    EVAL_STEP = "eval_step"
    TRAIN_OP = "train_op"
    COND_CONTEXT = "cond_context"
    WHILE_CONTEXT = "while_context"
    _SUMMARY_COLLECTION = "_SUMMARY_V2"


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
        return _eval(self, feed_dict, self.graph, session)

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
                 "__weakref__", "__dict__")

    def __init__(self, graph, description, frames):
        self._id, self._name, self._type, outputs = description
        self._graph = graph
        self._frames = frames
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
        _run(self, feed_dict, self._graph, session)

    @property
    def traceback(self):
        return _expand(self._frames)

    def traceback_text(self):
        return traceback.format_list(_expand(self._frames))

    def defined_at(self):
        """The user's line that made this operation, as file:line."""
        for code, line in self._frames or ():
            module = code.co_filename
            if not _is_own_file(module):
                return "%s:%d" % (module, line)
        return "<unknown>"

    def __str__(self):
        return str(self.node_def)

    def __repr__(self):
        return "<tf.Operation '%s' type=%s>" % (self._name, self._type)


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


import os as _os  # noqa: E402
_OWN_FILES = _os.path.dirname(_os.path.dirname(_os.path.abspath(__file__)))


def _is_own_file(path):
    return path.startswith(_OWN_FILES)


def _stack():
    """(code, line) of each frame, innermost first. Cheap: no source is read."""
    frames = []
    frame = sys._getframe(2)
    while frame is not None:
        frames.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return frames


def _expand(frames):
    import linecache
    return [traceback.FrameSummary(code.co_filename, line, code.co_name,
                                   line=linecache.getline(code.co_filename,
                                                          line).strip())
            for code, line in reversed(frames or [])]


_SCOPE_NAME = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\\/-]*$")


class Graph(object):
    """A set of operations that sessions run."""

    def __init__(self):
        self._core = _sluice.GraphCore()
        self._ops = []
        self._collections = {}
        self._lock = threading.RLock()
        self._seed = None
        self._unfeedable = set()
        self._unfetchable = set()
        self._device_scopes = []
        self.building_function = False
        self._container = ""
        self._variable_store = None

    # ---- Nodes ----

    def _op(self, node_id):
        """The Operation of a node; makes those the engine added itself."""
        ops = self._ops
        if node_id >= len(ops):
            frames = _stack()
            for i in range(len(ops), self._core.num_nodes()):
                ops.append(Operation(self, self._core.describe(i), frames))
        return ops[node_id]

    def _tensor(self, key):
        node, index = key
        return self._op(node)._outputs[index]

    def _operation_or_none(self, name):
        node = self._core.find_node(name)
        return None if node < 0 else self._op(node)

    def _add_op(self, op_type, name, inputs, attrs, control_inputs=()):
        """One call into the engine; `inputs` are tensors, lists flattened."""
        flat = []
        for tensor in inputs:
            op = tensor._op
            if op._graph is not self:
                raise ValueError("%s must be from the same graph as %s." %
                                 (tensor, inputs[0]))
            flat.append(op._id)
            flat.append(tensor._index)
        if self._core.finalized():
            raise RuntimeError("Graph is finalized and cannot be modified.")
        controls = [op._id for op in control_inputs]
        with self._lock:
            try:
                description = self._core.add_op(op_type, name or "", flat,
                                                attrs, controls)
            except errors.InvalidArgumentError as e:
                raise ValueError(e.message) from None
            ops = self._ops
            node_id = description[0]
            frames = _stack()
            # The engine may have added nodes before this one.
            for i in range(len(ops), node_id):
                ops.append(Operation(self, self._core.describe(i), frames))
            if node_id == len(ops):
                op = Operation(self, description, frames)
                ops.append(op)
                return op
            return ops[node_id]

    def create_op(self, op_type, inputs, dtypes=None, input_types=None,
                  name=None, attrs=None, op_def=None, compute_shapes=True,
                  compute_device=True):
        """The old way to add an operation: `attrs` are AttrValue messages."""
        from sluice.framework import op_builder
        converted = {}
        for key, value in (attrs or {}).items():
            converted[key] = op_builder.attr_from_proto(value)
        if name is None:
            name = op_type
        return self._add_op(op_type, name, list(inputs), converted)

    # ---- Look-up ----

    def get_operations(self):
        self._op(self._core.num_nodes() - 1) if self._core.num_nodes() else 0
        return list(self._ops)

    def get_operation_by_name(self, name):
        if not isinstance(name, str):
            raise TypeError("Operation names are strings (or similar), not %s."
                            % type(name).__name__)
        return self.as_graph_element(name, allow_tensor=False,
                                     allow_operation=True)

    def get_tensor_by_name(self, name):
        if not isinstance(name, str):
            raise TypeError("Tensor names are strings (or similar), not %s." %
                            type(name).__name__)
        return self.as_graph_element(name, allow_tensor=True,
                                     allow_operation=False)

    def as_graph_element(self, obj, allow_tensor=True, allow_operation=True):
        if allow_tensor and allow_operation:
            types = "Tensor or Operation"
        elif allow_tensor:
            types = "Tensor"
        elif allow_operation:
            types = "Operation"
        else:
            raise ValueError("allow_tensor and allow_operation can't both be "
                             "False.")
        if hasattr(obj, "_as_graph_element"):
            element = obj._as_graph_element()
            obj = obj if element is None else element
        if isinstance(obj, bytes):
            obj = obj.decode()
        if isinstance(obj, str):
            return self._element_by_name(obj, allow_tensor, allow_operation)
        if isinstance(obj, Tensor) and allow_tensor:
            if obj.graph is not self:
                raise ValueError("Tensor %s is not an element of this graph." %
                                 obj)
            return obj
        if isinstance(obj, Operation) and allow_operation:
            if obj.graph is not self:
                raise ValueError("Operation %s is not an element of this "
                                 "graph." % obj.name)
            return obj
        raise TypeError("Can not convert a %s into a %s." %
                        (type(obj).__name__, types))

    def _element_by_name(self, name, allow_tensor, allow_operation):
        if ":" in name and allow_tensor:
            try:
                op_name, out = name.split(":")
                index = int(out)
            except ValueError:
                raise ValueError(
                    "The name %r looks a like a Tensor name, but is not a "
                    "valid one. Tensor names must be of the form "
                    '"<op_name>:<output_index>".' % name) from None
            op = self._operation_or_none(op_name)
            if op is None:
                raise KeyError(
                    "The name %r refers to a Tensor which does not exist. The "
                    "operation, %r, does not exist in the graph." %
                    (name, op_name))
            if index >= len(op.outputs) or index < 0:
                raise KeyError(
                    "The name %r refers to a Tensor which does not exist. The "
                    "operation, %r, exists but only has %s outputs." %
                    (name, op_name, len(op.outputs)))
            return op.outputs[index]
        if ":" in name:
            raise ValueError("Name %r appears to refer to a Tensor, not a "
                             "Operation." % name)
        op = self._operation_or_none(name)
        if not allow_operation:
            if op is None:
                raise ValueError(
                    "The name %r looks like an (invalid) Operation name, not "
                    "a Tensor. Tensor names must be of the form "
                    '"<op_name>:<output_index>".' % name)
            raise ValueError(
                "The name %r refers to an Operation, not a Tensor. Tensor "
                'names must be of the form "<op_name>:<output_index>".' % name)
        if op is None:
            raise KeyError("The name %r refers to an Operation not in the "
                           "graph." % name)
        return op

    # ---- Scopes ----

    @contextlib.contextmanager
    def _pushed(self):
        core = self._core
        core.push()
        try:
            yield core
        finally:
            core.pop()

    @contextlib.contextmanager
    def name_scope(self, name):
        if name and not isinstance(name, str):
            raise TypeError("name for name_scope must be a string.")
        with self._pushed() as core:
            try:
                scope = core.enter_name_scope(name or "")
            except errors.InvalidArgumentError as e:
                raise ValueError(e.message) from None
            yield scope if scope else ""

    def unique_name(self, name, mark_as_used=True):
        return self._core.unique_name(name, mark_as_used)

    def get_name_scope(self):
        return self._core.name_scope()[:-1]

    @property
    def _name_stack(self):
        return self._core.name_scope()[:-1]

    @contextlib.contextmanager
    def device(self, device_name_or_function):
        with self._pushed() as core:
            d = device_name_or_function
            if d is None:
                core.clear_devices()
            elif callable(d):
                core.push_device_function(self._device_function(d))
            elif isinstance(d, device_lib.DeviceSpec):
                core.push_device(d._core())
            else:
                core.push_device(device_lib.DeviceSpec.from_string(d)._core())
            yield

    def _device_function(self, function):
        def call(node_id):
            result = function(self._op(node_id))
            if isinstance(result, device_lib.DeviceSpec):
                return result.to_string()
            if not isinstance(result, str):
                raise TypeError("A device function must return a device, not "
                                "%r" % (result,))
            return result
        return call

    @contextlib.contextmanager
    def control_dependencies(self, control_inputs):
        with self._pushed() as core:
            if control_inputs is None:
                core.clear_control()
            else:
                ids = []
                for item in control_inputs:
                    if isinstance(item, IndexedSlices):
                        item = item.op
                    item = self.as_graph_element(item)
                    op = item.op if isinstance(item, Tensor) else item
                    if op._id not in ids:
                        ids.append(op._id)
                core.push_control(ids)
            yield self

    @contextlib.contextmanager
    def colocate_with(self, op, ignore_existing=False):
        if op is None and not ignore_existing:
            raise ValueError("Trying to reset colocation (op is None) but "
                             "ignore_existing is not True")
        node = -1
        if op is not None:
            op = _op_of(op)
            node = op._id
        with self._pushed() as core:
            core.push_colocation(node, ignore_existing)
            yield

    @contextlib.contextmanager
    def container(self, container_name):
        before, self._container = self._container, container_name
        try:
            with self._pushed() as core:
                core.set_container(container_name)
                yield container_name
        finally:
            self._container = before

    @contextlib.contextmanager
    def _attr_scope(self, attr_map):
        with self._pushed() as core:
            for name, value in attr_map.items():
                if value is not None:
                    from sluice.framework import op_builder
                    core.push_attr(name, op_builder.attr_from_proto(value))
            yield

    @contextlib.contextmanager
    def gradient_override_map(self, op_type_map):
        with self._pushed() as core:
            core.push_gradient_overrides(dict(op_type_map))
            yield

    # ---- Collections ----

    def add_to_collection(self, name, value):
        if self._core.finalized():
            raise RuntimeError("Graph is finalized and cannot be modified.")
        self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names, value):
        names = (names,) if isinstance(names, str) else list(dict.fromkeys(
            names))
        for name in names:
            self.add_to_collection(name, value)

    def get_collection_ref(self, name):
        return self._collections.setdefault(name, [])

    def get_collection(self, name, scope=None):
        items = self._collections.get(name, [])
        if scope is None:
            return list(items)
        pattern = re.compile(scope)
        return [item for item in items
                if hasattr(item, "name") and pattern.match(item.name)]

    def get_all_collection_keys(self):
        return [k for k in self._collections if isinstance(k, str)]

    def clear_collection(self, name):
        self._collections.pop(name, None)

    @property
    def collections(self):
        return self.get_all_collection_keys()

    # ---- Whole graph ----

    @property
    def version(self):
        return self._core.num_nodes()

    @property
    def seed(self):
        return self._seed

    @seed.setter
    def seed(self, seed):
        self._seed = seed

    @property
    def _last_id(self):
        return self._core.num_nodes()

    @property
    def finalized(self):
        return self._core.finalized()

    def finalize(self):
        self._core.finalize()

    def _unsafe_unfinalize(self):
        self._core.unfinalize()

    def as_graph_def(self, from_version=None, add_shapes=False):
        return protos.GraphDef.FromString(
            self._core.graph_def(from_version or 0, add_shapes))

    @property
    def graph_def_versions(self):
        return self.as_graph_def(from_version=self.version).versions

    @contextlib.contextmanager
    def as_default(self):
        with _default_graphs.entered(self):
            yield self

    def prevent_feeding(self, tensor):
        self._unfeedable.add(tensor)

    def is_feedable(self, tensor):
        return tensor not in self._unfeedable

    def prevent_fetching(self, op):
        self._unfetchable.add(op)

    def is_fetchable(self, element):
        op = element.op if isinstance(element, Tensor) else element
        return op not in self._unfetchable and \
            self._core.node_fetchable(op._id)

    def switch_to_thread_local(self):
        pass


class IndexedSlices(object):
    """Rows of a tensor: `values[i]` belongs to row `indices[i]`."""

    def __init__(self, values, indices, dense_shape=None):
        self._values = values
        self._indices = indices
        self._dense_shape = dense_shape

    @property
    def values(self):
        return self._values

    @property
    def indices(self):
        return self._indices

    @property
    def dense_shape(self):
        return self._dense_shape

    @property
    def name(self):
        return self._values.name

    @property
    def device(self):
        return self._values.device

    @property
    def op(self):
        return self._values.op

    @property
    def dtype(self):
        return self._values.dtype

    @property
    def graph(self):
        return self._values.graph

    def __str__(self):
        return "IndexedSlices(indices=%s, values=%s%s)" % (
            self._indices, self._values,
            ", dense_shape=%s" % self._dense_shape
            if self._dense_shape is not None else "")

    def __neg__(self):
        return IndexedSlices(-self._values, self._indices, self._dense_shape)


IndexedSlicesValue = collections.namedtuple(
    "IndexedSlicesValue", ["values", "indices", "dense_shape"])


# ---- Default graph and session, per thread ----

class _Stack(threading.local):
    def __init__(self):
        super().__init__()
        self.items = []

    @contextlib.contextmanager
    def entered(self, item):
        self.items.append(item)
        try:
            yield item
        finally:
            if not self.items or self.items[-1] is not item:
                if item in self.items:
                    self.items.remove(item)
                raise AssertionError(
                    "Nesting violated for default stack of %s objects" %
                    type(item))
            else:
                self.items.pop()

    def top(self):
        return self.items[-1] if self.items else None


class _GraphStack(_Stack):
    # All threads share the graph at the bottom.
    _shared = None

    def top(self):
        if self.items:
            return self.items[-1]
        if _GraphStack._shared is None:
            _GraphStack._shared = Graph()
        return _GraphStack._shared


_default_graphs = _GraphStack()
_default_sessions = _Stack()


def get_default_graph():
    return _default_graphs.top()


def reset_default_graph():
    if _default_graphs.items:
        raise AssertionError(
            "Do not use tf.reset_default_graph() to clear nested graphs. If "
            "you need a cleared graph, exit the nesting and create a new "
            "graph.")
    _GraphStack._shared = Graph()


def get_default_session():
    return _default_sessions.top()


def _eval(tensor, feed_dict, graph, session):
    if session is None:
        session = get_default_session()
        if session is None:
            raise ValueError(
                "Cannot evaluate tensor using `eval()`: No default session is "
                "registered. Use `with sess.as_default()` or pass an explicit "
                "session to `eval(session=sess)`")
        if session.graph is not graph:
            raise ValueError(
                "Cannot use the default session to evaluate tensor: the "
                "tensor's graph is different from the session's graph. Pass "
                "an explicit session to `eval(session=sess)`.")
    elif session.graph is not graph:
        raise ValueError(
            "Cannot use the given session to evaluate tensor: the tensor's "
            "graph is different from the session's graph.")
    return session.run(tensor, feed_dict)


def _run(operation, feed_dict, graph, session):
    if session is None:
        session = get_default_session()
        if session is None:
            raise ValueError(
                "Cannot execute operation using `run()`: No default session "
                "is registered. Use `with sess.as_default():` or pass an "
                "explicit session to `run(session=sess)`")
        if session.graph is not graph:
            raise ValueError(
                "Cannot use the default session to execute operation: the "
                "operation's graph is different from the session's graph. "
                "Pass an explicit session to run(session=sess).")
    elif session.graph is not graph:
        raise ValueError(
            "Cannot use the given session to execute operation: the "
            "operation's graph is different from the session's graph.")
    session.run(operation, feed_dict)


def _op_of(value):
    if isinstance(value, Operation):
        return value
    if hasattr(value, "op"):
        return value.op
    return internal_convert_to_tensor(value).op


# ---- Functions on the default graph ----

@contextlib.contextmanager
def device(device_name_or_function):
    with get_default_graph().device(device_name_or_function):
        yield


@contextlib.contextmanager
def control_dependencies(control_inputs):
    with get_default_graph().control_dependencies(control_inputs):
        yield


@contextlib.contextmanager
def colocate_with(op, ignore_existing=False):
    graph = op.graph if hasattr(op, "graph") else get_default_graph()
    with graph.colocate_with(op, ignore_existing):
        yield


@contextlib.contextmanager
def container(container_name):
    with get_default_graph().container(container_name):
        yield container_name


def init_scope():
    """Lifts out of control dependencies; there is no other context to leave."""
    return control_dependencies(None)


def add_to_collection(name, value):
    get_default_graph().add_to_collection(name, value)


def add_to_collections(names, value):
    get_default_graph().add_to_collections(names, value)


def get_collection(key, scope=None):
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key):
    return get_default_graph().get_collection_ref(key)


def get_all_collection_keys():
    return get_default_graph().get_all_collection_keys()


def _graph_of(values):
    for value in _flat(values):
        graph = getattr(value, "graph", None)
        if isinstance(graph, Graph):
            return graph
    return None


def _flat(values):
    for value in values or ():
        if isinstance(value, (list, tuple)):
            for v in _flat(value):
                yield v
        else:
            yield value


class name_scope(object):
    """Names operations built inside; also switches to the graph of `values`."""

    def __init__(self, name, default_name=None, values=None):
        if not (default_name is None or isinstance(default_name, str)):
            raise TypeError("`default_name` type (%s) is not a string type. "
                            "You likely meant to pass this into the `values` "
                            "kwarg." % type(default_name))
        self._name = default_name if name is None else name
        self._values = values
        self._given = name

    @property
    def name(self):
        return self._name

    def __enter__(self):
        if self._name is None and self._values is not None:
            raise ValueError(
                "At least one of name (%s) and default_name (%s) must be "
                "provided." % (self._given, None))
        self._exits = contextlib.ExitStack()
        graph = _graph_of(self._values)
        if graph is not None and graph is not get_default_graph():
            self._exits.enter_context(graph.as_default())
        graph = get_default_graph()
        return self._exits.enter_context(graph.name_scope(self._name))

    def __exit__(self, *args):
        return self._exits.__exit__(*args)


def op_scope(values, name, default_name=None):
    return name_scope(name, default_name=default_name, values=values)


def strip_name_scope(name, export_scope):
    if export_scope:
        return re.sub(r"^(\^|loc:@|)%s[\/](.*)" % export_scope, r"\1\2", name)
    return name


def prepend_name_scope(name, import_scope):
    if import_scope:
        scope = import_scope[:-1] if import_scope.endswith("/") else \
            import_scope
        return re.sub(r"^(\^|loc:@|)(.*)", r"\1%s/\2" % scope, name)
    return name


# ---- Conversion to tensors ----

_converters = []  # (type, function, priority), sorted by priority.


def register_tensor_conversion_function(base_type, conversion_func,
                                        priority=100):
    types = base_type if isinstance(base_type, tuple) else (base_type,)
    if not all(isinstance(t, type) for t in types):
        raise TypeError("base_type must be a type or a tuple of types.")
    if not callable(conversion_func):
        raise TypeError("conversion_func must be callable.")
    _converters.append((base_type, conversion_func, priority))
    _converters.sort(key=lambda entry: entry[2])


def internal_convert_to_tensor(value, dtype=None, name=None, as_ref=False,
                               preferred_dtype=None):
    if isinstance(value, Tensor):
        if dtype is not None:
            wanted = dtypes.as_dtype(dtype)
            if not wanted.is_compatible_with(value.dtype) and \
                    not wanted.base_dtype.is_compatible_with(
                        value.dtype.base_dtype):
                raise ValueError(
                    "Tensor conversion requested dtype %s for Tensor with "
                    "dtype %s: %r" % (wanted.name, value.dtype.name, value))
        return value
    if dtype is not None:
        dtype = dtypes.as_dtype(dtype)
    for base_type, function, _ in _converters:
        if isinstance(value, base_type):
            result = NotImplemented
            if dtype is None and preferred_dtype is not None:
                try:
                    result = function(
                        value, dtype=dtypes.as_dtype(preferred_dtype),
                        name=name, as_ref=as_ref)
                except (TypeError, ValueError):
                    result = NotImplemented
            if result is NotImplemented:
                result = function(value, dtype=dtype, name=name, as_ref=as_ref)
            if result is not NotImplemented:
                return result
    from sluice.framework import constant_op
    if dtype is None and preferred_dtype is not None:
        try:
            return constant_op.constant(value, dtype=preferred_dtype,
                                        name=name)
        except (TypeError, ValueError):
            pass
    return constant_op.constant(value, dtype=dtype, name=name or "Const")


def convert_to_tensor(value, dtype=None, name=None, preferred_dtype=None,
                      dtype_hint=None):
    return internal_convert_to_tensor(value, dtype, name, False,
                                      dtype_hint or preferred_dtype)


def convert_n_to_tensor(values, dtype=None, name=None, as_ref=False,
                        preferred_dtype=None):
    return [internal_convert_to_tensor(
        v, dtype, None if name is None else "%s_%d" % (name, i), as_ref,
        preferred_dtype) for i, v in enumerate(values)]


def convert_to_tensor_or_indexed_slices(value, dtype=None, name=None):
    if isinstance(value, IndexedSlices) or value is None:
        return value
    return convert_to_tensor(value, dtype, name)


# ---- Gradients registered from Python ----

_gradients = {}


class RegisterGradient(object):
    """@RegisterGradient("OpType"): the function is that op's gradient."""

    def __init__(self, op_type):
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self._op_type = op_type

    def __call__(self, f):
        if self._op_type in _gradients:
            raise KeyError(
                "Registering two gradient with name '%s'! (Previous "
                "registration was in %s)" % (self._op_type, "gradient"))
        _gradients[self._op_type] = f
        return f


def NotDifferentiable(op_type):
    if not isinstance(op_type, str):
        raise TypeError("op_type must be a string")
    _gradients[op_type] = None


NoGradient = NotDifferentiable


class RegisterShape(object):
    """Old programs register shape functions; shapes come from the engine."""

    def __init__(self, op_type):
        self._op_type = op_type

    def __call__(self, f):
        return f


def is_dense_tensor_like(value):
    return isinstance(value, Tensor) or hasattr(value, "_as_graph_element")


def np_array(value):
    return np.asarray(value)
