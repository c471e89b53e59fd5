"""Queues and accumulators: state that steps wait for."""

from sluice.framework import dtypes as _dtypes
from sluice.framework import ops
from sluice.framework import tensor_shape
from sluice.framework.op_builder import apply_op, build
from sluice.ops import math_ops
from sluice.ops import random_ops
from sluice.ops.staging import StagingArea  # noqa: F401


def _as_type_list(dtypes):
    if not isinstance(dtypes, (list, tuple)):
        dtypes = [dtypes]
    return [_dtypes.as_dtype(t) for t in dtypes]


def _as_shape_list(shapes, dtypes, unknown_dim_allowed=False,
                   unknown_rank_allowed=False):
    if shapes is None:
        return None
    if isinstance(shapes, tensor_shape.TensorShape):
        shapes = [shapes]
    if not isinstance(shapes, (tuple, list)):
        raise TypeError(
            "shapes must be a TensorShape or a list or tuple of TensorShapes.")
    if all(s is None or isinstance(s, int) for s in shapes):
        shapes = [shapes]  # One shape, not a list of them.
    shapes = [tensor_shape.as_shape(s) for s in shapes]
    if not unknown_dim_allowed and any(
            not s.is_fully_defined() for s in shapes):
        raise ValueError("All shapes must be fully defined: %s" % shapes)
    if not unknown_rank_allowed and any(s.ndims is None for s in shapes):
        raise ValueError("All shapes must have a defined rank: %s" % shapes)
    return shapes


def _as_name_list(names, dtypes):
    if names is None:
        return None
    if not isinstance(names, (list, tuple)):
        names = [names]
    if len(names) != len(dtypes):
        raise ValueError("List of names must have the same length as the list "
                         "of dtypes")
    return list(names)


