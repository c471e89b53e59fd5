"""Variables that live in the graph (ref) or behind a handle (resource)."""

import contextlib
import functools
import inspect

from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework import protos
from sluice.framework import tensor_shape
from sluice.framework.op_builder import apply_op, build
from sluice.ops import array_ops
from sluice.ops import control_flow_ops
from sluice.ops import initial_values
from sluice.ops import state_ops
from sluice.ops import variable_methods
from sluice.ops.variable_kinds import (  # noqa: F401
    VariableAggregation, VariableSynchronization)

GraphKeys = ops.GraphKeys


def _in_control_flow(graph):
    return graph._core.in_control_flow()


def validate_trainable(synchronization, trainable):
    """Whether a variable is trained, if `trainable` is what was asked for."""
    if trainable is not None:
        return trainable
    return synchronization != VariableSynchronization.ON_READ


class _VariableType(type):
    """Lets the creators of variable_creator_scope make variables."""

    def __call__(cls, *args, **kwargs):
        creators = [] if cls is not Variable else \
            ops.get_default_graph()._variable_creators
        if not creators:
            return super().__call__(*args, **kwargs)
        bound = inspect.signature(cls.__init__).bind(None, *args, **kwargs)
        bound.apply_defaults()
        arguments = dict(bound.arguments)
        del arguments["self"]
        create = super().__call__
        for creator in creators:
            create = functools.partial(creator, create)
        return create(**arguments)


class Variable(object, metaclass=_VariableType):
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
                 synchronization=VariableSynchronization.AUTO,
                 aggregation=VariableAggregation.NONE, shape=None):
        self._save_slice_info = None
        self._synchronization = synchronization
        self._aggregation = aggregation
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
        if constraint is not None and not callable(constraint):
            raise ValueError("The `constraint` argument must be a callable.")
        trainable = validate_trainable(synchronization, trainable)
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
                value=initial_values.safe_initial_value(scope, self._initial_value),
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
    def synchronization(self):
        return self._synchronization

    @property
    def aggregation(self):
        return self._aggregation

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

    def _scatter(self, op_type, indices, updates, name, use_locking=False):
        """Adds a scatter op of rows, or of slices named by coordinates."""
        return apply_op(op_type, name, ref=self._variable, indices=indices,
                        updates=updates, use_locking=use_locking)

    def batch_scatter_update(self, sparse_delta, use_locking=False, name=None):
        return state_ops.batch_scatter_update(
            self, sparse_delta.indices, sparse_delta.values,
            use_locking=use_locking, name=name)

    def sparse_read(self, indices, name=None):
        return array_ops.gather(self._AsTensor(), indices, name=name)

    def gather_nd(self, indices, name=None):
        return array_ops.gather_nd(self._AsTensor(), indices, name=name)

    def experimental_ref(self):
        return variable_methods.Reference(self)

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


variable_methods.add_scatters(Variable)
Variable.SaveSliceInfo = SaveSliceInfo
RefVariable = Variable


@contextlib.contextmanager
def variable_creator_scope(variable_creator):
    """`variable_creator(next_creator, **arguments)` makes the variables."""
    graph = ops.get_default_graph()
    before = graph._variable_creators
    graph._variable_creators = before + [variable_creator]
    try:
        yield
    finally:
        graph._variable_creators = before


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


from sluice.ops.resource_variable_ops import ResourceVariable  # noqa: E402
from sluice.ops.variable_lists import (  # noqa: E402,F401
    all_variables, assert_variables_initialized, global_variables,
    global_variables_initializer, initialize_all_variables,
    initialize_local_variables, initialize_variables, is_variable_initialized,
    local_variables, local_variables_initializer, model_variables,
    moving_average_variables, report_uninitialized_variables,
    trainable_variables, variables_initializer)
