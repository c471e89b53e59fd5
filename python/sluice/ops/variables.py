"""Variables that live in the graph (ref) or behind a handle (resource)."""

from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework import protos
from sluice.framework import tensor_shape
from sluice.framework.op_builder import apply_op, build
from sluice.ops import array_ops
from sluice.ops import control_flow_ops
from sluice.ops import math_ops

GraphKeys = ops.GraphKeys


def _in_control_flow(graph):
    return graph._core.in_control_flow()


class Variable(object):
    """A tensor that steps share. `Variable(...)` makes a ref variable."""

    _is_resource = False
    __array_priority__ = 100

    def __new__(cls, *args, **kwargs):
        if cls is Variable and _wants_resource(kwargs):
            return super().__new__(ResourceVariable)
        return super().__new__(cls)

    def __init__(self, initial_value=None, trainable=None, collections=None,
                 validate_shape=True, caching_device=None, name=None,
                 variable_def=None, dtype=None, expected_shape=None,
                 import_scope=None, constraint=None, use_resource=None,
                 synchronization=None, aggregation=None, shape=None):
        self._save_slice_info = None
        if variable_def is not None:
            if initial_value is not None:
                raise ValueError("variable_def and initial_value are mutually "
                                 "exclusive.")
            self._init_from_proto(variable_def, import_scope)
            return
        if initial_value is None:
            raise ValueError("initial_value must be specified.")
        if collections is None:
            collections = [GraphKeys.GLOBAL_VARIABLES]
        if not isinstance(collections, (list, tuple, set)):
            raise ValueError(
                "collections argument to Variable constructor must be a list, "
                "tuple, or set. Got %s of type %s" %
                (collections, type(collections)))
        trainable = True if trainable is None else trainable
        self._trainable = trainable
        self._constraint = constraint
        self._caching_device = caching_device
        if trainable and GraphKeys.TRAINABLE_VARIABLES not in collections:
            collections = list(collections) + [GraphKeys.TRAINABLE_VARIABLES]
        with ops.init_scope():
            self._build(initial_value, validate_shape, caching_device, name,
                        dtype)
        ops.add_to_collections(collections, self)

    # ---- Construction ----

    def _build(self, initial_value, validate_shape, caching_device, name,
               dtype):
        graph = ops.get_default_graph()
        if dtype is not None:
            dtype = dtypes.as_dtype(dtype)
        init_from_fn = callable(initial_value)
        with ops.name_scope(name, "Variable",
                            [] if init_from_fn else [initial_value]) as scope:
            true_name = scope[:-1]
            if init_from_fn:
                # The initial value is computed where the variable is.
                with graph._attr_scope({"_class": ["loc:@" + true_name]}):
                    with ops.name_scope("Initializer"), ops.device(None):
                        self._initial_value = ops.convert_to_tensor(
                            initial_value(), name="initial_value",
                            dtype=dtype)
                        shape = self._initial_value.shape \
                            if validate_shape else tensor_shape.unknown_shape()
                    self._variable = self._make_ref(
                        shape, self._initial_value.dtype.base_dtype, scope)
            else:
                self._initial_value = ops.convert_to_tensor(
                    initial_value, name="initial_value", dtype=dtype)
                shape = self._initial_value.shape if validate_shape else \
                    tensor_shape.unknown_shape()
                self._variable = self._make_ref(
                    shape, self._initial_value.dtype.base_dtype, scope)
            if validate_shape and not \
                    self._initial_value.shape.is_fully_defined():
                raise ValueError("initial_value must have a shape specified: "
                                 "%s" % self._initial_value)
            self._initializer_op = build(
                "Assign", "Assign", ref=self._variable,
                value=_safe_initial_value(scope, self._initial_value),
                validate_shape=validate_shape).outputs[0].op
            if caching_device is not None:
                with ops.device(caching_device):
                    self._snapshot = array_ops.identity(self._variable,
                                                        name="read")
            else:
                with ops.colocate_with(self._variable.op):
                    self._snapshot = array_ops.identity(self._variable,
                                                        name="read")

    @staticmethod
    def _make_ref(shape, dtype, name):
        return apply_op("VariableV2", name, shape=shape, dtype=dtype)

    def _init_from_proto(self, variable_def, import_scope):
        g = ops.get_default_graph()

        def element(name):
            return g.as_graph_element(ops.prepend_name_scope(name,
                                                             import_scope))

        self._variable = element(variable_def.variable_name)
        self._initializer_op = element(variable_def.initializer_name)
        self._initial_value = element(variable_def.initial_value_name) if \
            variable_def.initial_value_name else None
        self._snapshot = element(variable_def.snapshot_name)
        self._trainable = variable_def.trainable
        self._caching_device = None
        self._constraint = None
        if variable_def.HasField("save_slice_info_def"):
            self._save_slice_info = SaveSliceInfo(
                save_slice_info_def=variable_def.save_slice_info_def)

    # ---- What it is ----

    @property
    def name(self):
        return self._variable.name

    @property
    def op(self):
        return self._variable.op

    @property
    def graph(self):
        return self._variable.graph

    @property
    def device(self):
        return self._variable.device

    @property
    def dtype(self):
        return self._variable.dtype

    @property
    def shape(self):
        return self._variable.shape

    def get_shape(self):
        return self.shape

    def set_shape(self, shape):
        self._variable.set_shape(shape)
        self._snapshot.set_shape(shape)

    @property
    def trainable(self):
        return self._trainable

    @property
    def constraint(self):
        return self._constraint

    @property
    def initializer(self):
        return self._initializer_op

    @property
    def initial_value(self):
        return self._initial_value

    @property
    def _shared_name(self):
        return self.name[:self.name.index(":")]

    def _as_graph_element(self):
        return self._variable

    def _AsTensor(self):
        return self._snapshot

    def _ref(self):
        return self._variable

    def _gradient_source(self):
        return self._variable

    def value(self):
        return self._snapshot

    def read_value(self):
        return array_ops.identity(self._variable, name="read")

    def initialized_value(self):
        with ops.init_scope():
            return control_flow_ops.cond(
                is_variable_initialized(self), self.read_value,
                lambda: self.initial_value)

    def eval(self, session=None):
        return self._variable.eval(session=session)

    def load(self, value, session=None):
        session = session or ops.get_default_session()
        if session is None:
            raise ValueError("Either session argument should be provided or "
                             "default session should be established")
        session.run(self._initializer_op,
                    {self._initializer_op.inputs[1]: value})

    # ---- Updates ----

    def assign(self, value, use_locking=False, name=None, read_value=True):
        assign = apply_op("Assign", name, ref=self._variable, value=value,
                          use_locking=use_locking)
        return assign if read_value else assign.op

    def assign_add(self, delta, use_locking=False, name=None,
                   read_value=True):
        assign = apply_op("AssignAdd", name, ref=self._variable, value=delta,
                          use_locking=use_locking)
        return assign if read_value else assign.op

    def assign_sub(self, delta, use_locking=False, name=None,
                   read_value=True):
        assign = apply_op("AssignSub", name, ref=self._variable, value=delta,
                          use_locking=use_locking)
        return assign if read_value else assign.op

    def scatter_sub(self, sparse_delta, use_locking=False, name=None):
        return apply_op("ScatterSub", name, ref=self._variable,
                        indices=sparse_delta.indices,
                        updates=sparse_delta.values, use_locking=use_locking)

    def scatter_add(self, sparse_delta, use_locking=False, name=None):
        return apply_op("ScatterAdd", name, ref=self._variable,
                        indices=sparse_delta.indices,
                        updates=sparse_delta.values, use_locking=use_locking)

    def scatter_update(self, sparse_delta, use_locking=False, name=None):
        return apply_op("ScatterUpdate", name, ref=self._variable,
                        indices=sparse_delta.indices,
                        updates=sparse_delta.values, use_locking=use_locking)

    def _assign_slice(self, value, name, **arguments):
        return apply_op("StridedSliceAssign", name, ref=self._variable,
                        value=value, **arguments)

    def count_up_to(self, limit):
        return apply_op("CountUpTo", None, ref=self._variable, limit=limit)

    # ---- Saving ----

    def _set_save_slice_info(self, info):
        self._save_slice_info = info

    def _get_save_slice_info(self):
        return self._save_slice_info

    def to_proto(self, export_scope=None):
        if export_scope is not None and not self.name.startswith(
                export_scope):
            return None
        var = protos.VariableDef()
        strip = ops.strip_name_scope
        var.variable_name = strip(self._variable.name, export_scope)
        if self._initial_value is not None:
            var.initial_value_name = strip(self._initial_value.name,
                                           export_scope)
        var.initializer_name = strip(self.initializer.name, export_scope)
        var.snapshot_name = strip(self._snapshot.name, export_scope)
        var.trainable = self._trainable
        if self._save_slice_info:
            var.save_slice_info_def.MergeFrom(
                self._save_slice_info.to_proto(export_scope=export_scope))
        return var

    @staticmethod
    def from_proto(variable_def, import_scope=None):
        if variable_def.is_resource:
            return ResourceVariable(variable_def=variable_def,
                                    import_scope=import_scope)
        return Variable(variable_def=variable_def, import_scope=import_scope)

    def __repr__(self):
        return "<tf.Variable '%s' shape=%s dtype=%s>" % (
            self.name, self.shape, self.dtype.name)

    def __iter__(self):
        raise TypeError("'Variable' object is not iterable.")

    def __hash__(self):
        return id(self)

    def __eq__(self, other):
        return self is other


