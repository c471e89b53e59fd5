"""Staging areas: elements on their way from one step to the next."""

from sluice.framework import ops
from sluice.framework import tensor_shape
from sluice.framework.op_builder import build
from sluice.ops import array_ops
from sluice.ops import control_flow_ops


class StagingArea(object):
    """Elements that one step puts in and a later one takes out, in order.

    It stands on the device it was made under; `get` and `peek` elsewhere copy
    what they return to where they were called. Who has to wait for an element,
    or for room under `capacity` (elements) and `memory_limit` (bytes), holds no
    thread and ends with its step.
    """

    def __init__(self, dtypes, shapes=None, names=None, shared_name=None,
                 capacity=0, memory_limit=0):
        if shared_name is None:
            self._name = ops.get_default_graph().unique_name(
                type(self).__name__)
        elif isinstance(shared_name, str):
            self._name = shared_name
        else:
            raise ValueError("shared_name must be a string")
        self._dtypes = dtypes = list(dtypes)
        if shapes is None:
            self._shapes = [tensor_shape.unknown_shape() for _ in dtypes]
        else:
            if len(shapes) != len(dtypes):
                raise ValueError("StagingArea shapes must be the same length "
                                 "as dtypes")
            self._shapes = [tensor_shape.TensorShape(s) for s in shapes]
        if names and len(names) != len(dtypes):
            raise ValueError("StagingArea names must be the same length as "
                             "dtypes")
        self._names = names or None
        self._capacity = capacity
        self._memory_limit = memory_limit
        # What stands where the elements are.
        with ops.name_scope("%s_root" % self._name):
            self._place = control_flow_ops.no_op()

    name = property(lambda self: self._name)
    dtypes = property(lambda self: self._dtypes)
    shapes = property(lambda self: self._shapes)
    names = property(lambda self: self._names)
    capacity = property(lambda self: self._capacity)
    memory_limit = property(lambda self: self._memory_limit)

    def _build(self, op_type, name, **arguments):
        return build(op_type, name, shared_name=self._name,
                     capacity=self._capacity, memory_limit=self._memory_limit,
                     **arguments)

    def _in_order(self, values):
        """What a caller gives, as (component, value) pairs."""
        if isinstance(values, dict):
            if not self._names:
                raise ValueError("Staging areas must have names to enqueue a "
                                 "dictionary")
            if not set(values) <= set(self._names):
                raise ValueError(
                    "Keys in dictionary to put do not match names of staging "
                    "area. Dictionary: (%s), Queue: (%s)" %
                    (sorted(values), sorted(self._names)))
            return [(i, values[name]) for i, name in enumerate(self._names)
                    if name in values]
        if self._names:
            raise ValueError("You must enqueue a dictionary in a staging area "
                             "with names")
        values = values if isinstance(values, (list, tuple)) else [values]
        if len(values) > len(self._dtypes):
            raise ValueError("Unexpected number of inputs '%d' vs '%d'" %
                             (len(values), len(self._dtypes)))
        return enumerate(values)

    def _tensors(self, components):
        tensors = []
        for i, value in components:
            dtype = self._dtypes[i]
            if getattr(value, "dtype", dtype) != dtype:
                raise ValueError("Datatypes do not match. '%s' != '%s'" %
                                 (value.dtype, dtype))
            tensor = ops.convert_to_tensor(value, dtype=dtype,
                                           name="component_%d" % i)
            tensor.get_shape().assert_is_compatible_with(self._shapes[i])
            tensors.append(tensor)
        return tensors

    def put(self, values, name=None):
        """Puts an element in; a dictionary if the area has names."""
        scope_values = list(values.values()) if isinstance(values, dict) \
            else values if isinstance(values, (list, tuple)) else [values]
        with ops.name_scope(name, "%s_put" % self._name,
                            scope_values) as scope:
            tensors = self._tensors(self._in_order(values))
            with ops.colocate_with(self._place):
                return self._build("Stage", scope, values=tensors)

    def get(self, name=None):
        """Takes the first element, as a list or, with names, a dictionary."""
        with ops.name_scope(name, "%s_get" % self._name) as scope:
            with ops.colocate_with(self._place):
                taken = self._build("Unstage", scope, dtypes=self._dtypes)
        return self._returned(taken)

    def peek(self, index, name=None):
        """As get, of element `index`, which stays."""
        with ops.name_scope(name, "%s_peek" % self._name) as scope:
            with ops.colocate_with(self._place):
                seen = self._build("StagePeek", scope, index=index,
                                   dtypes=self._dtypes)
        return self._returned(seen)

    def _returned(self, op):
        tensors = list(op.outputs)
        for tensor, shape in zip(tensors, self._shapes):
            tensor.set_shape(shape)
        # Under the device of whoever asks.
        if control_flow_ops.no_op().device != self._place.device:
            tensors = [array_ops.identity(t) for t in tensors]
        return dict(zip(self._names, tensors)) if self._names else tensors

    def size(self, name=None):
        return self._build("StageSize", name or "%s_size" % self._name,
                           dtypes=self._dtypes).outputs[0]

    def clear(self, name=None):
        return self._build("StageClear", name or "%s_clear" % self._name,
                           dtypes=self._dtypes)
