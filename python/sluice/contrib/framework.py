"""tf.contrib.framework."""

import contextlib
import functools
import re

from sluice.framework import dtypes
from sluice.framework import ops
from sluice.ops import array_ops
from sluice.ops import control_flow_ops
from sluice.ops import variable_scope
from sluice.ops import variables
from sluice.ops.variable_kinds import (
    VariableAggregation, VariableSynchronization)
from sluice.platform import tf_logging as logging
from sluice.training import checkpoint_utils
from sluice.training.checkpoint_utils import NewCheckpointReader
from sluice.training.saver import Saver
from sluice.training.training_util import (  # noqa: F401
    assert_global_step, create_global_step, get_global_step,
    get_or_create_global_step)

_GraphKeys = ops.GraphKeys


def load_checkpoint(filepattern):
    return checkpoint_utils.load_checkpoint(filepattern)


def load_variable(checkpoint_dir, name):
    return checkpoint_utils.load_variable(checkpoint_dir, name)


def list_variables(checkpoint_dir):
    return checkpoint_utils.list_variables(checkpoint_dir)


def init_from_checkpoint(checkpoint_dir, assignment_map):
    checkpoint_utils.init_from_checkpoint(checkpoint_dir, assignment_map)


def get_variables(scope=None, suffix=None,
                  collection=_GraphKeys.GLOBAL_VARIABLES):
    if isinstance(scope, variable_scope.VariableScope):
        scope = scope.name
    if suffix is not None:
        if ":" not in suffix:
            suffix += ":"
        scope = (scope or "") + ".*" + suffix
    return ops.get_collection(collection, scope)


def get_variables_by_name(given_name, scope=None):
    return get_variables(scope=scope, suffix="/" + given_name + ":|^" +
                         given_name)


def get_variables_by_suffix(suffix, scope=None):
    return get_variables(scope=scope, suffix=suffix)


def get_model_variables(scope=None, suffix=None):
    return get_variables(scope, suffix, _GraphKeys.MODEL_VARIABLES)


def get_local_variables(scope=None, suffix=None):
    return get_variables(scope, suffix, _GraphKeys.LOCAL_VARIABLES)


def get_trainable_variables(scope=None, suffix=None):
    return get_variables(scope, suffix, _GraphKeys.TRAINABLE_VARIABLES)


def get_variables_to_restore(include=None, exclude=None):
    if include is None:
        include = [""]
    found = [v for scope in include for v in get_variables(scope)]
    left_out = {v for scope in exclude or [] for v in get_variables(scope)}
    return [v for v in found if v not in left_out]


def get_variable_full_name(var):
    """Its name, or that of the whole it is a part of."""
    info = getattr(var, "_save_slice_info", None)
    return info.full_name if info else var.op.name


def get_unique_variable(var_op_name):
    candidates = get_variables(scope=var_op_name)
    if not candidates:
        raise ValueError("Couldn't find variable %s" % var_op_name)
    for candidate in candidates:
        if candidate.op.name == var_op_name:
            return candidate
    raise ValueError("Variable %s does not uniquely identify a variable" %
                     var_op_name)


def filter_variables(var_list, include_patterns=None, exclude_patterns=None,
                     reg_search=True):
    """Those whose names match one of some patterns and none of others."""
    match = re.search if reg_search else re.match

    def any_of(patterns, var):
        return any(match(p, var.op.name) for p in patterns)
    if include_patterns is not None:
        var_list = [v for v in var_list if any_of(include_patterns, v)]
    return [v for v in var_list if not any_of(exclude_patterns or [], v)]


def assert_or_get_global_step(graph=None, global_step_tensor=None):
    if global_step_tensor is None:
        return get_global_step(graph)
    assert_global_step(global_step_tensor)
    return global_step_tensor


def variable(name, shape=None, dtype=None, initializer=None, regularizer=None,
             trainable=True, collections=None, caching_device=None,
             device=None, partitioner=None, custom_getter=None,
             use_resource=None, synchronization=VariableSynchronization.AUTO,
             aggregation=VariableAggregation.NONE):
    collections = list(collections if collections is not None
                       else [_GraphKeys.GLOBAL_VARIABLES])
    collections = list(dict.fromkeys(collections))
    with ops.device(device or ""):
        return variable_scope.get_variable(
            name, shape=shape, dtype=dtype, initializer=initializer,
            regularizer=regularizer, trainable=trainable,
            collections=collections, caching_device=caching_device,
            partitioner=partitioner, custom_getter=custom_getter,
            use_resource=use_resource, synchronization=synchronization,
            aggregation=aggregation)


def model_variable(name, shape=None, dtype=dtypes.float32, initializer=None,
                   regularizer=None, trainable=True, collections=None,
                   caching_device=None, device=None, partitioner=None,
                   custom_getter=None, use_resource=None,
                   synchronization=VariableSynchronization.AUTO,
                   aggregation=VariableAggregation.NONE):
    collections = list(collections or []) + [_GraphKeys.GLOBAL_VARIABLES,
                                             _GraphKeys.MODEL_VARIABLES]
    return variable(name, shape, dtype, initializer, regularizer, trainable,
                    collections, caching_device, device, partitioner,
                    custom_getter, use_resource, synchronization, aggregation)


def _plain_variable(initial_value, validate_shape, name, use_resource, key):
    return variables.Variable(
        initial_value, trainable=False, collections=[key],
        validate_shape=validate_shape, name=name, use_resource=use_resource)


def local_variable(initial_value, validate_shape=True, name=None,
                   use_resource=None):
    return _plain_variable(initial_value, validate_shape, name, use_resource,
                           _GraphKeys.LOCAL_VARIABLES)


