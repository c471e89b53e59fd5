"""Builds one operation from Python arguments, guided by its definition."""

import collections

from sluice import _sluice
from sluice.framework import constant_op
from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework import tensor_shape

_Arg = collections.namedtuple(
    "_Arg", ["name", "type", "type_attr", "number_attr", "list_attr",
             "is_ref"])
_Attr = collections.namedtuple(
    "_Attr", ["name", "type", "has_default", "default", "allowed"])


class Signature(object):
    """What an op takes and gives."""

    __slots__ = ("name", "inputs", "outputs", "attrs", "stateful",
                 "inferred", "arg_names")

    def __init__(self, name, raw):
        inputs, outputs, attrs, self.stateful = raw
        self.name = name
        self.inputs = [_Arg(*a) for a in inputs]
        self.outputs = [_Arg(*a) for a in outputs]
        self.attrs = {a[0]: _Attr(*a) for a in attrs}
        # Attributes that follow from the inputs.
        self.inferred = {n for a in self.inputs
                         for n in (a.type_attr, a.number_attr, a.list_attr)
                         if n}
        self.arg_names = [a.name for a in self.inputs] + [
            n for n in self.attrs if n not in self.inferred]


_signatures = {}


def signature(op_type):
    found = _signatures.get(op_type)
    if found is None:
        raw = _sluice.op_signature(op_type)
        if raw is None:
            raise RuntimeError("Unrecognized Op name %s" % op_type)
        found = _signatures[op_type] = Signature(op_type, raw)
    return found


def _attr_to_core(kind, value):
    """A Python value in the engine's form."""
    if kind == "type":
        return int(dtypes.as_dtype(value).base_dtype)
    if kind == "shape":
        return tensor_shape.as_shape(value)._core()
    if kind == "tensor":
        if isinstance(value, _sluice.TensorValue):
            return value
        if hasattr(value, "SerializeToString"):
            return _sluice.tensor_from_proto(value.SerializeToString())
        return constant_op.tensor_value(value)[0]
    if kind == "int":
        return int(value)
    if kind == "float":
        return float(value)
    if kind == "bool":
        return bool(value)
    if kind == "func":
        return getattr(value, "name", value)
    if kind.startswith("list("):
        inner = kind[5:-1]
        return [_attr_to_core(inner, v) for v in value]
    return value


def attr_from_proto(value):
    """An AttrValue message (or plain value) in the engine's form."""
    if not hasattr(value, "WhichOneof"):
        return value
    kind = value.WhichOneof("value")
    if kind == "list":
        for field in ("s", "i", "f", "b", "type"):
            items = list(getattr(value.list, field))
            if items:
                return items
        if value.list.shape:
            return [tensor_shape.TensorShape(s)._core()
                    for s in value.list.shape]
        return []
    content = getattr(value, kind)
    if kind == "shape":
        return tensor_shape.TensorShape(content)._core()
    if kind == "tensor":
        return _sluice.tensor_from_proto(content.SerializeToString())
    if kind == "func":
        return content.name
    return content


def _all_tensors(sig, values):
    for arg in sig.inputs:
        value = values[arg.name]
        if arg.number_attr or arg.list_attr:
            if not all(isinstance(v, ops.Tensor) for v in value):
                return False
        elif not isinstance(value, ops.Tensor):
            return False
    return True


def _convert_inputs(sig, values, attrs):
    """Inputs as tensors, in order; types that others fix are used for them."""
    flat = []
    for arg in sig.inputs:
        value = values[arg.name]
        dtype = dtypes._ALL[arg.type] if arg.type else None
        preferred = None
        if arg.type_attr:
            if arg.type_attr in attrs:
                dtype = dtypes.as_dtype(attrs[arg.type_attr])
            else:
                attr = sig.attrs[arg.type_attr]
                if attr.has_default:
                    preferred = dtypes.as_dtype(attr.default[1])
        if arg.list_attr or arg.number_attr:
            if not isinstance(value, (list, tuple)):
                raise TypeError(
                    "Expected list for '%s' argument to '%s' Op, not %s." %
                    (arg.name, sig.name, value))
            if arg.list_attr and arg.list_attr in attrs:
                tensors = [ops.internal_convert_to_tensor(
                    v, t, name="%s_%d" % (arg.name, i))
                    for i, (v, t) in enumerate(zip(
                        value, attrs[arg.list_attr]))]
            else:
                if dtype is None and arg.type_attr:
                    for v in value:
                        if isinstance(v, ops.Tensor):
                            dtype = v.dtype.base_dtype
                            break
                tensors = [ops.internal_convert_to_tensor(
                    v, dtype, name="%s_%d" % (arg.name, i),
                    as_ref=arg.is_ref, preferred_dtype=preferred)
                    for i, v in enumerate(value)]
            if arg.number_attr and arg.number_attr not in attrs:
                attrs[arg.number_attr] = len(tensors)
            if arg.list_attr and arg.list_attr not in attrs:
                attrs[arg.list_attr] = [t.dtype.base_dtype for t in tensors]
            if arg.type_attr and tensors and arg.type_attr not in attrs:
                attrs[arg.type_attr] = tensors[0].dtype.base_dtype
            flat.extend(tensors)
            continue
        try:
            tensor = ops.internal_convert_to_tensor(
                value, dtype, name=arg.name, as_ref=arg.is_ref,
                preferred_dtype=preferred)
        except ValueError:
            if dtype is None or not isinstance(value, ops.Tensor):
                raise
            raise TypeError(
                "Input '%s' of '%s' Op has type %s that does not match "
                "%s." % (arg.name, sig.name, value.dtype.name,
                         "expected type of %s" % dtype.name if arg.type else
                         "type %s of argument '%s'" % (
                             dtype.name, next(
                                 a.name for a in sig.inputs
                                 if a.type_attr == arg.type_attr)))) from None
        except TypeError as e:
            if dtype is None or isinstance(value, ops.Tensor):
                raise
            raise TypeError(
                "Expected %s passed to parameter '%s' of op '%s', got %r of "
                "type '%s' instead. Error: %s" %
                (dtype.name, arg.name, sig.name, value, type(value).__name__,
                 e)) from None
        if arg.is_ref and not tensor.dtype._is_ref_dtype:
            raise TypeError(
                "'%s' Op requires that input '%s' be a mutable tensor (e.g.: "
                "a tf.Variable)" % (sig.name, arg.name))
        if arg.type_attr and arg.type_attr not in attrs:
            attrs[arg.type_attr] = tensor.dtype.base_dtype
        flat.append(tensor)
    return flat


