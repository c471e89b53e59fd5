"""Input pipelines made of queues."""

import collections.abc

from sluice.framework import constant_op
from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework import tensor_shape
from sluice.ops import array_ops
from sluice.ops import control_flow_ops
from sluice.ops import data_flow_ops
from sluice.ops import math_ops
from sluice.ops import random_ops
from sluice.ops import variables
from sluice.summary import summary
from sluice.training import queue_runner_impl


def limit_epochs(tensor, num_epochs=None, name=None):
    """Gives the tensor so many times, then OutOfRangeError."""
    if num_epochs is None:
        return tensor
    if num_epochs <= 0:
        raise ValueError("num_epochs must be > 0 not %d." % num_epochs)
    with ops.name_scope(name, "limit_epochs", [tensor]) as name:
        zero64 = constant_op.constant(0, dtype=dtypes.int64)
        epochs = variables.Variable(
            zero64, name="epochs", trainable=False,
            collections=[ops.GraphKeys.LOCAL_VARIABLES])
        counter = epochs.count_up_to(num_epochs)
        with ops.control_dependencies([counter]):
            return array_ops.identity(tensor, name=name)


def input_producer(input_tensor, element_shape=None, num_epochs=None,
                   shuffle=True, seed=None, capacity=32, shared_name=None,
                   summary_name=None, name=None, cancel_op=None):
    """A queue of the rows of a tensor."""
    with ops.name_scope(name, "input_producer", [input_tensor]) as name:
        input_tensor = ops.convert_to_tensor(input_tensor,
                                             name="input_tensor")
        element_shape = input_tensor.get_shape()[1:].merge_with(
            tensor_shape.as_shape(element_shape))
        if not element_shape.is_fully_defined():
            raise ValueError("Either `input_tensor` must have a fully defined "
                             "shape or `element_shape` must be specified")
        if shuffle:
            input_tensor = random_ops.random_shuffle(input_tensor, seed=seed)
        input_tensor = limit_epochs(input_tensor, num_epochs)
        q = data_flow_ops.FIFOQueue(
            capacity=capacity, dtypes=[input_tensor.dtype.base_dtype],
            shapes=[element_shape], shared_name=shared_name, name=name)
        enqueue = q.enqueue_many([input_tensor])
        queue_runner_impl.add_queue_runner(queue_runner_impl.QueueRunner(
            q, [enqueue], cancel_op=cancel_op))
        if summary_name is not None:
            summary.scalar(summary_name, math_ops.cast(
                q.size(), dtypes.float32) * (1. / capacity))
        return q


def string_input_producer(string_tensor, num_epochs=None, shuffle=True,
                          seed=None, capacity=32, shared_name=None, name=None,
                          cancel_op=None):
    """A queue of strings, such as names of files."""
    empty = "string_input_producer requires a non-null input tensor"
    if not isinstance(string_tensor, ops.Tensor) and not string_tensor:
        raise ValueError(empty)
    with ops.name_scope(name, "input_producer", [string_tensor]) as name:
        string_tensor = ops.convert_to_tensor(string_tensor,
                                              dtype=dtypes.string)
        with ops.control_dependencies([control_flow_ops.Assert(
                math_ops.greater(array_ops.size(string_tensor), 0),
                [empty])]):
            string_tensor = array_ops.identity(string_tensor)
        return input_producer(
            input_tensor=string_tensor, element_shape=[],
            num_epochs=num_epochs, shuffle=shuffle, seed=seed,
            capacity=capacity, shared_name=shared_name, name=name,
            summary_name="fraction_of_%d_full" % capacity,
            cancel_op=cancel_op)


def range_input_producer(limit, num_epochs=None, shuffle=True, seed=None,
                         capacity=32, shared_name=None, name=None):
    """A queue of the numbers below `limit`."""
    with ops.name_scope(name, "input_producer", [limit]) as name:
        return input_producer(
            math_ops.range(limit), [], num_epochs, shuffle, seed, capacity,
            shared_name, "fraction_of_%d_full" % capacity, name)


def slice_input_producer(tensor_list, num_epochs=None, shuffle=True,
                         seed=None, capacity=32, shared_name=None, name=None):
    """One row of each tensor, the same for all."""
    with ops.name_scope(name, "input_producer", tensor_list):
        tensor_list = [ops.convert_to_tensor(t) for t in tensor_list]
        if not tensor_list:
            raise ValueError("Expected at least one tensor in "
                             "slice_input_producer().")
        size = array_ops.shape(tensor_list[0])[0]
        queue = range_input_producer(
            limit=size, num_epochs=num_epochs, shuffle=shuffle, seed=seed,
            capacity=capacity, shared_name=shared_name)
        index = queue.dequeue()
        return [array_ops.gather(t, index) for t in tensor_list]


