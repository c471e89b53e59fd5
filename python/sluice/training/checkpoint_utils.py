"""Reading checkpoints without a graph, and initializing variables from them."""

from sluice.platform.lazy_numpy import np

from sluice import _sluice
from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework.op_builder import apply_op
from sluice.ops import partitioned_variables
from sluice.ops import variable_scope
from sluice.ops import variables
from sluice.platform import gfile
from sluice.platform import tf_logging as logging
from sluice.training import checkpoint_management
from sluice.training import saveable_objects


class CheckpointReader(object):
    """What is in a checkpoint."""

    def __init__(self, filepattern):
        if isinstance(filepattern, bytes):
            filepattern = filepattern.decode()
        self._reader = _sluice.CheckpointReader(filepattern)

    def has_tensor(self, tensor_str):
        return self._reader.has_tensor(_name(tensor_str))

    def get_tensor(self, tensor_str):
        return np.asarray(self._reader.get_tensor(_name(tensor_str)))[()]

    def get_variable_to_shape_map(self):
        return {name: list(shape) for name, _, shape in self._reader.list()}

    def get_variable_to_dtype_map(self):
        return {name: dtypes.as_dtype(dtype)
                for name, dtype, _ in self._reader.list()}

    def debug_string(self):
        return "".join("%s (DT_%s) [%s]\n" % (
            name, dtypes.as_dtype(dtype).name.upper(),
            ",".join(map(str, shape)))
            for name, dtype, shape in self._reader.list()).encode()


def _name(name):
    return name.decode() if isinstance(name, bytes) else name


def NewCheckpointReader(filepattern):
    return CheckpointReader(filepattern)


def _checkpoint_file(ckpt_dir_or_file):
    """The prefix; a folder stands for its newest checkpoint."""
    if gfile.isdir(ckpt_dir_or_file):
        return checkpoint_management.latest_checkpoint(ckpt_dir_or_file)
    return ckpt_dir_or_file


def load_checkpoint(ckpt_dir_or_file):
    prefix = _checkpoint_file(ckpt_dir_or_file)
    if prefix is None:
        raise ValueError("Couldn't find 'checkpoint' file or checkpoints in "
                         "given directory %s" % ckpt_dir_or_file)
    return NewCheckpointReader(prefix)


def load_variable(ckpt_dir_or_file, name):
    if name.endswith(":0"):
        name = name[:-2]
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name)


def list_variables(ckpt_dir_or_file):
    shapes = load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map()
    return [(name, shapes[name]) for name in sorted(shapes)]


# ---- Initializing from a checkpoint ----

def init_from_checkpoint(ckpt_dir_or_file, assignment_map):
    """Replaces the initializers of variables by reads of a checkpoint.

    Keys of the map are tensors of the checkpoint, values are variables, lists
    of the parts of one, or names of variables of this graph; or both are
    scopes, which end in "/". "/" alone is the root."""
    reader = load_checkpoint(ckpt_dir_or_file)
    shapes = reader.get_variable_to_shape_map()
    prefix = _checkpoint_file(ckpt_dir_or_file)
    store = variable_scope._Store.of(ops.get_default_graph()).vars
    for tensor_name, target in sorted(assignment_map.items(),
                                      key=lambda item: item[0]):
        variable = _find_variable(target, store)
        if variable is None:
            _init_scope(ckpt_dir_or_file, prefix, tensor_name, target, store,
                        shapes)
            continue
        if tensor_name not in shapes:
            raise ValueError("Tensor %s is not found in %s checkpoint %s" % (
                tensor_name, ckpt_dir_or_file, shapes))
        _check_shape(variable, tensor_name, shapes[tensor_name])
        _set_initializer(variable, prefix, tensor_name)
        logging.debug("Initialize variable %s from checkpoint %s with %s",
                      _names(variable), ckpt_dir_or_file, tensor_name)


def _is_parts(value):
    return isinstance(value, (list, tuple)) and all(
        isinstance(v, variables.Variable) for v in value)


def _find_variable(target, store):
    """The variable, or the list of its parts, that a value of the map is."""
    if isinstance(target, variables.Variable) or _is_parts(target):
        return target
    if isinstance(target, partitioned_variables.PartitionedVariable):
        return list(target)
    return store.get(target) or _parts_of(target, store)


def _parts_of(name, store):
    parts = []
    while "%s/part_%d" % (name, len(parts)) in store:
        parts.append(store["%s/part_%d" % (name, len(parts))])
    return parts or None


def _names(variable):
    if isinstance(variable, variables.Variable):
        return variable.name
    return ",".join(v.name for v in variable)


def _check_shape(variable, tensor_name, shape):
    if isinstance(variable, variables.Variable) and \
            not variable.get_shape().is_compatible_with(shape):
        raise ValueError(
            "Shape of variable %s (%s) doesn't match with shape of tensor %s "
            "(%s) from checkpoint reader." % (
                variable.name, variable.get_shape(), tensor_name, shape))


def _init_scope(ckpt_dir_or_file, prefix, tensor_scope, target, store, shapes):
    """Gives all variables of a scope the tensors of another scope."""
    scope = target[:target.rindex("/")] if "/" in target else ""
    if not tensor_scope.endswith("/"):
        raise ValueError(
            "Assignment map with scope only name {} should map to scope only "
            "{}. Should be 'scope/': 'other_scope/'.".format(scope,
                                                             tensor_scope))
    names = {name.split("/part_")[0] for name in store
             if not scope or name.startswith(scope + "/")}
    for name in sorted(names):
        inside = name[len(scope):].lstrip("/")
        tensor_name = inside if tensor_scope == "/" else tensor_scope + inside
        tensor_name = tensor_name.rstrip("/")
        if tensor_name not in shapes:
            raise ValueError(
                "Tensor %s (%s in %s) is not found in %s checkpoint" % (
                    tensor_name, inside, tensor_scope, ckpt_dir_or_file))
        variable = _find_variable(name, store)
        _check_shape(variable, tensor_name, shapes[tensor_name])
        _set_initializer(variable, prefix, tensor_name)
        logging.debug("Initialize variable %s from checkpoint %s with %s",
                      name, ckpt_dir_or_file, tensor_name)


def _set_initializer(variable, prefix, tensor_name):
    if isinstance(variable, variables.Variable):
        _set_one_initializer(variable, prefix, tensor_name, "")
        return
    for part in variable:
        info = part._save_slice_info
        if info is None:
            raise ValueError("%s is no part of a partitioned variable" %
                             part.name)
        _set_one_initializer(part, prefix, tensor_name, info.spec)


def _set_one_initializer(variable, prefix, tensor_name, slice_spec):
    """The variable is initialized by reading a tensor where it lives."""
    with ops.device(variable.device), ops.device("/cpu:0"):
        restored = apply_op("RestoreV2", "checkpoint_initializer",
                            prefix=prefix, tensor_names=[tensor_name],
                            shape_and_slices=[slice_spec],
                            dtypes=[variable.dtype.base_dtype])[0]
    saveable, = saveable_objects.saveable_objects_for_op(
        variable, variable.op.name)
    initializer = saveable.restore([restored], restored_shapes=None)
    set_initializer(variable, initializer, restored)


def set_initializer(variable, initializer, value):
    """`initializer` assigns `value`, which becomes the initial value."""
    value.set_shape(variable.get_shape())
    variable._initializer_op = initializer.op if isinstance(
        initializer, ops.Tensor) else initializer
    variable._initial_value = value