def _check_types(sig, attrs):
    for name in sig.inferred:
        attr = sig.attrs[name]
        if attr.type == "type" and attr.allowed and name in attrs:
            value = int(dtypes.as_dtype(attrs[name]).base_dtype)
            if value not in attr.allowed:
                arg = next(a for a in sig.inputs if a.type_attr == name)
                raise TypeError(
                    "Value passed to parameter '%s' has DataType %s not in "
                    "list of allowed values: %s" %
                    (arg.name, dtypes._ALL[value].name,
                     ", ".join(dtypes._ALL[t].name for t in attr.allowed)))


def build(op_type, name=None, **values):
    """Adds an operation; inputs and attrs by the names of its definition."""
    sig = signature(op_type)
    attrs = {}
    for key in list(values):
        if key in sig.attrs:
            value = values.pop(key)
            if value is not None:
                attrs[key] = value
    graph = None
    for arg in sig.inputs:
        if arg.name not in values:
            raise TypeError("Missing required argument %r of op %s" %
                            (arg.name, op_type))
        graph = graph or ops._graph_of([values[arg.name]])
    for key in values:
        if not any(a.name == key for a in sig.inputs):
            raise TypeError("Op %s has no argument %r" % (op_type, key))
    graph = graph or ops.get_default_graph()
    if name is None:
        name = op_type
    if _all_tensors(sig, values):
        flat = _convert_inputs(sig, values, attrs)
        return _add(graph, sig, name, flat, attrs)
    core = graph._core
    if graph is not ops.get_default_graph():
        with graph.as_default():
            return build(op_type, name, **dict(values, **attrs))
    # Constants made of arguments are named below the operation.
    core.push()
    try:
        scope = core.enter_name_scope(name)
        flat = _convert_inputs(sig, values, attrs)
        return _add(graph, sig, scope, flat, attrs)
    finally:
        core.pop()


def _add(graph, sig, name, flat, attrs):
    _check_types(sig, attrs)
    core_attrs = {}
    for key, value in attrs.items():
        core_attrs[key] = _attr_to_core(sig.attrs[key].type, value)
    return graph._add_op(sig.name, name, flat, core_attrs)


def result(op, sig=None):
    """What a Python op function returns: by the number of outputs declared."""
    sig = sig or signature(op.type)
    if not sig.outputs:
        return op
    results = []
    at = 0
    for arg in sig.outputs:
        if arg.number_attr:
            count = op.get_attr(arg.number_attr)
        elif arg.list_attr:
            count = len(op.get_attr(arg.list_attr))
        else:
            results.append(op.outputs[at])
            at += 1
            continue
        results.append(list(op.outputs[at:at + count]))
        at += count
    if len(results) == 1:
        return results[0]
    fields = [a.name for a in sig.outputs]
    return _tuple_type(sig.name, tuple(fields))(*results)


_tuple_types = {}


def _tuple_type(name, fields):
    key = (name, fields)
    if key not in _tuple_types:
        _tuple_types[key] = collections.namedtuple(name, fields)
    return _tuple_types[key]


def apply_op(op_type, name=None, **values):
    op = build(op_type, name, **values)
    return result(op)


class _RawOps(object):
    """tf.raw_ops: every registered op by its name, keyword arguments only."""

    def __getattr__(self, op_type):
        if op_type.startswith("__"):
            raise AttributeError(op_type)
        try:
            sig = signature(op_type)
        except RuntimeError:
            raise AttributeError("No op named %s is registered" %
                                 op_type) from None

        def call(**kwargs):
            return apply_op(op_type, **kwargs)

        call.__name__ = op_type
        call.__doc__ = "%s(%s)" % (op_type, ", ".join(sig.arg_names))
        setattr(self, op_type, call)
        return call

    def __dir__(self):
        return _sluice.op_names()


raw_ops = _RawOps()
