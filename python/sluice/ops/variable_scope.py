"""get_variable and variable_scope."""

import contextlib
import copy
import enum
import inspect
import os
import traceback

from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework import tensor_shape
from sluice.ops import array_ops
from sluice.ops import init_ops
from sluice.ops import partitioned_variables
from sluice.ops import variables
from sluice.ops.variable_kinds import (
    VariableAggregation, VariableSynchronization)

GraphKeys = ops.GraphKeys
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class _ReuseMode(enum.Enum):
    AUTO_REUSE = 1


AUTO_REUSE = _ReuseMode.AUTO_REUSE


class _Store(object):
    """The variables of a graph by name."""

    def __init__(self):
        self.vars = {}
        self.partitioned = {}
        self.scope = VariableScope(False)
        self.counts = {}

    @classmethod
    def of(cls, graph):
        if graph._variable_store is None:
            graph._variable_store = cls()
        return graph._variable_store


class VariableScope(object):
    """What get_variable inherits."""

    def __init__(self, reuse, name="", initializer=None, regularizer=None,
                 caching_device=None, partitioner=None, custom_getter=None,
                 name_scope="", dtype=dtypes.float32, use_resource=None,
                 constraint=None):
        self._name = name
        self._initializer = initializer
        self._regularizer = regularizer
        self._reuse = reuse
        self._caching_device = caching_device
        self._partitioner = partitioner
        self._custom_getter = custom_getter
        self._name_scope = name_scope
        self._dtype = dtype
        self._use_resource = use_resource
        self._constraint = constraint

    name = property(lambda self: self._name)
    original_name_scope = property(lambda self: self._name_scope)
    reuse = property(lambda self: self._reuse)
    initializer = property(lambda self: self._initializer)
    dtype = property(lambda self: self._dtype)
    use_resource = property(lambda self: self._use_resource)
    regularizer = property(lambda self: self._regularizer)
    caching_device = property(lambda self: self._caching_device)
    partitioner = property(lambda self: self._partitioner)
    custom_getter = property(lambda self: self._custom_getter)
    constraint = property(lambda self: self._constraint)

    def reuse_variables(self):
        self._reuse = True

    def set_initializer(self, initializer):
        self._initializer = initializer

    def set_dtype(self, dtype):
        self._dtype = dtype

    def set_use_resource(self, use_resource):
        self._use_resource = use_resource

    def set_regularizer(self, regularizer):
        self._regularizer = regularizer

    def set_caching_device(self, caching_device):
        self._caching_device = caching_device

    def set_partitioner(self, partitioner):
        self._partitioner = partitioner

    def set_custom_getter(self, custom_getter):
        self._custom_getter = custom_getter

    def local_variables(self):
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)

    def get_collection(self, name):
        scope = self._name + "/" if self._name else ""
        return ops.get_collection(name, scope)

    def trainable_variables(self):
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def global_variables(self):
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def get_variable(self, var_store, name, shape=None, dtype=None,
                     initializer=None, regularizer=None, reuse=None,
                     trainable=None, collections=None, caching_device=None,
                     partitioner=None, validate_shape=True,
                     use_resource=None, custom_getter=None, constraint=None,
                     synchronization=VariableSynchronization.AUTO,
                     aggregation=VariableAggregation.NONE):
        if regularizer is None:
            regularizer = self._regularizer
        if caching_device is None:
            caching_device = self._caching_device
        if partitioner is None:
            partitioner = self._partitioner
        if custom_getter is None:
            custom_getter = self._custom_getter
        if initializer is None:
            initializer = self._initializer
        if constraint is None:
            constraint = self._constraint
        if use_resource is None:
            use_resource = self._use_resource
        if reuse is None:
            reuse = self._reuse
        given_dtype = dtype
        if dtype is None:
            dtype = self._dtype
        trainable = variables.validate_trainable(synchronization, trainable)
        full_name = self.name + "/" + name if self.name else name
        if custom_getter is not None and not callable(custom_getter):
            raise ValueError("Passed a custom_getter which is not callable: "
                             "%s" % custom_getter)
        # Name scopes do not show in names of variables.
        with ops.name_scope(None):
            if given_dtype is not None and initializer is not None and \
                    not callable(initializer):
                found = ops.convert_to_tensor(initializer).dtype.base_dtype
                if found != dtypes.as_dtype(given_dtype).base_dtype:
                    raise ValueError(
                        "Initializer type '%s' and explicit dtype '%s' don't "
                        "match." % (found, dtypes.as_dtype(given_dtype)))
            getter = _get_variable
            if custom_getter is not None:
                def getter(*args, **kwargs):
                    return custom_getter(_get_variable, *args, **kwargs)
            return getter(
                name=full_name, shape=shape, dtype=dtype,
                initializer=initializer, regularizer=regularizer,
                reuse=reuse, trainable=trainable, collections=collections,
                caching_device=caching_device, partitioner=partitioner,
                validate_shape=validate_shape, use_resource=use_resource,
                constraint=constraint, synchronization=synchronization,
                aggregation=aggregation)


