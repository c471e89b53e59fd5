"""Batches made by queues: what is kept, padded, joined and sparse."""

import pytest

import sluice as tf


@pytest.fixture(autouse=True)
def fresh_graph():
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


class Fed(object):
    """A session with the queue runners started."""

    def __enter__(self):
        self._session = tf.Session()
        self._session.run(tf.local_variables_initializer())
        self._coord = tf.train.Coordinator()
        self._threads = tf.train.start_queue_runners(self._session,
                                                     self._coord)
        return self._session

    def __exit__(self, *error):
        self._coord.request_stop()
        self._coord.join(self._threads)
        self._session.close()


def numbers(n):
    return tf.train.range_input_producer(n, num_epochs=1,
                                         shuffle=False).dequeue()


def test_only_what_is_kept_is_batched():
    x = numbers(10)
    batch = tf.train.maybe_batch([x], tf.equal(x % 2, 0), 5)
    with Fed() as sess:
        assert sess.run(batch).tolist() == [0, 2, 4, 6, 8]
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(batch)


def test_rows_are_kept_one_by_one():
    x = tf.train.limit_epochs(tf.constant([1, 2, 3, 4]), 1)
    batch = tf.train.maybe_batch([x], tf.constant([True, False, True, True]),
                                 3, enqueue_many=True)
    with Fed() as sess:
        assert sess.run(batch).tolist() == [1, 3, 4]


def test_sparse_tensors_go_through_queues():
    x = tf.cast(numbers(3), tf.int64)
    sparse = tf.SparseTensor(tf.stack([[x]]), tf.stack([x * 10]), [5])
    batch = tf.train.batch({"x": x, "sparse": sparse}, 3)
    with Fed() as sess:
        got = sess.run(batch)
    assert got["x"].tolist() == [0, 1, 2]
    assert got["sparse"].indices.tolist() == [[0, 0], [1, 1], [2, 2]]
    assert got["sparse"].values.tolist() == [0, 10, 20]
    assert got["sparse"].dense_shape.tolist() == [3, 5]


def test_batches_are_padded():
    x = numbers(3)
    batch = tf.train.batch([tf.fill([x], x)], 3, dynamic_pad=True,
                           shapes=[[None]])
    with Fed() as sess:
        assert sess.run(batch).tolist() == [[0, 0], [1, 0], [2, 2]]


def test_sources_are_joined():
    a, b = numbers(4), numbers(4) + 100
    batch = tf.train.shuffle_batch_join([[a], [b]], 8, 20, 7)
    with Fed() as sess:
        assert sorted(sess.run(batch)) == [0, 1, 2, 3, 100, 101, 102, 103]


# What TensorFlow 1.15.5 gave for op seed 7, without a graph seed and with 42.
SHUFFLED = {
    None: ([27, 25, 9, 13, 10, 18, 24, 4, 23, 26, 0, 11, 15, 28, 17, 6, 12, 8,
            7, 29, 16, 1, 20, 21, 14, 19, 22, 5, 2, 3],
           [7, 34, 11, 13, 28, 18, 16, 3, 35, 14],
           "f3 f0 f1 f4 f2 f5 f2 f4 f0 f1 f5 f3"),
    42: ([16, 18, 17, 8, 24, 26, 9, 20, 2, 12, 4, 25, 21, 15, 23, 14, 3, 29,
          0, 28, 5, 19, 11, 7, 22, 6, 13, 10, 27, 1],
         [36, 23, 27, 12, 0, 13, 21, 3, 14, 11],
         "f4 f0 f3 f5 f1 f2 f4 f1 f2 f3 f0 f5"),
}


@pytest.mark.parametrize("graph_seed", [None, 42])
def test_shuffling_is_that_of_tensorflow(graph_seed):
    queued, batched, named = SHUFFLED[graph_seed]
    tf.set_random_seed(graph_seed)
    queue = tf.RandomShuffleQueue(100, 5, tf.int32, [[]], seed=7)
    one, four = queue.dequeue(), queue.dequeue_many(4)
    with tf.Session() as sess:
        sess.run(queue.enqueue_many([list(range(30))]))
        got = [sess.run(one) for _ in range(10)] + sess.run(four).tolist()
        sess.run(queue.close())
        got += [sess.run(one) for _ in range(16)]
    assert got == queued


@pytest.mark.parametrize("graph_seed", [None, 42])
def test_names_are_shuffled_as_by_tensorflow(graph_seed):
    tf.set_random_seed(graph_seed)
    names = tf.train.string_input_producer(
        ["f%d" % i for i in range(6)], num_epochs=2, seed=7).dequeue()
    with Fed() as sess:
        got = [sess.run(names).decode() for _ in range(12)]
    assert " ".join(got) == SHUFFLED[graph_seed][2]


@pytest.mark.parametrize("graph_seed", [None, 42])
def test_batches_are_shuffled_as_by_tensorflow(graph_seed):
    tf.set_random_seed(graph_seed)
    x = tf.train.limit_epochs(tf.range(40), 1)
    batch = tf.train.shuffle_batch([x], 5, 100, 10, seed=7, enqueue_many=True)
    runner = tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)[0]
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        # All is in and the queue closed before the first batch.
        sess.run(runner.enqueue_ops[0])
        sess.run(runner.close_op)
        got = sess.run(batch).tolist() + sess.run(batch).tolist()
    assert got == SHUFFLED[graph_seed][1]


@pytest.mark.parametrize("build, message", [
    (lambda: tf.train.shuffle_batch([tf.constant(1)], 2, 5, 5),
     "capacity 5 must be bigger than min_after_dequeue 5"),
    (lambda: tf.train.batch([tf.placeholder(tf.float32)], 2),
     "Cannot infer Tensor's rank"),
    (lambda: tf.train.maybe_batch([tf.constant(1)], [True, False], 2),
     "cannot be a vector when `enqueue_many=False`"),
    (lambda: tf.train.batch_join([{"a": 1}, {"b": 1}], 2), "the same keys"),
])
def test_what_cannot_be_batched_is_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_sources_must_have_the_same_types():
    with pytest.raises(TypeError, match="types to be consistent"):
        tf.train.batch_join([[tf.constant(1)], [tf.constant(1.0)]], 2)