class QueueBase(object):
    """What all queues share."""

    def __init__(self, dtypes, shapes, names, queue_ref):
        self._dtypes = dtypes
        if shapes is not None:
            if len(shapes) != len(dtypes):
                raise ValueError("Queue shapes must have the same length as "
                                 "dtypes, got len(shapes)=%d, len(dtypes)=%d"
                                 % (len(shapes), len(dtypes)))
            self._shapes = [tensor_shape.TensorShape(s) for s in shapes]
        else:
            self._shapes = [tensor_shape.unknown_shape() for _ in dtypes]
        if names is not None:
            if len(names) != len(dtypes):
                raise ValueError("Queue names must have the same length as "
                                 "dtypes,got len(names)=%d,len {dtypes}=%d" %
                                 (len(names), len(dtypes)))
            if dtypes and len(set(names)) != len(names):
                raise ValueError("Queue names must be unique: %s" % names)
        self._names = names
        self._queue_ref = queue_ref
        self._name = queue_ref.op.name.split("/")[-1]

    queue_ref = property(lambda self: self._queue_ref)
    dtypes = property(lambda self: self._dtypes)
    shapes = property(lambda self: self._shapes)
    names = property(lambda self: self._names)

    @property
    def name(self):
        return self._queue_ref.op.name

    @staticmethod
    def from_list(index, queues):
        """A queue chosen when the step runs."""
        if not queues or not isinstance(queues, list) or not all(
                isinstance(q, QueueBase) for q in queues):
            raise TypeError("A list of queues expected")
        dtypes = queues[0].dtypes
        if not all(dtypes == q.dtypes for q in queues[1:]):
            raise TypeError("Queues do not have matching component dtypes.")
        names = queues[0].names
        if not all(names == q.names for q in queues[1:]):
            raise TypeError("Queues do not have matching component names.")
        from sluice.ops import array_ops
        refs = array_ops.stack([q.queue_ref for q in queues])
        return QueueBase(dtypes=dtypes, shapes=queues[0].shapes, names=names,
                         queue_ref=array_ops.gather(refs, index))

    def _check_enqueue_dtypes(self, vals):
        if isinstance(vals, dict):
            if not self._names:
                raise ValueError("Queue must have names to enqueue a "
                                 "dictionary")
            if sorted(self._names) != sorted(vals):
                raise ValueError(
                    "Keys in dictionary to enqueue do not match names of "
                    "Queue.  Dictionary: %s, Queue: %s" %
                    (sorted(vals), sorted(self._names)))
            vals = [vals[k] for k in self._names]
        else:
            if self._names:
                raise ValueError("You must enqueue a dictionary in a Queue "
                                 "with names")
            if not isinstance(vals, (list, tuple)):
                vals = [vals]
        tensors = []
        for i, (val, dtype) in enumerate(zip(vals, self._dtypes)):
            tensors.append(ops.convert_to_tensor(val, dtype=dtype,
                                                 name="component_%d" % i))
        return tensors

    def _scope_vals(self, vals):
        if isinstance(vals, (list, tuple)):
            return vals
        if isinstance(vals, dict):
            return list(vals.values())
        return [vals]

    def enqueue(self, vals, name=None):
        with ops.name_scope(name, "%s_enqueue" % self._name,
                            self._scope_vals(vals)) as scope:
            vals = self._check_enqueue_dtypes(vals)
            for val, shape in zip(vals, self._shapes):
                val.get_shape().assert_is_compatible_with(shape)
            return build("QueueEnqueueV2", scope, handle=self._queue_ref,
                         components=vals)

    def enqueue_many(self, vals, name=None):
        with ops.name_scope(name, "%s_EnqueueMany" % self._name,
                            self._scope_vals(vals)) as scope:
            vals = self._check_enqueue_dtypes(vals)
            for val, shape in zip(vals, self._shapes):
                val.get_shape().with_rank_at_least(1)[1:] \
                    .assert_is_compatible_with(shape)
            return build("QueueEnqueueManyV2", scope, handle=self._queue_ref,
                         components=vals)

    def _dequeue_return_value(self, tensors):
        if self._names:
            return dict(zip(self._names, tensors))
        if len(tensors) == 1:
            return tensors[0]
        return tensors

    def dequeue(self, name=None):
        op = build("QueueDequeueV2", name or "%s_Dequeue" % self._name,
                   handle=self._queue_ref, component_types=self._dtypes)
        for output, shape in zip(op.outputs, self._shapes):
            output.set_shape(shape)
        return self._dequeue_return_value(list(op.outputs))

    def _dequeue_n(self, op_type, suffix, n, name, static):
        op = build(op_type, name or "%s_%s" % (self._name, suffix),
                   handle=self._queue_ref, n=n, component_types=self._dtypes)
        from sluice.framework import constant_op
        size = constant_op.constant_value(op.inputs[1]) if static else None
        batch = tensor_shape.TensorShape(
            [None if size is None else int(size)])
        for output, shape in zip(op.outputs, self._shapes):
            output.set_shape(batch.concatenate(shape))
        return self._dequeue_return_value(list(op.outputs))

    def dequeue_many(self, n, name=None):
        return self._dequeue_n("QueueDequeueManyV2", "DequeueMany", n, name,
                               True)

    def dequeue_up_to(self, n, name=None):
        return self._dequeue_n("QueueDequeueUpToV2", "DequeueUpTo", n, name,
                               False)

    def close(self, cancel_pending_enqueues=False, name=None):
        return build("QueueCloseV2", name or "%s_Close" % self._name,
                     handle=self._queue_ref,
                     cancel_pending_enqueues=cancel_pending_enqueues)

    def is_closed(self, name=None):
        return apply_op("QueueIsClosedV2", name or "%s_Is_Closed" %
                        self._name, handle=self._queue_ref)

    def size(self, name=None):
        return apply_op("QueueSizeV2", name or "%s_Size" % self._name,
                        handle=self._queue_ref)


def _make_queue(op_type, name, dtypes, shapes, **attrs):
    return apply_op(op_type, name, component_types=dtypes,
                    shapes=shapes or [], **attrs)


class FIFOQueue(QueueBase):
    """First in, first out."""

    def __init__(self, capacity, dtypes, shapes=None, names=None,
                 shared_name=None, name="fifo_queue"):
        dtypes = _as_type_list(dtypes)
        shapes = _as_shape_list(shapes, dtypes)
        names = _as_name_list(names, dtypes)
        ref = _make_queue("FIFOQueueV2", name, dtypes, shapes,
                          capacity=capacity, shared_name=shared_name or "")
        super().__init__(dtypes, shapes, names, ref)


class RandomShuffleQueue(QueueBase):
    """Gives its elements in random order."""

    def __init__(self, capacity, min_after_dequeue, dtypes, shapes=None,
                 names=None, seed=None, shared_name=None,
                 name="random_shuffle_queue"):
        dtypes = _as_type_list(dtypes)
        shapes = _as_shape_list(shapes, dtypes)
        names = _as_name_list(names, dtypes)
        seed1, seed2 = random_ops.get_seed(seed)
        if seed1 is None and seed2 is None:
            seed1, seed2 = 0, 0
        ref = _make_queue("RandomShuffleQueueV2", name, dtypes, shapes,
                          capacity=capacity,
                          min_after_dequeue=min_after_dequeue,
                          shared_name=shared_name or "", seed=seed1,
                          seed2=seed2)
        super().__init__(dtypes, shapes, names, ref)


