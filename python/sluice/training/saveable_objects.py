"""What a Saver saves: variables, their parts, and objects of programs."""

from sluice.framework import device as pydev
from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework.op_builder import apply_op
from sluice.ops import array_ops
from sluice.ops import variables


class SaveSpec(object):
    """One tensor in a checkpoint."""

    def __init__(self, tensor, slice_spec, name, dtype=None, device=None):
        self._tensor = tensor
        self.slice_spec = slice_spec
        self.name = name
        if callable(tensor):
            if dtype is None or device is None:
                raise AssertionError(
                    "When passing a callable `tensor` to a SaveSpec, an "
                    "explicit dtype and device must be provided.")
            self.dtype, self.device = dtype, device
        else:
            self.dtype, self.device = tensor.dtype, tensor.device

    @property
    def tensor(self):
        return self._tensor() if callable(self._tensor) else self._tensor


class SaveableObject(object):
    """Base class of what programs make to be saved."""

    def __init__(self, op, specs, name):
        self.op = op
        self.specs = specs
        self.name = name

    @property
    def device(self):
        return self.specs[0].device

    def restore(self, restored_tensors, restored_shapes):
        raise ValueError("Calling an abstract method.")


class ReferenceVariableSaveable(SaveableObject):

    def __init__(self, var, slice_spec, name):
        spec = SaveSpec(var, slice_spec, name, dtype=var.dtype)
        super().__init__(var, [spec], name)

    def restore(self, restored_tensors, restored_shapes):
        tensor = restored_tensors[0]
        if restored_shapes is not None:
            tensor = array_ops.reshape(tensor, restored_shapes[0])
        validate = restored_shapes is None and \
            self.op.get_shape().is_fully_defined()
        ref = self.op._ref() if isinstance(self.op, variables.Variable) else \
            self.op
        return apply_op("Assign", None, ref=ref, value=tensor,
                        validate_shape=validate, use_locking=True)


class ResourceVariableSaveable(SaveableObject):

    def __init__(self, var, slice_spec, name):
        """`var` is the tensor of a read of the variable."""
        self._var_device = var.device
        self._var_shape = var.get_shape()
        self.handle_op = var.op.inputs[0]
        spec = SaveSpec(var, slice_spec, name, dtype=var.dtype)
        super().__init__(var, [spec], name)

    def restore(self, restored_tensors, restored_shapes):
        tensor = restored_tensors[0]
        if restored_shapes is not None:
            tensor = array_ops.reshape(tensor, restored_shapes[0])
        # Copied at the variable, not where the file is read.
        with ops.device(self._var_device):
            tensor = array_ops.identity(tensor)
            return apply_op("AssignVariableOp", None, resource=self.handle_op,
                            value=tensor)


def set_cpu0(device_string):
    """The first CPU of the task a device is on."""
    spec = pydev.DeviceSpec.from_string(device_string or "")
    spec.device_type, spec.device_index = "CPU", 0
    return spec.to_string()


def _is_partitioned(value):
    return type(value).__name__ == "PartitionedVariable"


def op_list_to_dict(op_list):
    """{name in the checkpoint: variable, list of its parts, or saveable}."""
    if not isinstance(op_list, (list, tuple, set)):
        raise TypeError("Variables to save should be passed in a dict or a "
                        "list: %s" % op_list)
    names = {}
    # A set has no order; checkpoints are sorted anyway.
    for var in sorted(op_list, key=lambda v: v.name) if isinstance(
            op_list, set) else op_list:
        if isinstance(var, SaveableObject):
            names[var.name] = var
        elif _is_partitioned(var):
            if var.name in names:
                raise ValueError("At least two variables have the same name: "
                                 "%s" % var.name)
            names[var.name] = var
        elif isinstance(var, variables.Variable) and var._save_slice_info:
            name = var._save_slice_info.full_name
            if name in names:
                if not isinstance(names[name], list):
                    raise ValueError("Mixing slices and non-slices with the "
                                     "same name: %s" % name)
                names[name].append(var)
            else:
                names[name] = [var]
        else:
            tensor = _graph_tensor(var)
            if tensor.op.type not in _VARIABLE_OPS:
                raise TypeError("Variable to save is not a Variable: %s" % var)
            name = tensor.op.inputs[0].op.name if \
                tensor.op.type == "ReadVariableOp" else tensor.op.name
            if name in names:
                raise ValueError("At least two variables have the same name: "
                                 "%s" % name)
            names[name] = var
    return names


def _graph_tensor(var):
    if getattr(var, "_is_resource", False):
        return var._graph_element
    return ops.internal_convert_to_tensor(var, as_ref=True)


_VARIABLE_OPS = ("Variable", "VariableV2", "AutoReloadVariable",
                 "VarHandleOp", "ReadVariableOp")


def saveable_objects_for_op(op, name):
    if not isinstance(name, str):
        raise TypeError("names_to_saveables must be a dict mapping string "
                        "names to trackable operations. Name is not a string: "
                        "%s" % name)
    if isinstance(op, SaveableObject):
        yield op
    elif isinstance(op, (list, tuple)) or _is_partitioned(op):
        slice_name = None
        for part in op:
            if not isinstance(part, variables.Variable):
                raise ValueError("Slices must all be Variables: %s" % part)
            info = part._save_slice_info
            if not info:
                raise ValueError("Slices must all be slices: %s" % part)
            if slice_name is None:
                slice_name = info.full_name
            elif slice_name != info.full_name:
                raise ValueError("Slices must all be from the same tensor: "
                                 "%s != %s" % (slice_name, info.full_name))
            if part._is_resource:
                yield ResourceVariableSaveable(part._graph_element, info.spec,
                                               name)
            else:
                yield ReferenceVariableSaveable(part, info.spec, name)
    else:
        tensor = _graph_tensor(op)
        if tensor.op.type not in _VARIABLE_OPS:
            raise TypeError(
                "names_to_saveables must be a dict mapping string names to "
                "Tensors/Variables. Not a variable: %s" % tensor)
        if tensor.op.type == "ReadVariableOp":
            yield ResourceVariableSaveable(tensor, "", name)
        else:
            yield ReferenceVariableSaveable(tensor, "", name)


def validate_and_slice_inputs(names_to_saveables):
    """All saveables, by name; each variable must be there once."""
    if not isinstance(names_to_saveables, dict):
        names_to_saveables = op_list_to_dict(names_to_saveables)
    saveables, seen = [], set()
    for name, op in sorted(names_to_saveables.items(), key=lambda x: x[0]):
        for saveable in saveable_objects_for_op(op, name):
            key = saveable.op
            if key in seen:
                raise ValueError("The same saveable will be restored with two "
                                 "names: %s" % saveable.name)
            seen.add(key)
            saveables.append(saveable)
    return saveables


def save_dtype(spec):
    return dtypes.as_dtype(spec.dtype).base_dtype
