"""Batches of examples that are alike, and samples of them
(tf.contrib.training), as TensorFlow 1.15.5 gives them."""

import pytest

import sluice as tf

training = tf.contrib.training


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def numbers(n, epochs=1):
    return tf.train.range_input_producer(n, num_epochs=epochs,
                                         shuffle=False).dequeue()


def drawn(fetches, most):
    """What comes until the end, or so many."""
    values = []
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(),
                     tf.local_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        try:
            for _ in range(most):
                key, batch = session.run(fetches)
                values.append([key.tolist()] + [t.tolist() for t in batch])
        except tf.errors.OutOfRangeError:
            values.append("end")
        coord.request_stop()
        coord.join(threads)
    return sorted(values, key=str)


def test_examples_wait_for_those_of_their_bucket():
    x = numbers(8)
    which, batch = training.bucket([x, x * 10], tf.mod(x, 2), batch_size=2,
                                   num_buckets=2)
    assert which.shape.as_list() == []
    assert [t.shape.as_list() for t in batch] == [[2], [2]]
    assert [r.name for r in tf.get_collection("queue_runners")][1:] == [
        "bucket/bucket_queue_0", "bucket/top_queue"]
    assert drawn((which, batch), 10) == [
        [0, [0, 2], [0, 20]], [0, [4, 6], [40, 60]], [1, [1, 3], [10, 30]],
        [1, [5, 7], [50, 70]], "end"]


def test_buckets_have_sizes_of_their_own_and_a_rest():
    x = numbers(7)
    which, batch = training.bucket(
        [x], tf.mod(x, 2), batch_size=[2, 3], num_buckets=2,
        allow_smaller_final_batch=True)
    assert drawn((which, [batch]), 10) == [
        [0, [0, 2]], [0, [4, 6]], [1, [1, 3, 5]], "end"]


def test_what_is_not_kept_is_in_no_bucket():
    x = numbers(8)
    which, batch = training.bucket(
        [x], tf.mod(x, 2), batch_size=2, num_buckets=2, keep_input=x < 5,
        allow_smaller_final_batch=True)
    assert drawn((which, [batch]), 10) == [
        [0, [0, 2]], [0, [4]], [1, [1, 3]], "end"]


def test_sequences_are_padded_with_those_of_like_length():
    x = numbers(8)
    length = tf.mod(x, 3) + 1
    sequence = tf.ones([length], tf.int32) * x
    lengths, batch = training.bucket_by_sequence_length(
        length, [sequence], 2, [2, 3], dynamic_pad=True,
        allow_smaller_final_batch=True)
    assert batch[0].shape.as_list() == [None, None]
    assert drawn((lengths, batch), 10) == [
        [[1, 1], [[0], [3]]], [[1], [[6]]], [[2, 2], [[1, 1], [4, 4]]],
        [[2], [[7, 7]]], [[3, 3], [[2, 2, 2], [5, 5, 5]]], "end"]


def test_a_dict_comes_back_as_one():
    x = numbers(4)
    _, batch = training.bucket({"a": x}, tf.mod(x, 2), 2, 2)
    assert sorted(batch) == ["a"]
    lengths, batch = training.bucket_by_sequence_length(x, {"b": x}, 2, [2])
    assert sorted(batch) == ["b"] and lengths.dtype == tf.int32


@pytest.mark.parametrize("error, text, call", [
    (ValueError, "it must have num_buckets elements",
     lambda x: training.bucket([x], 0, [1, 2], 3)),
    (ValueError, r"\(\[1\]\) must have exactly num_buckets \(2\) elements",
     lambda x: training.bucket([x], 0, 2, 2, bucket_capacities=[1])),
    (ValueError, "num_buckets must be positive",
     lambda x: training.bucket([x], 0, 2, 0)),
    (ValueError, r"Expected at least one tensor in bucket\(\)",
     lambda x: training.bucket([], 0, 2, 2)),
    (ValueError, "bucket_boundaries must not be empty",
     lambda x: training.bucket_by_sequence_length(1, [x], 2, [])),
    (ValueError, "increasing lengths, but saw: 3 before 2",
     lambda x: training.bucket_by_sequence_length(1, [x], 2, [3, 2])),
    (TypeError, "must be a list or tuple, but received: 3",
     lambda x: training.bucket_by_sequence_length(1, [x], 2, 3)),
    (tf.errors.InvalidArgumentError, "Condition x >= 0 did not hold",
     lambda x: training.stratified_sample([x], x, [-0.5, 1.5], 2)),
    (ValueError, "Probability parameters must have the same length",
     lambda x: training.stratified_sample([x], x, [0.5, 0.5], 2, [1.0])),
])
def test_wrong_arguments_are_refused(error, text, call):
    with pytest.raises(error, match=text):
        call(numbers(8))


@pytest.mark.parametrize("init_probs", [None, [0.5, 0.5]])
def test_only_wanted_classes_are_sampled(init_probs):
    x = numbers(4, epochs=None)
    batch, labels = training.stratified_sample(
        [tf.cast(x, tf.float32)], tf.mod(x, 2), [1.0, 0.0], 3,
        init_probs=init_probs)
    assert [v.op.name for v in tf.global_variables()] == (
        ["stratified_sample/class_count"] if init_probs is None else [])
    # Threads fill the queues, so the order is theirs.
    for classes, values in drawn((labels, batch), 3):
        assert classes == [0, 0, 0]
        assert set(values) <= {0.0, 2.0}


@pytest.mark.parametrize("enqueue_many", [False, True])
def test_what_is_never_accepted_is_left_out(enqueue_many):
    x = numbers(6, epochs=None)
    if enqueue_many:
        x = tf.stack([x, x + 10])
    batch, = training.rejection_sample(
        [x], lambda t: tf.cast(tf.equal(tf.mod(t[0], 2), 0), tf.float32), 3,
        enqueue_many=enqueue_many, runtime_checks=True)
    values = drawn((batch, [batch]), 2)
    assert all(v % 2 == 0 for key, _ in values for v in key)