class PaddingFIFOQueue(QueueBase):
    """Pads elements of different sizes to the largest of a batch."""

    def __init__(self, capacity, dtypes, shapes, names=None, shared_name=None,
                 name="padding_fifo_queue"):
        dtypes = _as_type_list(dtypes)
        shapes = _as_shape_list(shapes, dtypes, unknown_dim_allowed=True)
        names = _as_name_list(names, dtypes)
        if len(dtypes) != len(shapes):
            raise ValueError("Shapes must be provided for all components, but "
                             "received %d dtypes and %d shapes." %
                             (len(dtypes), len(shapes)))
        ref = _make_queue("PaddingFIFOQueueV2", name, dtypes, shapes,
                          capacity=capacity, shared_name=shared_name or "")
        super().__init__(dtypes, shapes, names, ref)


class PriorityQueue(QueueBase):
    """Gives the element with the smallest priority first."""

    def __init__(self, capacity, types, shapes=None, names=None,
                 shared_name=None, name="priority_queue"):
        types = _as_type_list(types)
        shapes = _as_shape_list(shapes, types)
        ref = apply_op("PriorityQueueV2", name, component_types=types,
                       shapes=shapes or [], capacity=capacity,
                       shared_name=shared_name or "")
        dtypes = [_dtypes.int64] + types
        shapes = [tensor_shape.TensorShape([])] + shapes if shapes is not \
            None else None
        super().__init__(dtypes, shapes, names, ref)


class ConditionalAccumulatorBase(object):

    def __init__(self, dtype, shape, accumulator_ref):
        self._dtype = dtype
        self._shape = tensor_shape.unknown_shape() if shape is None else \
            tensor_shape.as_shape(shape)
        self._accumulator_ref = accumulator_ref
        self._name = accumulator_ref.op.name.split("/")[-1]

    accumulator_ref = property(lambda self: self._accumulator_ref)
    name = property(lambda self: self._name)
    dtype = property(lambda self: self._dtype)

    def num_accumulated(self, name=None):
        return apply_op("AccumulatorNumAccumulated",
                        name or "%s_NumAccumulated" % self._name,
                        handle=self._accumulator_ref)

    def set_global_step(self, new_global_step, name=None):
        return build("AccumulatorSetGlobalStep", name,
                     handle=self._accumulator_ref,
                     new_global_step=math_ops.cast(
                         ops.convert_to_tensor(new_global_step),
                         _dtypes.int64))


def _checked_reduction(reduction_type):
    if reduction_type not in ("MEAN", "SUM"):
        raise ValueError("Invalid reduction type '%s'. Allowed values are "
                         "MEAN and SUM" % reduction_type)
    return reduction_type


class ConditionalAccumulator(ConditionalAccumulatorBase):
    """Averages gradients that are not older than its step."""

    def __init__(self, dtype, shape=None, shared_name=None,
                 name="conditional_accumulator", reduction_type="MEAN"):
        dtype = _dtypes.as_dtype(dtype).base_dtype
        ref = apply_op("ResourceConditionalAccumulator", name, dtype=dtype,
                       shape=shape, shared_name=shared_name or "",
                       reduction_type=_checked_reduction(reduction_type))
        super().__init__(dtype, shape, ref)

    def apply_grad(self, grad, local_step=0, name=None):
        grad = ops.convert_to_tensor(grad, self._dtype)
        grad.get_shape().assert_is_compatible_with(self._shape)
        local_step = math_ops.cast(ops.convert_to_tensor(local_step),
                                   _dtypes.int64)
        return build("ResourceAccumulatorApplyGradient", name,
                     handle=self._accumulator_ref, local_step=local_step,
                     gradient=grad)

    def take_grad(self, num_required, name=None):
        out = apply_op("ResourceAccumulatorTakeGradient", name,
                       handle=self._accumulator_ref,
                       num_required=num_required, dtype=self._dtype)
        out.set_shape(self._shape)
        return out

    def num_accumulated(self, name=None):
        return apply_op("ResourceAccumulatorNumAccumulated",
                        name or "%s_NumAccumulated" % self._name,
                        handle=self._accumulator_ref)

    def set_global_step(self, new_global_step, name=None):
        return build("ResourceAccumulatorSetGlobalStep", name,
                     handle=self._accumulator_ref,
                     new_global_step=math_ops.cast(
                         ops.convert_to_tensor(new_global_step),
                         _dtypes.int64))


