"""Batches of examples that are alike (tf.contrib.training)."""

from sluice.framework import constant_op
from sluice.framework import dtypes
from sluice.framework import errors
from sluice.framework import ops
from sluice.framework import tensor_shape
from sluice.ops import array_ops
from sluice.ops import control_flow_ops
from sluice.ops import data_flow_ops
from sluice.ops import math_ops
from sluice.summary import summary
from sluice.training import batching
from sluice.training import queue_runner_impl

_CLOSED = (errors.OutOfRangeError, errors.CancelledError)


def _batch_sizes(batch_size, num_buckets):
    """A tensor for each bucket, and the size that all have, or None."""
    if num_buckets < 1:
        raise ValueError("num_buckets must be positive: %d" % num_buckets)
    if isinstance(batch_size, (list, tuple)):
        if len(batch_size) != num_buckets:
            raise ValueError("If batch_size is a list it must have "
                             "num_buckets elements")
    else:
        batch_size = [batch_size] * num_buckets
    sizes = [ops.convert_to_tensor(size, dtype=dtypes.int32,
                                   name="batch_size") for size in batch_size]
    known = {None if v is None else int(v)
             for v in map(constant_op.constant_value, sizes)}
    return sizes, known.pop() if len(known) == 1 else None


def _capacities(bucket_capacities, capacity, num_buckets):
    if bucket_capacities is None:
        return [capacity] * num_buckets
    if len(bucket_capacities) != num_buckets:
        raise ValueError(
            "The list bucket_capacities (%s) must have exactly num_buckets "
            "(%d) elements." % (bucket_capacities, num_buckets))
    return list(bucket_capacities)


def _close_all(queues, cancel):
    return control_flow_ops.group(*[
        q.close(cancel_pending_enqueues=cancel) for q in queues])


def bucket(tensors, which_bucket, batch_size, num_buckets, num_threads=1,
           capacity=32, bucket_capacities=None, shapes=None,
           dynamic_pad=False, allow_smaller_final_batch=False,
           keep_input=True, shared_name=None, name=None):
    """(bucket, batch): examples wait in the queue of their bucket until they
    are a batch, which goes to a queue for all."""
    lists, rebuild = batching._flatten_all([tensors])
    if not lists[0]:
        raise ValueError("Expected at least one tensor in bucket().")
    with ops.name_scope(name, "bucket", lists[0]) as name:
        sizes, static_size = _batch_sizes(batch_size, num_buckets)
        capacities = _capacities(bucket_capacities, capacity, num_buckets)
        tensors = [batching._as_tensor(t) for t in lists[0]]
        keep_input = batching._check_keep_input(keep_input, False)
        store = batching._SparseStore(False, keep_input)
        tensors = store.store([tensors])[0]
        types = [t.dtype.base_dtype for t in tensors]
        shapes = batching._shapes([tensors], shapes, False)
        queue_class = data_flow_ops.PaddingFIFOQueue if dynamic_pad else \
            data_flow_ops.FIFOQueue
        buckets = [queue_class(
            capacity=capacities[i], dtypes=types, shapes=shapes,
            shared_name=shared_name and "%s_%d" % (shared_name, i),
            name="bucket_queue_%d" % i) for i in range(num_buckets)]
        smaller = allow_smaller_final_batch or static_size is None
        rows = tensor_shape.TensorShape([None if smaller else static_size])
        # Batches of one bucket are padded alike, those of others are not.
        top = data_flow_ops.PaddingFIFOQueue(
            capacity=capacity, dtypes=[dtypes.int32] + types,
            shapes=[tensor_shape.TensorShape([])] +
            [rows.concatenate(s) for s in shapes],
            shared_name=shared_name, name="top_queue")

        def enqueue_which():
            def into(queue):
                return lambda: queue.enqueue(tensors)
            return control_flow_ops.group(*[
                control_flow_ops.cond(math_ops.equal(which_bucket, i),
                                      into(queue), control_flow_ops.no_op)
                for i, queue in enumerate(buckets)], name="group_enqueues")
        enqueue = batching._smart_cond(keep_input, enqueue_which,
                                       control_flow_ops.no_op)
        moves = []
        for i, queue in enumerate(buckets):
            take = queue.dequeue_up_to if allow_smaller_final_batch else \
                queue.dequeue_many
            taken = take(sizes[i], name="read_bucket_%d" % i)
            taken = list(taken) if isinstance(taken, (list, tuple)) else \
                [taken]
            moves.append(top.enqueue(
                [constant_op.constant(i, dtypes.int32)] + taken,
                name="enqueue_from_bucket_%d" % i))
        queue_runner_impl.add_queue_runner(queue_runner_impl.QueueRunner(
            buckets[0], [enqueue] * num_threads,
            close_op=_close_all(buckets, False),
            cancel_op=_close_all(buckets, True),
            queue_closed_exception_types=_CLOSED))
        queue_runner_impl.add_queue_runner(queue_runner_impl.QueueRunner(
            top, moves, queue_closed_exception_types=_CLOSED))
        for queue in buckets:
            summary.scalar("bucket/%s/size" % queue.name,
                           math_ops.cast(queue.size(), dtypes.float32))
        summary.scalar(
            "bucket/%s/fraction_of_%d_full" % (top.name, capacity),
            math_ops.cast(top.size(), dtypes.float32) * (1. / capacity))
        dequeued = top.dequeue(name="dequeue_top")
        return dequeued[0], rebuild(store.restore(list(dequeued[1:])))