class ResourceVariable(Variable):
    """A variable behind a handle; every use reads it anew."""

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
                    value=_safe_initial_value(scope, self._initial_value))
            with ops.name_scope("Read"), ops.device(self._handle.device):
                self._graph_element = self._read()
            self._snapshot = self._graph_element

    def _init_from_proto(self, variable_def, import_scope):
        super()._init_from_proto(variable_def, import_scope)
        self._handle = self._variable
        g = self._handle.graph
        dtype, shape = g._core.handle_shape(self._handle.op._id, 0)
        self._dtype = dtypes.as_dtype(dtype)
        self._shape = tensor_shape.TensorShape._of(shape)
        self._graph_element = self._snapshot
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

    def _scatter(self, op_type, indices, updates, name):
        return self._updated(build(
            op_type, name, resource=self._handle, indices=indices,
            updates=ops.convert_to_tensor(updates, self._dtype)), True)

    def scatter_sub(self, sparse_delta, use_locking=False, name=None):
        return self._scatter("ResourceScatterSub", sparse_delta.indices,
                             sparse_delta.values, name)

    def scatter_add(self, sparse_delta, use_locking=False, name=None):
        return self._scatter("ResourceScatterAdd", sparse_delta.indices,
                             sparse_delta.values, name)

    def scatter_update(self, sparse_delta, use_locking=False, name=None):
        return self._scatter("ResourceScatterUpdate", sparse_delta.indices,
                             sparse_delta.values, name)

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


