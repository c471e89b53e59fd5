"""tf.contrib.framework."""

import contextlib
import functools

from sluice.framework import ops
from sluice.ops import variable_scope
from sluice.ops import variables
from sluice.training.checkpoint_utils import (  # noqa: F401
    list_variables, load_checkpoint, load_variable)
from sluice.training.saver import Saver
from sluice.training.training_util import (  # noqa: F401
    assert_global_step, create_global_step, get_global_step,
    get_or_create_global_step)

_GraphKeys = ops.GraphKeys


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


def variable(name, shape=None, dtype=None, initializer=None, regularizer=None,
             trainable=True, collections=None, caching_device=None,
             device=None, partitioner=None, custom_getter=None,
             use_resource=None, **unused):
    collections = list(collections if collections is not None
                       else [_GraphKeys.GLOBAL_VARIABLES])
    collections = list(dict.fromkeys(collections))
    with ops.device(device or ""):
        return variable_scope.get_variable(
            name, shape=shape, dtype=dtype, initializer=initializer,
            regularizer=regularizer, trainable=trainable,
            collections=collections, caching_device=caching_device,
            partitioner=partitioner, custom_getter=custom_getter,
            use_resource=use_resource)


def model_variable(name, shape=None, dtype=None, initializer=None,
                   regularizer=None, trainable=True, collections=None,
                   **kwargs):
    collections = list(collections or []) + [_GraphKeys.GLOBAL_VARIABLES,
                                             _GraphKeys.MODEL_VARIABLES]
    return variable(name, shape, dtype, initializer, regularizer, trainable,
                    collections, **kwargs)


def local_variable(initial_value, validate_shape=True, name="local_variable",
                   use_resource=None):
    return variables.Variable(
        initial_value, trainable=False,
        collections=[_GraphKeys.LOCAL_VARIABLES],
        validate_shape=validate_shape, name=name, use_resource=use_resource)


def add_model_variable(var):
    if var not in ops.get_collection(_GraphKeys.MODEL_VARIABLES):
        ops.add_to_collection(_GraphKeys.MODEL_VARIABLES, var)


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
    return with_defaults


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