def bucket_by_sequence_length(
        input_length, tensors, batch_size, bucket_boundaries, num_threads=1,
        capacity=32, bucket_capacities=None, shapes=None, dynamic_pad=False,
        allow_smaller_final_batch=False, keep_input=True, shared_name=None,
        name=None):
    """(lengths, batch): as bucket, by which lengths an example is between."""
    lists, _ = batching._flatten_all([tensors])
    if not lists[0]:
        raise ValueError("Expected at least one tensor in "
                         "bucket_by_sequence_length().")
    if not isinstance(bucket_boundaries, (list, tuple)):
        raise TypeError("bucket_boundaries must be a list or tuple, but "
                        "received: %s" % bucket_boundaries)
    if not bucket_boundaries:
        raise ValueError("bucket_boundaries must not be empty")
    for before, after in zip(bucket_boundaries[:-1], bucket_boundaries[1:]):
        if before >= after:
            raise ValueError("Buckets must contain sequential increasing "
                             "lengths, but saw: %s before %s" % (before,
                                                                 after))
    with ops.name_scope(name, "bucket_by_sequence_length",
                        [input_length] + lists[0]) as name:
        input_length = ops.convert_to_tensor(input_length, dtype=dtypes.int32,
                                             name="input_length")
        # How many boundaries it has reached.
        which = math_ops.reduce_sum(math_ops.cast(math_ops.less_equal(
            constant_op.constant(list(bucket_boundaries), dtypes.int32),
            input_length), dtypes.int32))
        if not isinstance(tensors, dict):
            tensors = list(tensors)
            joined = [input_length] + tensors
        else:
            joined = dict(tensors, **{_LENGTH: input_length})
        _, batch = bucket(
            tensors=joined, which_bucket=which, batch_size=batch_size,
            num_buckets=len(bucket_boundaries) + 1, num_threads=num_threads,
            capacity=capacity, bucket_capacities=bucket_capacities,
            shapes=None if shapes is None else [[]] + list(shapes),
            dynamic_pad=dynamic_pad,
            allow_smaller_final_batch=allow_smaller_final_batch,
            keep_input=keep_input, shared_name=shared_name)
        if isinstance(batch, dict):
            return batch.pop(_LENGTH), batch
        return batch[0], list(batch[1:])


_LENGTH = "\0 length"


