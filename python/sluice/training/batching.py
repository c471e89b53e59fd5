"""Batches made by queues: tf.train.batch and its family."""

import collections.abc

from sluice.framework import constant_op
from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework import sparse_tensor
from sluice.framework import tensor_shape
from sluice.ops import array_ops
from sluice.ops import control_flow_ops
from sluice.ops import data_flow_ops
from sluice.ops import math_ops
from sluice.ops import sparse_ops
from sluice.summary import summary
from sluice.training import queue_runner_impl


def _flatten(tensors):
    """(list of tensors, function that puts such a list back in shape)."""
    if isinstance(tensors, collections.abc.Mapping):
        keys = sorted(tensors)
        return [tensors[k] for k in keys], lambda values: dict(
            zip(keys, values))
    if isinstance(tensors, (list, tuple)) and len(tensors) != 1:
        return list(tensors), lambda values: list(values)
    # A list of one gives a tensor, not a list.
    if isinstance(tensors, (list, tuple)):
        tensors = tensors[0]
    return [tensors], lambda values: values[0]


def _flatten_all(tensors_list):
    """The same of lists that must all have one form."""
    if not tensors_list:
        raise ValueError("Expected at least one set of tensors")
    flat = [_flatten(tensors) for tensors in tensors_list]
    if isinstance(tensors_list[0], collections.abc.Mapping):
        for tensors in tensors_list[1:]:
            if set(tensors) != set(tensors_list[0]):
                raise ValueError(
                    "All dictionaries in tensors_list must have the same "
                    "keys")
    lists = [tensors for tensors, _ in flat]
    types = [[_dtype(t) for t in tensors] for tensors in lists]
    for other in types[1:]:
        if None not in types[0] + other and other != types[0]:
            raise TypeError("Expected types to be consistent: %s vs. %s." %
                            (", ".join(x.name for x in types[0]),
                             ", ".join(x.name for x in other)))
    return lists, flat[0][1]


def _dtype(value):
    return value.dtype.base_dtype if hasattr(value, "get_shape") else None


def _as_tensor(value):
    if isinstance(value, sparse_tensor.SparseTensor):
        return value
    return ops.convert_to_tensor(value)


def _check_keep_input(keep_input, enqueue_many):
    keep_input = ops.convert_to_tensor(keep_input)
    ndims = keep_input.shape.ndims
    if ndims is None:
        raise ValueError("`keep_input` dimensions must be known at graph "
                         "construction.")
    if not enqueue_many and ndims == 1:
        raise ValueError("`keep_input` cannot be a vector when "
                         "`enqueue_many=False`.")
    if ndims > 1:
        raise ValueError("`keep_input` must be 0 or 1 dimensions.")
    return keep_input


def _smart_cond(keep_input, then, otherwise):
    """A cond, unless it is known which way it goes."""
    known = constant_op.constant_value(keep_input)
    if known is not None:
        return then() if known else otherwise()
    return control_flow_ops.cond(keep_input, then, otherwise)


class _SparseStore(object):
    """Passes sparse tensors through a queue as handles of a map."""

    def __init__(self, enqueue_many, keep_input):
        self._enqueue_many = enqueue_many
        self._keep_input = keep_input
        self._infos = None  # Of each component: (map op, rank), or None.

    def store(self, lists):
        """Lists without sparse tensors."""
        stored = []
        for tensors in lists:
            first = self._infos is None
            if first:
                self._infos = [None] * len(tensors)
            stored.append([self._store(i, t, first)
                           for i, t in enumerate(tensors)])
        return stored

    def _store(self, i, tensor, first):
        if not isinstance(tensor, sparse_tensor.SparseTensor):
            if not first and self._infos[i] is not None:
                raise TypeError("Inconsistent use of SparseTensors at "
                                "component %d." % i)
            return tensor
        if self._enqueue_many and self._keep_input.shape.ndims == 1:
            raise ValueError("Sparse tensors cannot be kept one by one: "
                             "`keep_input` must be a scalar.")
        shared_name = None if first else self._infos[i][0].name
        added = []

        def add():
            function = sparse_ops.add_many_sparse_to_tensors_map if \
                self._enqueue_many else sparse_ops.add_sparse_to_tensors_map
            handle = function(tensor, shared_name=shared_name)
            added.append(handle.op)
            return handle

        def skip():
            value = constant_op.constant(-1, dtype=dtypes.int64)
            if self._enqueue_many:
                value = math_ops.cast(value, dtypes.int64) * array_ops.ones(
                    array_ops.expand_dims(tensor.dense_shape[0], 0),
                    dtypes.int64)
            return value

        handle = _smart_cond(self._keep_input, add, skip)
        if first:
            rank = tensor.dense_shape.get_shape().as_list()[0]
            if rank is not None and not self._enqueue_many:
                rank += 1
            self._infos[i] = (added[0], rank)
        # Some queues handle only tensors with a dimension.
        handle.set_shape([None] if self._enqueue_many else [])
        return array_ops.expand_dims(handle, [-1])

    def restore(self, tensors):
        """The other way, of what was dequeued."""
        if not any(self._infos):
            return tensors
        restored = []
        for tensor, info in zip(tensors, self._infos):
            if info is None:
                restored.append(tensor)
                continue
            handles = array_ops.squeeze(tensor, [1])
            restored.append(sparse_ops.take_many_sparse_from_tensors_map(
                info[0], handles, rank=info[1]))
        # All are taken together: a step that fetches some of them must not
        # leave the others in the map.
        gates = [t.op if isinstance(t, ops.Tensor) else t.indices.op
                 for t in restored]

        def gated(tensor):
            return control_flow_ops.with_dependencies(gates, tensor)
        return [gated(t) if isinstance(t, ops.Tensor) else
                sparse_tensor.SparseTensor(gated(t.indices), gated(t.values),
                                           gated(t.dense_shape))
                for t in restored]