class SaveSliceInfo(object):
    """Where a part of a partitioned variable lies in the whole."""

    def __init__(self, full_name=None, full_shape=None, var_offset=None,
                 var_shape=None, save_slice_info_def=None,
                 import_scope=None):
        if save_slice_info_def is not None:
            d = save_slice_info_def
            self.full_name = ops.prepend_name_scope(d.full_name, import_scope)
            self.full_shape = list(d.full_shape)
            self.var_offset = list(d.var_offset)
            self.var_shape = list(d.var_shape)
        else:
            self.full_name = full_name
            self.full_shape = full_shape
            self.var_offset = var_offset
            self.var_shape = var_shape

    @property
    def spec(self):
        return "%s %s" % (
            " ".join(str(d) for d in self.full_shape),
            ":".join("%d,%d" % (o, s) for o, s in zip(self.var_offset,
                                                      self.var_shape)))

    def to_proto(self, export_scope=None):
        return protos.SaveSliceInfoDef(
            full_name=self.full_name, full_shape=self.full_shape,
            var_offset=self.var_offset, var_shape=self.var_shape)


Variable.SaveSliceInfo = SaveSliceInfo
RefVariable = Variable


def enable_resource_variables():
    """Makes resource variables where a program does not say which."""
    global _resource_by_default
    _resource_by_default = True


def disable_resource_variables():
    global _resource_by_default
    _resource_by_default = False


def resource_variables_enabled():
    return _resource_by_default


_resource_by_default = False


def _wants_resource(arguments):
    """Whether `Variable(**arguments)` asks for a resource variable."""
    definition = arguments.get("variable_def")
    if definition is not None:
        return definition.is_resource
    use_resource = arguments.get("use_resource")
    if use_resource is None:
        from sluice.ops import variable_scope
        use_resource = variable_scope.get_variable_scope().use_resource
    return _resource_by_default if use_resource is None else use_resource


def _has_cycle(op, state):
    """Whether following inputs from `op` comes back to where it was."""
    seen = state.get(op)
    if seen is not None:
        return seen == "open"
    state[op] = "open"
    if any(_has_cycle(o, state) for o in
           [i.op for i in op.inputs] + list(op.control_inputs)):
        return True
    state[op] = "done"
    return False


def _variable_of(op):
    for key in (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES):
        for variable in op.graph.get_collection(key):
            if variable.name in (op.name, op.name + ":0"):
                return variable
    return None


