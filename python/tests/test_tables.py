"""Tables, barriers, and stacks of old graphs."""

import threading

import pytest

import sluice as tf

lookup = tf.contrib.lookup


@pytest.fixture(autouse=True)
def fresh_graph():
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


def test_a_static_table_needs_its_initializer():
    table = lookup.HashTable(
        lookup.KeyValueTensorInitializer(["a", "b"], [1, 2], tf.string,
                                         tf.int64), -1)
    found = table.lookup(tf.constant(["b", "x"]))
    with tf.Session() as sess:
        with pytest.raises(tf.errors.FailedPreconditionError,
                           match="Table not initialized."):
            sess.run(found)
        sess.run(tf.tables_initializer())
        assert sess.run(found).tolist() == [2, -1]
        assert sess.run(table.size()) == 2
        keys, values = sess.run(table.export())
        assert dict(zip(keys, values)) == {b"a": 1, b"b": 2}


def test_a_static_table_refuses_two_values_of_a_key():
    table = lookup.HashTable(
        lookup.KeyValueTensorInitializer(["a", "a"], [1, 2], tf.string,
                                         tf.int64), -1)
    with tf.Session() as sess:
        with pytest.raises(tf.errors.FailedPreconditionError,
                           match="Key a has 1 and trying to add value 2"):
            sess.run(table.init)


def test_vocabularies(tmp_path):
    path = tmp_path / "vocabulary"
    path.write_text("emerson\nlake\npalmer\n")
    ids = lookup.index_table_from_file(str(path), num_oov_buckets=1)
    words = lookup.index_to_string_table_from_file(str(path),
                                                   default_value="?")
    listed = lookup.index_table_from_tensor(["x", "y"], num_oov_buckets=4)
    sparse = tf.SparseTensor([[0, 1]], ["lake"], [1, 2])
    with tf.Session() as sess:
        sess.run(tf.tables_initializer())
        assert sess.run(ids.lookup(tf.constant(["palmer", "and"]))).tolist() \
            == [2, 3]
        assert sess.run(ids.size()) == 4
        assert sess.run(ids.lookup(sparse)).values.tolist() == [1]
        assert sess.run(words.lookup(tf.constant([1, 9], tf.int64))
                        ).tolist() == [b"lake", b"?"]
        # The bucket is that of TensorFlow.
        assert sess.run(listed.lookup(tf.constant(["y", "hello"]))).tolist() \
            == [1, 2 + 0xb48be5a931380ce8 % 4]


def test_a_mutable_table_changes_and_is_saved(tmp_path):
    table = lookup.MutableHashTable(tf.string, tf.int64, -1)
    keys = tf.placeholder(tf.string, [None])
    values = tf.placeholder(tf.int64, [None])
    insert, remove = table.insert(keys, values), table.remove(keys)
    find = table.lookup(keys)
    saver = tf.train.Saver()
    with tf.Session() as sess:
        sess.run(insert, {keys: ["a", "b"], values: [1, 2]})
        sess.run(remove, {keys: ["a", "nobody"]})
        path = saver.save(sess, str(tmp_path / "model"))
        sess.run(insert, {keys: ["b"], values: [7]})
        assert sess.run(find, {keys: ["a", "b"]}).tolist() == [-1, 7]
    assert sorted(name for name, _ in tf.train.list_variables(path)) == [
        "MutableHashTable-keys", "MutableHashTable-values"]
    with tf.Session() as sess:
        saver.restore(sess, path)
        assert sess.run(find, {keys: ["a", "b"]}).tolist() == [-1, 2]


def test_a_dense_table_keeps_two_keys_to_itself():
    table = lookup.MutableDenseHashTable(tf.int64, tf.int64, -1, empty_key=0,
                                         deleted_key=-1)
    with tf.Session() as sess:
        sess.run(table.insert([5], [50]))
        assert sess.run(table.lookup([5, 6])).tolist() == [50, -1]
        with pytest.raises(tf.errors.InvalidArgumentError,
                           match="Using the empty_key"):
            sess.run(table.insert([0], [1]))


def test_a_table_says_what_types_it_has():
    table = lookup.MutableHashTable(tf.string, tf.int64, -1)
    with pytest.raises(TypeError, match="Keys must be dtype"):
        table.remove(tf.constant([1]))
    with pytest.raises(ValueError, match="vocabulary_file must be specified"):
        lookup.index_table_from_file("")
    with pytest.raises(TypeError, match="Only integer and string keys"):
        lookup.index_table_from_tensor([1.0], dtype=tf.float32)


def test_a_barrier_joins_components():
    from sluice.ops import data_flow_ops
    barrier = data_flow_ops.Barrier((tf.float32, tf.int32), ((), ()))
    floats = barrier.insert_many(0, ["x", "y"], [1.0, 2.0])
    ints = barrier.insert_many(1, ["y", "x"], [20, 10])
    indices, keys, values = barrier.take_many(2)
    assert values[0].shape.as_list() == [2]
    with tf.Session() as sess:
        taken = []
        thread = threading.Thread(target=lambda: taken.append(
            sess.run([keys] + values)))
        thread.start()
        sess.run(floats)
        assert sess.run(barrier.incomplete_size()) == 2
        sess.run(ints)
        thread.join(60)
        rows = sorted(zip(*[t.tolist() for t in taken[0]]))
        assert rows == [(b"x", 1.0, 10), (b"y", 2.0, 20)]
        sess.run(barrier.close())
        with pytest.raises(tf.errors.OutOfRangeError,
                           match="is closed and has insufficient elements"):
            sess.run(indices)


def test_stacks_have_string_handles_in_old_graphs():
    raw = tf.raw_ops
    stack = raw.Stack(elem_type=tf.float32)
    pushed = raw.StackPush(handle=stack, elem=1.5)
    with tf.control_dependencies([pushed]):
        popped = raw.StackPop(handle=stack, elem_type=tf.float32)
    with tf.control_dependencies([popped]):
        closed = raw.StackClose(handle=stack)
    with tf.Session() as sess:
        assert sess.run([popped, closed]) == [1.5, None]
        with pytest.raises(tf.errors.InvalidArgumentError, match="is empty"):
            sess.run(raw.StackPop(handle=stack, elem_type=tf.float32))
