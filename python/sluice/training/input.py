"""Input pipelines made of queues."""

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
    with ops.name_scope(name, "input_producer", [input_tensor]):
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


# The batch family stands in a file of its own.
from sluice.training.batching import (  # noqa: E402,F401
    batch, batch_join, maybe_batch, maybe_batch_join, maybe_shuffle_batch,
    maybe_shuffle_batch_join, shuffle_batch, shuffle_batch_join)