def _default_initializer(name, dtype):
    if dtype.is_floating:
        return init_ops.glorot_uniform_initializer()
    if dtype.is_integer or dtype.is_bool or dtype == dtypes.string:
        return init_ops.zeros_initializer()
    raise ValueError("An initializer for variable %s of %s is required" %
                     (name, dtype.base_dtype))


def _get_variable(name, shape=None, dtype=dtypes.float32, initializer=None,
                  regularizer=None, reuse=None, trainable=None,
                  collections=None, caching_device=None, partitioner=None,
                  validate_shape=True, use_resource=None, constraint=None,
                  synchronization=VariableSynchronization.AUTO,
                  aggregation=VariableAggregation.NONE):
    arguments = dict(
        dtype=dtype, regularizer=regularizer, reuse=reuse,
        trainable=trainable, collections=collections,
        caching_device=caching_device, validate_shape=validate_shape,
        use_resource=use_resource, constraint=constraint,
        synchronization=synchronization, aggregation=aggregation)
    scalar = isinstance(shape, (list, tuple)) and not shape
    if partitioner is not None and not callable(partitioner) and not scalar:
        raise ValueError("Partitioner must be callable, but received: %s" %
                         partitioner)
    if partitioner is None and reuse and \
            name in _Store.of(ops.get_default_graph()).partitioned:
        def partitioner(**unused):
            return None  # The variable is there already.
    if partitioner is not None and not scalar:
        return _get_partitioned(name, tensor_shape.as_shape(shape),
                                initializer, partitioner, **arguments)
    return _get_single(name, shape, initializer, **arguments)


def _get_partitioned(name, shape, initializer, partitioner, dtype=None,
                     reuse=None, **arguments):
    store = _Store.of(ops.get_default_graph())
    dtype = dtypes.as_dtype(dtype)
    if not callable(initializer) and initializer is not None:
        initializer = ops.convert_to_tensor(initializer, dtype=dtype)
        shape = shape.merge_with(initializer.shape)
    if name in store.partitioned:
        if not reuse:
            raise ValueError(
                "Partitioned variable with name %s already exists. Did you "
                "mean to set reuse=True or reuse=tf.AUTO_REUSE in VarScope?" %
                name)
        found = store.partitioned[name]
        if not shape.is_compatible_with(found.shape):
            raise ValueError(
                "Trying to reuse partitioned variable %s, but specified "
                "shape %s and found shape %s." % (name, shape, found.shape))
        return found
    if reuse is True:
        raise ValueError(
            "PartitionedVariable %s does not exist, or was not created with "
            "tf.get_variable(). Did you mean to set reuse=False or "
            "reuse=tf.AUTO_REUSE in VarScope?" % name)
    if not shape.is_fully_defined():
        raise ValueError("Shape of a new partitioned variable (%s) must be "
                         "fully defined, but instead was %s." % (name, shape))
    partitions = partitioner(shape=shape, dtype=dtype)
    if not isinstance(partitions, (list, tuple)):
        raise ValueError("Partitioner must return a sequence, but saw: %s" %
                         partitions)
    if len(partitions) != shape.ndims:
        raise ValueError(
            "Partitioner returned a partition list that does not match the "
            "Variable's rank: %s vs. %s" % (partitions, shape))
    if min(partitions, default=1) < 1:
        raise ValueError("Partitioner returned zero partitions for some axes: "
                         "%s" % partitions)
    parts = []
    for i, (offset, part_shape) in enumerate(partitioned_variables.slices(shape.as_list(),
                                                     partitions)):
        part_name = "%s/part_%d" % (name, i)
        init, init_shape = initializer, part_shape
        with ops.name_scope(part_name + "/PartitionedInitializer"):
            if isinstance(initializer, ops.Tensor):
                init = array_ops.slice(initializer, offset, part_shape)
                init_shape = None
        with ops.name_scope(None):
            part = _get_single(
                part_name, init_shape, init, dtype=dtype, reuse=reuse,
                partition_info=partitioned_variables.PartitionInfo(shape.as_list(), offset),
                **arguments)
        part._set_save_slice_info(variables.SaveSliceInfo(
            name, shape.as_list(), offset, part_shape))
        parts.append(part)
    made = partitioned_variables.PartitionedVariable(
        name=name, shape=shape, dtype=dtype, variable_list=parts,
        partitions=partitions)
    store.partitioned[name] = made
    return made