def _safe_initial_value(name, initial_value):
    """`initial_value`, made of initial values of the variables it reads."""
    if _has_cycle(initial_value.op, {}):
        return initial_value
    safe = {}

    def of_tensor(tensor):
        if tensor.op not in safe:
            safe[tensor.op] = of_op(tensor.op)
        return safe[tensor.op].outputs[tensor.value_index]

    def of_op(op):
        if op.type in ("IsVariableInitialized", "VarIsInitializedOp",
                       "ReadVariableOp", "If"):
            return op
        if op.type in ("Variable", "VariableV2", "VarHandleOp"):
            variable = _variable_of(op)
            return op if variable is None else variable.initialized_value().op
        inputs = [of_tensor(t) for t in op.inputs]
        if all(new is old for new, old in zip(inputs, op.inputs)):
            return op
        return op.graph.create_op(
            "Switch" if op.type == "RefSwitch" else op.type, inputs,
            name=(op.name + "_" + name).replace(":", "_"),
            attrs=dict(op.node_def.attr))

    return of_tensor(initial_value)


def _convert(value, dtype=None, name=None, as_ref=False):
    if dtype is not None and not dtype.is_compatible_with(
            value.dtype.base_dtype):
        raise ValueError(
            "Incompatible type conversion requested to type '%s' for variable "
            "of type '%s'" % (dtype.name, value.dtype.name))
    return value._ref() if as_ref else value._AsTensor()


ops.register_tensor_conversion_function(Variable, _convert, 50)


def _overload_operators():
    for operator in ops.Tensor.OVERLOADABLE_OPERATORS:
        tensor_operator = getattr(ops.Tensor, operator, None)
        if tensor_operator is None or operator == "__getitem__":
            continue

        def call(self, *args, _operator=tensor_operator):
            return _operator(self._AsTensor(), *args)

        setattr(Variable, operator, call)

    def getitem(self, key):
        return array_ops._getitem(self._AsTensor(), key, var=self)

    Variable.__getitem__ = getitem


_overload_operators()


def _collected(key):
    def function(scope=None):
        return ops.get_collection(key, scope)
    return function


global_variables = _collected(GraphKeys.GLOBAL_VARIABLES)
local_variables = _collected(GraphKeys.LOCAL_VARIABLES)
model_variables = _collected(GraphKeys.MODEL_VARIABLES)
trainable_variables = _collected(GraphKeys.TRAINABLE_VARIABLES)
moving_average_variables = _collected(GraphKeys.MOVING_AVERAGE_VARIABLES)
all_variables = global_variables


def variables_initializer(var_list, name="init"):
    if var_list:
        return control_flow_ops.group(*[v.initializer for v in var_list],
                                      name=name)
    return control_flow_ops.group(name=name)


def global_variables_initializer():
    return variables_initializer(global_variables())


def local_variables_initializer():
    variables = local_variables()
    return variables_initializer(variables, name="init") if variables else \
        control_flow_ops.no_op(name="init")


def is_variable_initialized(variable):
    if isinstance(variable, ResourceVariable):
        return variable.is_initialized()
    return apply_op("IsVariableInitialized", None, ref=variable._variable)


def report_uninitialized_variables(var_list=None,
                                   name="report_uninitialized_variables"):
    import os
    if var_list is None:
        var_list = global_variables() + local_variables()
    with ops.name_scope(name):
        initialized = [is_variable_initialized(v) for v in var_list]
        with ops.device(os.environ.get(
                "TF_DEVICE_FOR_UNINITIALIZED_VARIABLE_REPORTING", "/cpu:0")):
            if not var_list:
                return _empty_strings()
            mask = math_ops.logical_not(array_ops.stack(initialized))
            names = ops.convert_to_tensor([v.op.name for v in var_list],
                                          dtype=dtypes.string, name="Const")
            return array_ops.boolean_mask(names, mask)


def _empty_strings():
    from sluice.framework import constant_op
    return constant_op.constant([], dtype=dtypes.string)


def assert_variables_initialized(var_list=None):
    if var_list is None:
        var_list = global_variables() + local_variables()
    if not var_list:
        return None
    ranks = [array_ops.rank(v._variable) for v in var_list]
    return ranks[0] if len(ranks) == 1 else array_ops.stack(ranks)


def initialize_all_variables():
    return global_variables_initializer()


def initialize_variables(var_list, name="init"):
    return variables_initializer(var_list, name)


def initialize_local_variables():
    return local_variables_initializer()