def match_filenames_once(pattern, name=None):
    """The files of a pattern; looked for when local variables are made."""
    from sluice.framework.op_builder import apply_op
    with ops.name_scope(name, "matching_filenames", [pattern]) as name:
        return variables.Variable(
            name=name, initial_value=apply_op("MatchingFiles", None,
                                              pattern=pattern),
            trainable=False, validate_shape=False,
            collections=[ops.GraphKeys.LOCAL_VARIABLES])


# ---- Batches ----

def _flatten(tensors):
    """(list of tensors, function that puts such a list back in shape)."""
    if isinstance(tensors, collections.abc.Mapping):
        keys = sorted(tensors)
        return [tensors[k] for k in keys], lambda values: dict(
            zip(keys, values))
    if isinstance(tensors, (list, tuple)):
        return list(tensors), lambda values: list(values)
    return [tensors], lambda values: values[0]


def _shapes(tensor_list_list, shapes, enqueue_many):
    if shapes is not None:
        return shapes
    result = []
    for column in zip(*tensor_list_list):
        shape = column[0].get_shape()
        for other in column[1:]:
            shape = shape.merge_with(other.get_shape())
        result.append(shape.with_rank_at_least(1)[1:] if enqueue_many
                      else shape)
    return result


def _as_list(values):
    return values if isinstance(values, list) else [values]


def _batch(lists, batch_size, capacity, enqueue_many, shapes, dynamic_pad,
           allow_smaller_final_batch, shared_name, name, default_name,
           num_threads, min_after_dequeue=None, seed=None, keep_input=None):
    flat = [_flatten(tensors) for tensors in lists]
    rebuild = flat[0][1]
    lists = [tensors for tensors, _ in flat]
    values = [t for tensors in lists for t in tensors]
    with ops.name_scope(name, default_name, values) as name:
        lists = [[ops.convert_to_tensor(t) for t in tensors]
                 for tensors in lists]
        if keep_input is True or keep_input is None:
            ops.convert_to_tensor(True)
        else:
            raise NotImplementedError(
                "tf.train.maybe_batch is not provided; filter with tf.data")
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
        enqueue = queue.enqueue_many if enqueue_many else queue.enqueue
        enqueue_ops = [enqueue(tensors) for tensors in lists]
        queue_runner_impl.add_queue_runner(queue_runner_impl.QueueRunner(
            queue, enqueue_ops * num_threads))
        if min_after_dequeue is None:
            summary.scalar("fraction_of_%d_full" % capacity, math_ops.cast(
                queue.size(), dtypes.float32) * (1. / capacity))
        else:
            room = capacity - min_after_dequeue
            full = math_ops.cast(
                math_ops.maximum(0, queue.size() - min_after_dequeue),
                dtypes.float32) * (1. / room if room else 0.)
            summary.scalar("fraction_over_%d_of_%d_full" % (
                min_after_dequeue, room), full)
        if allow_smaller_final_batch:
            dequeued = queue.dequeue_up_to(batch_size, name=name)
        else:
            dequeued = queue.dequeue_many(batch_size, name=name)
        return rebuild(_as_list(dequeued))


def batch(tensors, batch_size, num_threads=1, capacity=32, enqueue_many=False,
          shapes=None, dynamic_pad=False, allow_smaller_final_batch=False,
          shared_name=None, name=None):
    return _batch([tensors], batch_size, capacity, enqueue_many, shapes,
                  dynamic_pad, allow_smaller_final_batch, shared_name, name,
                  "batch", num_threads)


def batch_join(tensors_list, batch_size, capacity=32, enqueue_many=False,
               shapes=None, dynamic_pad=False,
               allow_smaller_final_batch=False, shared_name=None, name=None):
    return _batch(tensors_list, batch_size, capacity, enqueue_many, shapes,
                  dynamic_pad, allow_smaller_final_batch, shared_name, name,
                  "batch_join", 1)


def _check_capacity(capacity, min_after_dequeue):
    if capacity <= min_after_dequeue:
        raise ValueError("capacity %d must be bigger than min_after_dequeue "
                         "%d." % (capacity, min_after_dequeue))


def shuffle_batch(tensors, batch_size, capacity, min_after_dequeue,
                  num_threads=1, seed=None, enqueue_many=False, shapes=None,
                  allow_smaller_final_batch=False, shared_name=None,
                  name=None):
    _check_capacity(capacity, min_after_dequeue)
    return _batch([tensors], batch_size, capacity, enqueue_many, shapes,
                  False, allow_smaller_final_batch, shared_name, name,
                  "shuffle_batch", num_threads, min_after_dequeue, seed)


def shuffle_batch_join(tensors_list, batch_size, capacity, min_after_dequeue,
                       seed=None, enqueue_many=False, shapes=None,
                       allow_smaller_final_batch=False, shared_name=None,
                       name=None):
    _check_capacity(capacity, min_after_dequeue)
    return _batch(tensors_list, batch_size, capacity, enqueue_many, shapes,
                  False, allow_smaller_final_batch, shared_name, name,
                  "shuffle_batch_join", 1, min_after_dequeue, seed)