def rejection_sample(tensors, accept_prob_fn, batch_size, queue_threads=1,
                     enqueue_many=False, prebatch_capacity=16,
                     prebatch_threads=1, runtime_checks=False, name=None):
    """Batches of examples, each accepted with the probability that the
    function gives it."""
    from sluice.ops import check_ops
    from sluice.ops import random_ops
    lists, _ = batching._flatten_all([tensors])
    with ops.name_scope(name, "rejection_sample", lists[0]):
        tensors = [ops.convert_to_tensor(t) for t in tensors]
        if enqueue_many:
            tensors = batching.batch(
                tensors, batch_size=1, num_threads=prebatch_threads,
                capacity=prebatch_capacity, enqueue_many=True)
            tensors = tensors if isinstance(tensors, list) else [tensors]
            tensors = [array_ops.squeeze(t, [0]) for t in tensors]
        prob = accept_prob_fn(tensors)
        prob.get_shape().assert_has_rank(0)
        if runtime_checks:
            with ops.control_dependencies([
                    check_ops.assert_less_equal(0.0, prob),
                    check_ops.assert_less_equal(prob, 1.0)]):
                prob = array_ops.identity(prob, name="prob_with_checks")
        keep = random_ops.random_uniform([]) < prob
        made = batching.maybe_batch(tensors, keep, batch_size,
                                    num_threads=queue_threads)
        return made if isinstance(made, list) else [made]


def _estimated_probs(labels, num_classes):
    """How often each class was met, counting those of this step."""
    from sluice.ops import init_ops
    from sluice.ops import variable_scope
    with ops.control_dependencies(None):
        # Ones: each class could be the next.
        counts = variable_scope.get_variable(
            "class_count", [num_classes], dtypes.int64,
            init_ops.ones_initializer(), trainable=False)
    labels = array_ops.reshape(labels, [-1])
    met = math_ops.reduce_sum(array_ops.one_hot(
        labels, num_classes, dtype=dtypes.int64), 0)
    counts = counts.assign_add(met)
    return math_ops.cast(counts, dtypes.float32) / math_ops.cast(
        math_ops.reduce_sum(counts), dtypes.float32)


def _accept_probs(init_probs, target_probs):
    """Of each class, so that what is left has the target's distribution and
    as little as possible is lost."""
    ratios = math_ops.div_no_nan(target_probs, init_probs)
    return ratios / math_ops.reduce_max(ratios)


def stratified_sample(tensors, labels, target_probs, batch_size,
                      init_probs=None, enqueue_many=False, queue_capacity=16,
                      threads_per_queue=1, name=None):
    """(batch, labels) of examples whose classes are distributed as
    `target_probs` says; they come as `init_probs` says, or are counted."""
    from sluice.ops import check_ops
    from sluice.ops import random_ops
    from sluice.ops import variable_scope
    with ops.name_scope(name, "stratified_sample", list(tensors) + [labels]), \
            variable_scope.variable_scope("stratified_sample",
                                          reuse=variable_scope.AUTO_REUSE,
                                          auxiliary_name_scope=False):
        tensors = [ops.convert_to_tensor(t) for t in tensors]
        labels = ops.convert_to_tensor(labels)
        target_probs = ops.convert_to_tensor(target_probs,
                                             dtype=dtypes.float32)
        target_probs.get_shape().assert_has_rank(1)
        check_ops.assert_non_negative(target_probs)
        num_classes = target_probs.get_shape().as_list()[0]
        if init_probs is None:
            init_probs = _estimated_probs(labels, num_classes)
        else:
            init_probs = ops.convert_to_tensor(init_probs,
                                               dtype=dtypes.float32)
            if init_probs.get_shape().as_list() != [num_classes]:
                raise ValueError("Probability parameters must have the same "
                                 "length.")
        with ops.control_dependencies([init_probs]):
            labels = array_ops.identity(labels)
        one = batching.batch(tensors + [labels], batch_size=1,
                             num_threads=threads_per_queue,
                             capacity=queue_capacity,
                             enqueue_many=enqueue_many)
        one = [array_ops.squeeze(t, [0]) for t in one]
        accept = array_ops.gather(_accept_probs(init_probs, target_probs),
                                  one[-1])
        made = batching.maybe_batch(
            one, random_ops.random_uniform([]) < accept, batch_size,
            num_threads=threads_per_queue, capacity=queue_capacity)
        return made[:-1], made[-1]