class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """The same for gradients of single rows."""

    def __init__(self, dtype, shape=None, shared_name=None,
                 name="sparse_conditional_accumulator",
                 reduction_type="MEAN"):
        dtype = _dtypes.as_dtype(dtype).base_dtype
        ref = apply_op("SparseConditionalAccumulator", name, dtype=dtype,
                       shape=shape, shared_name=shared_name or "",
                       reduction_type=_checked_reduction(reduction_type))
        super().__init__(dtype, shape, ref)

    def apply_indexed_slices_grad(self, grad, local_step=0, name=None):
        return self.apply_grad(grad.indices, grad.values, grad.dense_shape,
                               local_step, name)

    def apply_grad(self, grad_indices, grad_values, grad_shape=None,
                   local_step=0, name=None):
        local_step = math_ops.cast(ops.convert_to_tensor(local_step),
                                   _dtypes.int64)
        return build(
            "SparseAccumulatorApplyGradient", name,
            handle=self._accumulator_ref, local_step=local_step,
            gradient_indices=math_ops.cast(grad_indices, _dtypes.int64),
            gradient_values=grad_values,
            gradient_shape=math_ops.cast(
                [] if grad_shape is None else grad_shape, _dtypes.int64),
            has_known_shape=grad_shape is not None)

    def take_grad(self, num_required, name=None):
        return apply_op("SparseAccumulatorTakeGradient", name,
                        handle=self._accumulator_ref,
                        num_required=num_required, dtype=self._dtype)

    def take_indexed_slices_grad(self, num_required, name=None):
        taken = self.take_grad(num_required, name)
        return ops.IndexedSlices(indices=taken.indices, values=taken.values,
                                 dense_shape=taken.shape)


class Barrier(object):
    """Tuples whose components arrive one by one, under a key."""

    def __init__(self, types, shapes=None, shared_name=None, name="barrier"):
        self._types = _as_type_list(types)
        if shapes is not None:
            shapes = _as_shape_list(shapes, self._types)
            self._shapes = [tensor_shape.TensorShape(s) for s in shapes]
            if len(self._shapes) != len(self._types):
                raise ValueError("Barrier shapes must have the same length "
                                 "as types")
            for i, shape in enumerate(self._shapes):
                if shape.num_elements() == 0:
                    raise ValueError(
                        "Empty tensors are not supported, but received shape "
                        "'%s' at index %d" % (shape, i))
        else:
            self._shapes = [tensor_shape.unknown_shape()
                            for _ in self._types]
        self._barrier_ref = apply_op(
            "Barrier", name, component_types=self._types,
            shapes=self._shapes, shared_name=shared_name or "")
        self._name = self._barrier_ref.op.name.split("/")[-1]

    barrier_ref = property(lambda self: self._barrier_ref)

    @property
    def name(self):
        return self._barrier_ref.op.name

    def insert_many(self, component_index, keys, values, name=None):
        """Sets one component of the tuples of `keys`."""
        if name is None:
            name = "%s_BarrierInsertMany" % self._name
        return build("BarrierInsertMany", name, handle=self._barrier_ref,
                     keys=keys, values=values,
                     component_index=component_index)

    def take_many(self, num_elements, allow_small_batch=False, timeout=None,
                  name=None):
        """(indices, keys, components) of so many complete tuples."""
        if name is None:
            name = "%s_BarrierTakeMany" % self._name
        op = build("BarrierTakeMany", name, handle=self._barrier_ref,
                   num_elements=num_elements, component_types=self._types,
                   allow_small_batch=allow_small_batch, timeout_ms=timeout)
        from sluice.framework import constant_op
        size = None if allow_small_batch else constant_op.constant_value(
            op.inputs[1])
        batch = tensor_shape.TensorShape(
            [None if size is None else int(size)])
        indices, keys = op.outputs[:2]
        indices.set_shape(batch)
        keys.set_shape(batch)
        values = list(op.outputs[2:])
        for value, shape in zip(values, self._shapes):
            value.set_shape(batch.concatenate(shape))
        return indices, keys, values

    def close(self, cancel_pending_enqueues=False, name=None):
        return build("BarrierClose", name or "%s_BarrierClose" % self._name,
                     handle=self._barrier_ref,
                     cancel_pending_enqueues=cancel_pending_enqueues)

    def ready_size(self, name=None):
        return apply_op("BarrierReadySize",
                        name or "%s_BarrierReadySize" % self._name,
                        handle=self._barrier_ref)

    def incomplete_size(self, name=None):
        return apply_op("BarrierIncompleteSize",
                        name or "%s_BarrierIncompleteSize" % self._name,
                        handle=self._barrier_ref)
