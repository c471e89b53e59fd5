"""Variables behind a handle."""

from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework import tensor_shape
from sluice.framework.op_builder import apply_op, build
from sluice.ops import array_ops
from sluice.ops import initial_values
from sluice.ops import variables


class ResourceVariable(variables.Variable):
    """A variable behind a handle; every use reads it anew, unless it is cached
    on a device."""

    _is_resource = True

    def _build(self, initial_value, validate_shape, caching_device, name,
               dtype):
        graph = ops.get_default_graph()
        if dtype is not None:
            dtype = dtypes.as_dtype(dtype)
        init_from_fn = callable(initial_value)
        with ops.name_scope(name, "Variable",
                            [] if init_from_fn else [initial_value]) as scope:
            handle_name = scope[:-1]
            with graph._attr_scope({"_class": ["loc:@" + handle_name]}):
                with ops.name_scope("Initializer"), ops.device(None):
                    value = initial_value() if init_from_fn else \
                        initial_value
                    self._initial_value = ops.convert_to_tensor(
                        value, name="initial_value", dtype=dtype)
                self._dtype = self._initial_value.dtype.base_dtype
                shape = self._initial_value.shape if validate_shape else \
                    tensor_shape.unknown_shape()
                self._handle = apply_op("VarHandleOp", scope, shape=shape,
                                        dtype=self._dtype,
                                        shared_name=handle_name)
            self._shape = shape
            self._variable = self._handle
            with ops.name_scope("IsInitialized"):
                self._is_initialized_op = apply_op(
                    "VarIsInitializedOp", None, resource=self._handle)
            with ops.name_scope("Assign") as n, ops.colocate_with(
                    None, ignore_existing=True), ops.device(
                        self._handle.device):
                self._initializer_op = build(
                    "AssignVariableOp", n, resource=self._handle,
                    value=initial_values.safe_initial_value(scope, self._initial_value))
            with ops.name_scope("Read"), ops.device(self._handle.device):
                self._graph_element = self._snapshot = self._read()
                if caching_device is not None:
                    with ops.colocate_with(None, ignore_existing=True), \
                            ops.device(caching_device):
                        self._snapshot = array_ops.identity(
                            self._graph_element)

    def _init_from_proto(self, variable_def, import_scope):
        super()._init_from_proto(variable_def, import_scope)
        self._handle = self._variable
        g = self._handle.graph
        dtype, shape = g._core.handle_shape(self._handle.op._id, 0)
        self._dtype = dtypes.as_dtype(dtype)
        self._shape = tensor_shape.TensorShape._of(shape)
        read = self._snapshot
        while read.op.type != "ReadVariableOp":  # It is cached.
            read = read.op.inputs[0]
        self._graph_element = read
        self._is_initialized_op = None

    def _read(self):
        return apply_op("ReadVariableOp", None, resource=self._handle,
                        dtype=self._dtype)

    @property
    def handle(self):
        return self._handle

    @property
    def dtype(self):
        return self._dtype

    @property
    def shape(self):
        return self._shape

    def _as_graph_element(self):
        return self._graph_element

    def _AsTensor(self):
        return self.value()

    def _gradient_source(self):
        return self._handle

    def value(self):
        if self._snapshot is not self._graph_element:
            return self._snapshot
        with ops.colocate_with(None, ignore_existing=True):
            with ops.device(self._handle.device):
                return self._read()

    def read_value(self):
        with ops.name_scope("Read"):
            with ops.device(self._handle.device):
                value = self._read()
        return array_ops.identity(value)

    def sparse_read(self, indices, name=None):
        with ops.name_scope("Gather" if name is None else name) as scope:
            value = apply_op("ResourceGather", scope, resource=self._handle,
                             indices=indices, dtype=self._dtype)
        return array_ops.identity(value)

    def is_initialized(self, name=None):
        return apply_op("VarIsInitializedOp", name, resource=self._handle)

    def eval(self, session=None):
        return self._graph_element.eval(session=session)

    def _updated(self, op, read_value):
        return _UpdatedVariable(self, op) if read_value else op

    def assign(self, value, use_locking=None, name=None, read_value=True):
        value = ops.convert_to_tensor(value, dtype=self._dtype)
        return self._updated(build("AssignVariableOp", name,
                                   resource=self._handle, value=value),
                             read_value)

    def assign_add(self, delta, use_locking=None, name=None,
                   read_value=True):
        return self._updated(build(
            "AssignAddVariableOp", name, resource=self._handle,
            value=ops.convert_to_tensor(delta, dtype=self._dtype)),
            read_value)

    def assign_sub(self, delta, use_locking=None, name=None,
                   read_value=True):
        return self._updated(build(
            "AssignSubVariableOp", name, resource=self._handle,
            value=ops.convert_to_tensor(delta, dtype=self._dtype)),
            read_value)

    def _scatter(self, op_type, indices, updates, name, use_locking=None):
        target = {"ref": self._handle} if op_type.startswith("ScatterNd") \
            else {"resource": self._handle}
        return self._updated(build(
            "Resource" + op_type, name, indices=indices,
            updates=ops.convert_to_tensor(updates, self._dtype), **target),
            True)

    def gather_nd(self, indices, name=None):
        return array_ops.gather_nd(self.value(), indices, name=name)

    def _assign_slice(self, value, name, **arguments):
        return self._updated(build(
            "ResourceStridedSliceAssign", name, ref=self._handle,
            value=ops.convert_to_tensor(value, dtype=self._dtype),
            **arguments), True)

    def to_proto(self, export_scope=None):
        var = super().to_proto(export_scope)
        if var is not None:
            var.variable_name = ops.strip_name_scope(self._handle.name,
                                                     export_scope)
            var.is_resource = True
        return var


class _UpdatedVariable(ResourceVariable):
    """What an update returns: the variable, read after the update only.

    Waiting for it (`op`) is waiting for the update; it reads nothing.
    """

    def __init__(self, variable, update):
        self.__dict__.update(variable.__dict__)
        self._update = update
        with ops.control_dependencies([update]):
            self._graph_element = self._snapshot = ResourceVariable._read(self)

    @property
    def op(self):
        return self._update

    def _read(self):
        with ops.control_dependencies([self._update]):
            return super()._read()

    def sparse_read(self, indices, name=None):
        with ops.control_dependencies([self._update]):
            return super().sparse_read(indices, name)