def _shapes(lists, shapes, enqueue_many):
    if shapes is not None:
        return shapes
    result = []
    for column in zip(*lists):
        for tensor in column:
            if tensor.shape.ndims is None:
                raise ValueError("Cannot infer Tensor's rank: %s" % tensor)
        shape = column[0].get_shape()
        if enqueue_many:
            shape = shape.with_rank_at_least(1)[1:]
        for other in column[1:]:
            more = other.get_shape()
            shape = _common(shape, more[1:] if enqueue_many else more)
        result.append(shape)
    return result


def _common(a, b):
    """What two shapes of one rank have in common."""
    if a.ndims != b.ndims:
        raise ValueError("Shapes %s and %s have different ranks" % (a, b))
    return tensor_shape.TensorShape(
        [x if x == y else None for x, y in zip(a.as_list(), b.as_list())])


def _enqueue(queue, tensors, enqueue_many, keep_input):
    if not enqueue_many:
        return _smart_cond(keep_input, lambda: queue.enqueue(tensors),
                           control_flow_ops.no_op)
    if keep_input.shape.ndims == 1:
        which = math_ops.cast(keep_input, dtypes.int32)
        tensors = [array_ops.dynamic_partition(t, which, 2)[1]
                   for t in tensors]
        return queue.enqueue_many(tensors)
    return _smart_cond(keep_input, lambda: queue.enqueue_many(tensors),
                       control_flow_ops.no_op)


def _add_summary(queue, capacity, min_after_dequeue):
    if min_after_dequeue is None:
        summary.scalar("fraction_of_%d_full" % capacity, math_ops.cast(
            queue.size(), dtypes.float32) * (1. / capacity))
        return
    room = capacity - min_after_dequeue
    full = math_ops.cast(
        math_ops.maximum(0, queue.size() - min_after_dequeue),
        dtypes.float32) * (1. / room if room else 0.)
    summary.scalar("fraction_over_%d_of_%d_full" % (min_after_dequeue, room),
                   full)


def _batch(tensors_list, batch_size, capacity, enqueue_many, shapes,
           dynamic_pad, allow_smaller_final_batch, shared_name, name,
           default_name, num_threads, min_after_dequeue=None, seed=None,
           keep_input=True):
    lists, rebuild = _flatten_all(tensors_list)
    values = [t for tensors in lists for t in tensors]
    with ops.name_scope(name, default_name, values + [keep_input]) as name:
        lists = [[_as_tensor(t) for t in tensors] for tensors in lists]
        keep_input = _check_keep_input(keep_input, enqueue_many)
        store = _SparseStore(enqueue_many, keep_input)
        lists = store.store(lists)
        shapes = _shapes(lists, shapes, enqueue_many)
        types = [t.dtype.base_dtype for t in lists[0]]
        if min_after_dequeue is not None:
            queue = data_flow_ops.RandomShuffleQueue(
                capacity=capacity, min_after_dequeue=min_after_dequeue,
                seed=seed, dtypes=types, shapes=shapes,
                shared_name=shared_name)
        elif dynamic_pad:
            queue = data_flow_ops.PaddingFIFOQueue(
                capacity=capacity, dtypes=types, shapes=shapes,
                shared_name=shared_name)
        else:
            queue = data_flow_ops.FIFOQueue(
                capacity=capacity, dtypes=types, shapes=shapes,
                shared_name=shared_name)
        enqueue_ops = [_enqueue(queue, tensors, enqueue_many, keep_input)
                       for tensors in lists]
        queue_runner_impl.add_queue_runner(queue_runner_impl.QueueRunner(
            queue, enqueue_ops * num_threads))
        _add_summary(queue, capacity, min_after_dequeue)
        dequeue = queue.dequeue_up_to if allow_smaller_final_batch else \
            queue.dequeue_many
        dequeued = dequeue(batch_size, name=name)
        if not isinstance(dequeued, list):
            dequeued = [dequeued]
        return rebuild(store.restore(dequeued))