def _call_initializer(initializer, shape, dtype, partition_info):
    """Initializers of programs take fewer arguments than ours."""
    if not shape.is_fully_defined():
        try:
            return initializer()
        except TypeError:
            raise ValueError(
                "The initializer passed is not valid. It should be a callable "
                "with no arguments and the shape should not be provided or an "
                "instance of `tf.keras.initializers.*' and `shape` should be "
                "fully defined.") from None
    arguments = {"dtype": dtype, "partition_info": partition_info}
    try:
        accepted = inspect.signature(initializer).parameters
    except (TypeError, ValueError):
        return initializer(shape.as_list(), dtype=dtype)
    if not any(p.kind is p.VAR_KEYWORD for p in accepted.values()):
        arguments = {k: v for k, v in arguments.items() if k in accepted}
    return initializer(shape.as_list(), **arguments)


def _get_single(name, shape=None, initializer=None, dtype=dtypes.float32,
                regularizer=None, reuse=None, trainable=None,
                collections=None, caching_device=None, validate_shape=True,
                use_resource=None, constraint=None, partition_info=None,
                synchronization=VariableSynchronization.AUTO,
                aggregation=VariableAggregation.NONE):
    store = _Store.of(ops.get_default_graph())
    dtype = dtypes.as_dtype(dtype)
    shape = tensor_shape.as_shape(shape)
    if name in store.vars:
        if reuse is False or reuse is None:
            where = [f for f in traceback.format_list(
                store.vars[name].op.traceback) if _HERE not in f]
            raise ValueError(
                "Variable %s already exists, disallowed. Did you mean to set "
                "reuse=True or reuse=tf.AUTO_REUSE in VarScope? Originally "
                "defined at:\n\n%s" % (name, "".join(where[-3:])))
        found = store.vars[name]
        if not shape.is_compatible_with(found.shape):
            raise ValueError("Trying to share variable %s, but specified "
                             "shape %s and found shape %s." %
                             (name, shape, found.shape))
        if not dtype.is_compatible_with(found.dtype.base_dtype):
            raise ValueError("Trying to share variable %s, but specified "
                             "dtype %s and found dtype %s." %
                             (name, dtype.name, found.dtype.name))
        return found
    if reuse is True:
        raise ValueError(
            "Variable %s does not exist, or was not created with "
            "tf.get_variable(). Did you mean to set reuse=tf.AUTO_REUSE in "
            "VarScope?" % name)
    if initializer is None:
        initializer = _default_initializer(name, dtype)
    if isinstance(initializer, type):
        initializer = initializer()  # A class was passed in its place.
    if callable(initializer):
        def init_val():
            return _call_initializer(initializer, shape, dtype,
                                     partition_info)
        variable_dtype = dtype.base_dtype
    else:
        if shape.ndims is not None:
            raise ValueError("If initializer is a constant, do not specify "
                             "shape.")
        init_val = initializer
        variable_dtype = None
    made = variables.Variable(
        initial_value=init_val, name=name, trainable=trainable,
        collections=collections, caching_device=caching_device,
        dtype=variable_dtype, validate_shape=validate_shape,
        constraint=constraint, use_resource=use_resource,
        synchronization=synchronization, aggregation=aggregation)
    store.vars[name] = made
    if regularizer:
        with ops.colocate_with(made.op):
            with ops.name_scope(name + "/Regularizer/"):
                loss = regularizer(made)
            if loss is not None:
                ops.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
    return made


def get_variable_scope():
    return _Store.of(ops.get_default_graph()).scope


def get_variable(name, shape=None, dtype=None, initializer=None,
                 regularizer=None, trainable=None, collections=None,
                 caching_device=None, partitioner=None, validate_shape=True,
                 use_resource=None, custom_getter=None, constraint=None,
                 synchronization=VariableSynchronization.AUTO,
                 aggregation=VariableAggregation.NONE):
    return get_variable_scope().get_variable(
        None, name, shape=shape, dtype=dtype, initializer=initializer,
        regularizer=regularizer, trainable=trainable,
        collections=collections, caching_device=caching_device,
        partitioner=partitioner, validate_shape=validate_shape,
        use_resource=use_resource, custom_getter=custom_getter,
        constraint=constraint, synchronization=synchronization,
        aggregation=aggregation)