def global_variable(initial_value, validate_shape=True, name=None,
                    use_resource=None):
    return _plain_variable(initial_value, validate_shape, name, use_resource,
                           _GraphKeys.GLOBAL_VARIABLES)


def add_model_variable(var):
    if var not in ops.get_collection(_GraphKeys.MODEL_VARIABLES):
        ops.add_to_collection(_GraphKeys.MODEL_VARIABLES, var)


def _assign_fed(var, value, feed_dict):
    """An assignment of what is fed, which goes into `feed_dict`."""
    fed = array_ops.placeholder(dtype=var.dtype.base_dtype,
                                name="placeholder/" + var.op.name)
    feed_dict[fed] = value
    return var.assign(fed)


def assign_from_values(var_names_to_values):
    """(op, feed_dict) that give variables these values."""
    feed_dict, assigns = {}, []
    for name, value in var_names_to_values.items():
        found = ops.get_collection(_GraphKeys.GLOBAL_VARIABLES, name)
        if not found:
            raise ValueError("Variable %s wasn't found" % name)
        if len(found) > 1:
            found = [get_unique_variable(name)]
        assigns.append(_assign_fed(found[0], value.reshape(
            found[0].get_shape().as_list()), feed_dict))
    return control_flow_ops.group(*assigns), feed_dict


def assign_from_values_fn(var_names_to_values):
    assign, feed_dict = assign_from_values(var_names_to_values)
    return lambda session: session.run(assign, feed_dict)


def assign_from_checkpoint(model_path, var_list, ignore_missing_vars=False):
    """(op, feed_dict) that give variables the values of a checkpoint."""
    reader = NewCheckpointReader(model_path)
    if isinstance(var_list, (list, tuple)):
        grouped = {}
        for var in var_list:
            grouped.setdefault(get_variable_full_name(var), []).append(var)
        var_list = grouped
    feed_dict, assigns = {}, []
    for name, parts in var_list.items():
        if not isinstance(parts, (list, tuple)):
            parts = list(parts) if hasattr(parts, "_get_variable_list") else \
                [parts]
        if not reader.has_tensor(name):
            text = "Checkpoint is missing variable [%s]" % name
            if not ignore_missing_vars:
                raise ValueError(text)
            logging.warning(text)
            continue
        whole = reader.get_tensor(name)
        for part in parts:
            value, info = whole, getattr(part, "_save_slice_info", None)
            if info:
                value = whole[tuple(slice(at, at + size) for at, size in
                                    zip(info.var_offset, info.var_shape))]
            if not part.get_shape().is_compatible_with(value.shape):
                if part.get_shape().num_elements() != value.size:
                    raise ValueError(
                        "Total size of new array must be unchanged for %s "
                        "lh_shape: [%s], rh_shape: [%s]" % (
                            name, str(value.shape), str(part.get_shape())))
                value = value.reshape(part.get_shape().as_list())
            assigns.append(_assign_fed(part, value, feed_dict))
    return control_flow_ops.group(*assigns), feed_dict


def assign_from_checkpoint_fn(model_path, var_list, ignore_missing_vars=False,
                              reshape_variables=False):
    """A function of a session that restores the variables."""
    if isinstance(var_list, (list, tuple)) and ignore_missing_vars:
        var_list = {v.op.name: v for v in var_list}
    if ignore_missing_vars:
        reader = load_checkpoint(model_path)
        var_list = {n: v for n, v in var_list.items() if reader.has_tensor(n)}
    if not var_list:
        return None
    saver = Saver(var_list, reshape=reshape_variables)
    return lambda session: saver.restore(session, model_path)


# ---- arg_scope: defaults for arguments of functions ----

_scopes = [{}]


def _key(function):
    return getattr(function, "_key_op", str(function))


def has_arg_scope(func):
    return hasattr(func, "_key_op")


def add_arg_scope(func):
    """Lets arg_scope give default arguments to a function."""
    @functools.wraps(func)
    def with_defaults(*args, **kwargs):
        defaults = _scopes[-1].get(_key(with_defaults))
        if defaults:
            kwargs = dict(defaults, **kwargs)
        return func(*args, **kwargs)
    with_defaults._key_op = str(func)
    code = getattr(func, "__code__", None)
    with_defaults._arg_names = () if code is None else \
        code.co_varnames[code.co_argcount - len(func.__defaults__ or ()):
                         code.co_argcount]
    return with_defaults


def arg_scoped_arguments(func):
    """The names of arguments that scopes may give."""
    assert has_arg_scope(func)
    return func._arg_names


def current_arg_scope():
    return _scopes[-1]


@contextlib.contextmanager
def arg_scope(list_ops_or_scope, **kwargs):
    if isinstance(list_ops_or_scope, dict):
        if kwargs:
            raise ValueError("When attempting to re-use a scope by suppling a "
                             "dictionary, kwargs must be empty.")
        scope = dict(list_ops_or_scope)
    else:
        if not isinstance(list_ops_or_scope, (list, tuple)):
            raise TypeError("list_ops_or_scope must either be a list/tuple or "
                            "reused scope (i.e. dict)")
        scope = dict(current_arg_scope())
        for op in list_ops_or_scope:
            if not has_arg_scope(op):
                raise ValueError("%s is not decorated with @add_arg_scope" %
                                 (op,))
            scope[_key(op)] = dict(scope.get(_key(op), {}), **kwargs)
    _scopes.append(scope)
    try:
        yield scope
    finally:
        _scopes.pop()