def batch(tensors, batch_size, num_threads=1, capacity=32, enqueue_many=False,
          shapes=None, dynamic_pad=False, allow_smaller_final_batch=False,
          shared_name=None, name=None):
    return _batch([tensors], batch_size, capacity, enqueue_many, shapes,
                  dynamic_pad, allow_smaller_final_batch, shared_name, name,
                  "batch", num_threads)


def maybe_batch(tensors, keep_input, batch_size, num_threads=1, capacity=32,
                enqueue_many=False, shapes=None, dynamic_pad=False,
                allow_smaller_final_batch=False, shared_name=None, name=None):
    """As batch, of what `keep_input` is true for."""
    return _batch([tensors], batch_size, capacity, enqueue_many, shapes,
                  dynamic_pad, allow_smaller_final_batch, shared_name, name,
                  "batch", num_threads, keep_input=keep_input)


def batch_join(tensors_list, batch_size, capacity=32, enqueue_many=False,
               shapes=None, dynamic_pad=False,
               allow_smaller_final_batch=False, shared_name=None, name=None):
    """As batch, of several sources, a thread each."""
    return _batch(tensors_list, batch_size, capacity, enqueue_many, shapes,
                  dynamic_pad, allow_smaller_final_batch, shared_name, name,
                  "batch_join", 1)


def maybe_batch_join(tensors_list, keep_input, batch_size, capacity=32,
                     enqueue_many=False, shapes=None, dynamic_pad=False,
                     allow_smaller_final_batch=False, shared_name=None,
                     name=None):
    return _batch(tensors_list, batch_size, capacity, enqueue_many, shapes,
                  dynamic_pad, allow_smaller_final_batch, shared_name, name,
                  "batch_join", 1, keep_input=keep_input)


def _check_capacity(capacity, min_after_dequeue):
    if capacity <= min_after_dequeue:
        raise ValueError("capacity %d must be bigger than min_after_dequeue "
                         "%d." % (capacity, min_after_dequeue))


def maybe_shuffle_batch(tensors, batch_size, capacity, min_after_dequeue,
                        keep_input, num_threads=1, seed=None,
                        enqueue_many=False, shapes=None,
                        allow_smaller_final_batch=False, shared_name=None,
                        name=None):
    _check_capacity(capacity, min_after_dequeue)
    return _batch([tensors], batch_size, capacity, enqueue_many, shapes,
                  False, allow_smaller_final_batch, shared_name, name,
                  "shuffle_batch", num_threads, min_after_dequeue, seed,
                  keep_input)


def shuffle_batch(tensors, batch_size, capacity, min_after_dequeue,
                  num_threads=1, seed=None, enqueue_many=False, shapes=None,
                  allow_smaller_final_batch=False, shared_name=None,
                  name=None):
    return maybe_shuffle_batch(
        tensors, batch_size, capacity, min_after_dequeue, True, num_threads,
        seed, enqueue_many, shapes, allow_smaller_final_batch, shared_name,
        name)


def maybe_shuffle_batch_join(tensors_list, batch_size, capacity,
                             min_after_dequeue, keep_input, seed=None,
                             enqueue_many=False, shapes=None,
                             allow_smaller_final_batch=False,
                             shared_name=None, name=None):
    _check_capacity(capacity, min_after_dequeue)
    return _batch(tensors_list, batch_size, capacity, enqueue_many, shapes,
                  False, allow_smaller_final_batch, shared_name, name,
                  "shuffle_batch_join", 1, min_after_dequeue, seed,
                  keep_input)


def shuffle_batch_join(tensors_list, batch_size, capacity, min_after_dequeue,
                       seed=None, enqueue_many=False, shapes=None,
                       allow_smaller_final_batch=False, shared_name=None,
                       name=None):
    return maybe_shuffle_batch_join(
        tensors_list, batch_size, capacity, min_after_dequeue, True, seed,
        enqueue_many, shapes, allow_smaller_final_batch, shared_name, name)