def get_local_variable(name, shape=None, dtype=None, initializer=None,
                       regularizer=None, trainable=False, collections=None,
                       caching_device=None, partitioner=None,
                       validate_shape=True, use_resource=None,
                       custom_getter=None, constraint=None,
                       synchronization=VariableSynchronization.AUTO,
                       aggregation=VariableAggregation.NONE):
    """A variable that is not saved and not trained."""
    return get_variable(
        name, shape, dtype, initializer, regularizer, trainable=False,
        collections=list(collections or []) + [GraphKeys.LOCAL_VARIABLES],
        caching_device=caching_device, partitioner=partitioner,
        validate_shape=validate_shape, use_resource=use_resource,
        custom_getter=custom_getter, constraint=constraint,
        synchronization=synchronization, aggregation=aggregation)


@contextlib.contextmanager
def variable_scope(name_or_scope, default_name=None, values=None,
                   initializer=None, regularizer=None, caching_device=None,
                   partitioner=None, custom_getter=None, reuse=None,
                   dtype=None, use_resource=None, constraint=None,
                   auxiliary_name_scope=True):
    if default_name is None and name_or_scope is None:
        raise TypeError("If default_name is None then name_or_scope is "
                        "required")
    if reuse is False:
        reuse = None
    if reuse not in (None, True, AUTO_REUSE):
        raise ValueError("The reuse parameter must be True or False or None.")
    if not isinstance(name_or_scope, (str, VariableScope, type(None))):
        raise TypeError("VariableScope: name_or_scope must be a string or "
                        "VariableScope.")
    if name_or_scope is None and reuse:
        raise ValueError("reuse=True cannot be used without a name_or_scope")
    graph = ops._graph_of(values) or ops.get_default_graph()
    with contextlib.ExitStack() as stack:
        if graph is not ops.get_default_graph():
            stack.enter_context(graph.as_default())
        store = _Store.of(graph)
        old = store.scope
        old_counts = dict(store.counts)
        if isinstance(name_or_scope, VariableScope):
            new = copy.copy(name_or_scope)
            new_name = name_or_scope.name
            name_scope = new_name.split("/")[-1]
            new._name_scope = name_or_scope.original_name_scope
            _open(store, new_name)
        else:
            if name_or_scope is None:
                prefix = old.name + "/" + default_name if old.name else \
                    default_name
                count = store.counts.get(prefix, 0)
                unique = default_name if count == 0 else "%s_%d" % (
                    default_name, count)
                while (old.name + "/" + unique if old.name else
                       unique) in store.counts:
                    count += 1
                    unique = "%s_%d" % (default_name, count)
                name = unique
                name_scope = default_name
            else:
                name = name_scope = name_or_scope
            new_name = old.name + "/" + name if old.name else name
            new = copy.copy(old)
            new._name = new_name
            _open(store, new_name)
        if reuse:
            new._reuse = reuse
        elif not isinstance(name_or_scope, VariableScope):
            new._reuse = old._reuse
        elif not new._reuse:
            new._reuse = old._reuse
        for attr, value in (("_initializer", initializer),
                            ("_regularizer", regularizer),
                            ("_caching_device", caching_device),
                            ("_partitioner", partitioner),
                            ("_dtype", dtype),
                            ("_use_resource", use_resource),
                            ("_constraint", constraint)):
            if value is not None:
                setattr(new, attr, value)
        if custom_getter is not None:
            new._custom_getter = _compose(custom_getter, old._custom_getter)
        if auxiliary_name_scope:
            scope = stack.enter_context(ops.name_scope(name_scope))
            if not isinstance(name_or_scope, VariableScope):
                new._name_scope = scope
        store.scope = new
        try:
            yield new
        finally:
            store.scope = old
            # Scopes opened inside may be named the same next time.
            prefix = new_name + "/"
            for key in [k for k in store.counts if k.startswith(prefix)]:
                if key not in old_counts:
                    del store.counts[key]


def _open(store, name):
    store.counts[name] = store.counts.get(name, 0) + 1


def _compose(outer, inner):
    if inner is None:
        return outer

    def getter(true_getter, *args, **kwargs):
        def wrapped(*a, **k):
            return inner(true_getter, *a, **k)
        return outer(wrapped, *args, **kwargs)
    return getter


def variable_op_scope(values, name_or_scope, default_name=None,
                      initializer=None, regularizer=None, caching_device=None,
                      partitioner=None, custom_getter=None, reuse=None,
                      dtype=None, use_resource=None, constraint=None):
    return variable_scope(
        name_or_scope, default_name, values, initializer, regularizer,
        caching_device, partitioner, custom_getter, reuse, dtype,
        use_resource, constraint)


def no_regularizer(_):
    return None
