"""map_fn, scan and folds: functions over the first dimension of tensors."""

import contextlib

from sluice.framework import constant_op
from sluice.framework import nest
from sluice.framework import ops
from sluice.framework import tensor_shape
from sluice.ops import array_ops
from sluice.ops import control_flow_ops
from sluice.ops import tensor_array_ops
from sluice.ops import variable_scope


@contextlib.contextmanager
def _local_reads():
    """Variables made in the loop are read on the device that uses them."""
    scope = variable_scope.get_variable_scope()
    before = scope.caching_device
    if before is None:
        scope.set_caching_device(lambda op: op.device)
    try:
        yield
    finally:
        if before is None:
            scope.set_caching_device(None)


class _Elements(object):
    """The tensors that a function runs over, one array each."""

    def __init__(self, elems, with_shapes=False):
        self.structure = elems
        self.flat = [ops.convert_to_tensor(e, name="elem")
                     for e in nest.flatten(elems)]
        shape = self.flat[0].shape
        if shape.ndims is not None and shape.ndims < 1:
            raise ValueError(
                "elems must be a 1+ dimensional Tensor, not a scalar"
                if len(self.flat) == 1 else
                "elements in elems must be 1+ dimensional Tensors, not "
                "scalars")
        static = shape[0].value if shape.ndims is not None else None
        self.n = static or array_ops.shape(self.flat[0])[0]
        arrays = [tensor_array_ops.TensorArray(
            dtype=e.dtype, size=self.n, dynamic_size=False, infer_shape=True,
            element_shape=e.shape[1:] if with_shapes and
            e.shape.ndims is not None else None) for e in self.flat]
        self._arrays = [a.unstack(e) for a, e in zip(arrays, self.flat)]

    def read_flat(self, i):
        return [a.read(i) for a in self._arrays]

    def read(self, i):
        return nest.pack_sequence_as(self.structure, self.read_flat(i))

    def stacked(self, arrays, structure):
        """The results of all elements, as one tensor each."""
        results = [a.stack() for a in arrays]
        count = tensor_shape.Dimension(None)
        for e in self.flat:
            if e.shape.ndims is not None:
                count = count.merge_with(e.shape[0])
        for r in results:
            if r.shape.ndims is not None:
                r.set_shape([count.value] + r.shape.as_list()[1:])
        return nest.pack_sequence_as(structure, results)


def map_fn(fn, elems, dtype=None, parallel_iterations=None, back_prop=True,
           swap_memory=False, infer_shape=True, name=None):
    if not callable(fn):
        raise TypeError("fn must be callable.")
    with ops.name_scope(name, "map", nest.flatten(elems)), _local_reads():
        elements = _Elements(elems)
        if dtype is None:
            dtype = nest.pack_sequence_as(
                elems, [e.dtype for e in elements.flat])
        i = constant_op.constant(0)
        arrays = [tensor_array_ops.TensorArray(
            dtype=t, size=elements.n, dynamic_size=False,
            infer_shape=infer_shape) for t in nest.flatten(dtype)]

        def compute(i, arrays):
            values = fn(elements.read(i))
            nest.assert_same_structure(dtype, values)
            arrays = [a.write(i, v) for a, v in
                      zip(arrays, nest.flatten(values))]
            return i + 1, arrays

        _, arrays = control_flow_ops.while_loop(
            lambda i, _: i < elements.n, compute, (i, arrays),
            parallel_iterations=parallel_iterations or 10,
            back_prop=back_prop, swap_memory=swap_memory,
            maximum_iterations=elements.n)
        return elements.stacked(arrays, dtype)


def scan(fn, elems, initializer=None, parallel_iterations=10, back_prop=True,
         swap_memory=False, infer_shape=True, reverse=False, name=None):
    if not callable(fn):
        raise TypeError("fn must be callable.")
    with ops.name_scope(name, "scan", nest.flatten(elems)), _local_reads():
        elements = _Elements(elems, with_shapes=True)
        n = elements.n
        first = n - 1 if reverse else 0
        structure = elems if initializer is None else initializer
        if initializer is None:
            start = elements.read_flat(first)
            i = 1
        else:
            start = [ops.convert_to_tensor(v)
                     for v in nest.flatten(initializer)]
            i = 0
        arrays = [tensor_array_ops.TensorArray(
            dtype=v.dtype, size=n, dynamic_size=False,
            infer_shape=infer_shape,
            element_shape=v.shape if infer_shape else None) for v in start]
        if initializer is None:
            arrays = [a.write(first, v) for a, v in zip(arrays, start)]

        def compute(i, values, arrays):
            result = fn(nest.pack_sequence_as(structure, values),
                        elements.read(i))
            nest.assert_same_structure(structure, result)
            flat = nest.flatten(result)
            arrays = [a.write(i, v) for a, v in zip(arrays, flat)]
            return (i - 1 if reverse else i + 1), flat, arrays

        if reverse:
            i = n - 1 - i
        _, _, arrays = control_flow_ops.while_loop(
            (lambda i, *_: i >= 0) if reverse else (lambda i, *_: i < n),
            compute, (i, start, arrays),
            parallel_iterations=parallel_iterations, back_prop=back_prop,
            swap_memory=swap_memory, maximum_iterations=n)
        return elements.stacked(arrays, structure)


def foldl(fn, elems, initializer=None, parallel_iterations=10, back_prop=True,
          swap_memory=False, name=None):
    if not callable(fn):
        raise TypeError("fn must be callable.")
    with ops.name_scope(name, "foldl", nest.flatten(elems)), _local_reads():
        elements = _Elements(elems)
        if initializer is None:
            value = elements.read(0)
            i = constant_op.constant(1)
        else:
            value = initializer
            i = constant_op.constant(0)
        def compute(i, value):
            value = fn(value, elements.read(i))
            return [i + 1, value]

        _, value = control_flow_ops.while_loop(
            lambda i, _: i < elements.n, compute, [i, value],
            parallel_iterations=parallel_iterations, back_prop=back_prop,
            swap_memory=swap_memory, maximum_iterations=elements.n)
        return value


def foldr(fn, elems, initializer=None, parallel_iterations=10, back_prop=True,
          swap_memory=False, name=None):
    if not callable(fn):
        raise TypeError("fn must be callable.")
    with ops.name_scope(name, "foldr", nest.flatten(elems)), _local_reads():
        elements = _Elements(elems)
        if initializer is None:
            i = elements.n - 1
            value = elements.read(i)
        else:
            i = elements.n
            value = initializer

        def compute(i, value):
            i -= 1
            return [i, fn(value, elements.read(i))]

        _, value = control_flow_ops.while_loop(
            lambda i, _: i > 0, compute, [i, value],
            parallel_iterations=parallel_iterations, back_prop=back_prop,
            swap_memory=swap_memory, maximum_iterations=elements.n)
        return value
