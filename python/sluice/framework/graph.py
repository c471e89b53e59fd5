"""Graphs.

The engine's graph owns the nodes, their shapes and the stacks of scopes; the
classes here are handles. A `with` block pushes on the engine's stacks and pops
at its end.
"""

import bisect
import contextlib
import re
import threading

from sluice import _sluice
from sluice.framework import call_stack
from sluice.framework import default_session
from sluice.framework import device as device_lib
from sluice.framework import errors
from sluice.framework import protos
from sluice.framework.conversion import internal_convert_to_tensor
from sluice.framework.indexed_slices import IndexedSlices
from sluice.framework.operation import Operation, Tensor

_SCOPE_NAME = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\\/-]*$")


class Graph(object):
    """A set of operations that sessions run."""

    building_function = False

    def __init__(self):
        self._core = _sluice.GraphCore()
        self._ops = []
        self._collections = {}
        # Guards _ops; held for no call into the engine that waits.
        self._lock = threading.RLock()
        self._seed = None
        self._unfeedable = set()
        self._unfetchable = set()
        # What errors tell of an operation's scopes: (item, file:line) pairs,
        # innermost first. Never changed, so that operations can keep them.
        self._device_scopes = ()
        self._colocations = ()
        # Per gradients() call: first node, end, and [(node, of which op)].
        self._gradient_calls = []
        self._container = ""
        # What holds handles of tensors of sessions (ops/session_ops.py).
        self._handle_holders = set()
        self._handle_nodes = {}
        self._variable_store = None
        self._variable_creators = []
        self._py_funcs_used_in_graph = []
        self._functions = {}  # Those made by Python (framework/function.py).

    # ---- Nodes ----

    def _op(self, node_id):
        """The Operation of a node; makes those the engine added itself."""
        ops = self._ops
        if node_id >= len(ops):
            frames = call_stack.stack()
            with self._lock:
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
        try:
            description = self._core.add_op(op_type, name or "", flat, attrs,
                                            controls)
        except errors.InvalidArgumentError as e:
            raise ValueError(e.message) from None
        ops = self._ops
        node_id = description[0]
        frames = call_stack.stack()
        with self._lock:
            # The engine, or another thread, may have added nodes before it.
            for i in range(len(ops), node_id):
                ops.append(Operation(self, self._core.describe(i), frames))
            if node_id == len(ops):
                op = Operation(self, description, frames)
                ops.append(op)
                return op
            # A device function or another thread saw it first.
            op = ops[node_id]
            op._frames = frames
            return op

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

    def _gradient_origin(self, node_id):
        """The operation whose gradient was being built when the node came."""
        for first, end, origins in self._gradient_calls:
            if first <= node_id < end:
                at = bisect.bisect_right(origins, (node_id, float("inf")))
                return self._op(origins[at - 1][1]) if at else None
        return None

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
        core = self._core
        d = device_name_or_function
        core.push()
        try:
            if d is None:
                core.clear_devices()
            elif callable(d):
                core.push_device_function(self._device_function(d))
            elif isinstance(d, device_lib.DeviceSpec):
                core.push_device(d._core())
            else:
                core.push_device(device_lib.DeviceSpec.from_string(d)._core())
        except BaseException:
            core.pop()
            raise
        scopes = self._device_scopes
        inside = ((d, call_stack.here()),) + scopes
        self._device_scopes = inside
        try:
            yield
        finally:
            if self._device_scopes is not inside:
                raise RuntimeError("Exiting device scope without proper scope "
                                   "nesting.")
            self._device_scopes = scopes
            core.pop()

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
                    # A resource variable is not read to be waited for.
                    if isinstance(item, IndexedSlices) or hasattr(item,
                                                                  "_handle"):
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
        before = self._device_scopes, self._colocations
        self._device_scopes = ()
        if ignore_existing:
            self._colocations = ()
        if op is not None:
            self._colocations = ((op.name, call_stack.here()),
                                 ) + self._colocations
        try:
            with self._pushed() as core:
                core.push_colocation(node, ignore_existing)
                yield
        finally:
            self._device_scopes, self._colocations = before

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
        self._core.set_finalized(True)

    def _unsafe_unfinalize(self):
        self._core.set_finalized(False)

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

    def is_fetchable(self, tensor_or_op):
        op = tensor_or_op.op if isinstance(tensor_or_op, Tensor) else \
            tensor_or_op
        return op not in self._unfetchable and \
            self._core.node_fetchable(op._id)

    def switch_to_thread_local(self):
        pass


def _op_of(value):
    if isinstance(value, Operation):
        return value
    if hasattr(value, "op"):
        return value.op
    return internal_convert_to_tensor(value).op


class _GraphStack(default_session.Stack):
    # All threads share the graph at the bottom.
    _shared = None

    def top(self):
        if self.items:
            return self.items[-1]
        if _GraphStack._shared is None:
            _GraphStack._shared = Graph()
        return _GraphStack._shared


_default_graphs = _GraphStack()


def get_default_graph():
    return _default_graphs.top()


def reset_default_graph():
    if _default_graphs.items:
        raise AssertionError(
            "Do not use tf.reset_default_graph() to clear nested graphs. If "
            "you need a cleared graph, exit the nesting and create a new "
            "graph.")
    _GraphStack._shared = Graph()
