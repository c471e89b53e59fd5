"""Readers, record files, parsing and decoding."""

import base64
import json
import os

import numpy as np
import pytest

import sluice as tf

_GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                       "tests", "golden", "events")


@pytest.fixture(autouse=True)
def fresh_graph():
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


def recorded():
    with open(os.path.join(_GOLDEN, "tfrecords.json")) as f:
        return json.load(f)


def records(name, packing=None):
    return list(tf.python_io.tf_record_iterator(
        os.path.join(_GOLDEN, name),
        packing and tf.python_io.TFRecordOptions(packing)))


def queue_of(names):
    queue = tf.FIFOQueue(len(names), tf.string, [[]])
    return queue, [queue.enqueue_many([names]), queue.close()]


def test_record_files_of_tensorflow_are_read():
    expected = [base64.b64decode(r)
                for r in recorded()["tfrecord"]["records_base64"]]
    types = tf.python_io.TFRecordCompressionType
    assert records("plain.tfrecord") == expected
    assert records("gzip.tfrecord", types.GZIP) == expected
    assert records("zlib.tfrecord", types.ZLIB) == expected


@pytest.mark.parametrize("packing", ["", "GZIP", "ZLIB"])
def test_records_are_written_and_read_by_a_reader(tmp_path, packing):
    path = str(tmp_path / "out.tfrecord")
    options = tf.python_io.TFRecordOptions(packing)
    with tf.python_io.TFRecordWriter(path, options) as writer:
        for i in range(5):
            writer.write(b"record %d" % i)
    queue, ops = queue_of([path])
    reader = tf.TFRecordReader(options=options)
    key, value = reader.read(queue)
    with tf.Session() as sess:
        for op in ops:
            sess.run(op)
        seen = [sess.run([key, value]) for _ in range(5)]
        assert [v for _, v in seen] == [b"record %d" % i for i in range(5)]
        assert seen[1][0] == path.encode() + b":24"
        with pytest.raises(tf.errors.OutOfRangeError, match="is closed"):
            sess.run(value)
        assert sess.run(reader.num_records_produced()) == 5
        assert sess.run(reader.num_work_units_completed()) == 1


def test_a_reader_names_what_is_wrong_with_a_file(tmp_path):
    bad = tmp_path / "bad"
    bad.write_bytes(b"0123456789abcdefgh")
    queue, ops = queue_of([str(bad)])
    _, value = tf.TFRecordReader().read(queue)
    with tf.Session() as sess:
        sess.run(ops[0])
        with pytest.raises(tf.errors.DataLossError,
                           match="corrupted record at 0"):
            sess.run(value)
    with pytest.raises(tf.errors.NotFoundError, match="/nonexistent"):
        list(tf.python_io.tf_record_iterator("/nonexistent"))
    with pytest.raises(ValueError, match="Not a valid compression_type"):
        tf.python_io.TFRecordOptions("LZMA")


def test_lines_bytes_and_whole_files(tmp_path):
    path = tmp_path / "text"
    path.write_text("head\n1,a\n2,b\n")
    queue, ops = queue_of([str(path)] * 3)
    _, line = tf.TextLineReader(skip_header_lines=1).read(queue)
    columns = tf.decode_csv(line, [[0], [""]])
    _, whole = tf.WholeFileReader().read(queue)
    _, fixed = tf.FixedLengthRecordReader(3).read_up_to(queue, 2)
    with tf.Session() as sess:
        for op in ops:
            sess.run(op)
        assert sess.run(columns) == [1, b"a"]
        assert sess.run(columns) == [2, b"b"]
        assert sess.run(whole) == b"head\n1,a\n2,b\n"
        assert sess.run(fixed).tolist() == [b"hea", b"d\n1"]


def test_a_pipeline_ends_with_its_epochs(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text("".join(
            "%s%d\n" % (name, i) for i in range(3)))
    files = tf.train.string_input_producer(
        [str(tmp_path / "a"), str(tmp_path / "b")], num_epochs=2)
    _, line = tf.TextLineReader().read(files)
    batch = tf.train.shuffle_batch([line], 5, 20, 5, num_threads=2,
                                   allow_smaller_final_batch=True)
    seen = []
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        try:
            while not coord.should_stop():
                seen += sess.run(batch).tolist()
        except tf.errors.OutOfRangeError:
            coord.request_stop()
        coord.join(threads)
    assert sorted(seen) == sorted(
        [b"%s%d" % (f, i) for f in (b"a", b"b") for i in range(3)] * 2)


FEATURES = {
    "f": tf.FixedLenFeature([2], tf.float32),
    "i": tf.FixedLenFeature([], tf.int64),
    "b": tf.VarLenFeature(tf.string),
    "v": tf.FixedLenSequenceFeature([], tf.int64, allow_missing=True,
                                    default_value=-1),
    "d": tf.FixedLenFeature([1], tf.float32, default_value=[9.0]),
}


def test_examples_of_tensorflow_are_parsed():
    expected = recorded()["parse_example"]
    parsed = tf.parse_example(records("examples.tfrecord")[:2], FEATURES)
    with tf.Session() as sess:
        got = sess.run(parsed)
    for key in "fivd":
        np.testing.assert_array_equal(
            got[key], np.array(expected[key], got[key].dtype))
    assert got["b"].indices.tolist() == expected["b"]["indices"]
    assert got["b"].values.tolist() == [
        base64.b64decode(v) for v in expected["b"]["values_base64"]]
    assert got["b"].dense_shape.tolist() == expected["b"]["dense_shape"]


def test_sequences_of_tensorflow_are_parsed():
    expected = recorded()["parse_single_sequence_example"]
    context, lists = tf.parse_single_sequence_example(
        records("sequence_examples.tfrecord")[0],
        {"id": tf.FixedLenFeature([], tf.int64)},
        {"t": tf.FixedLenSequenceFeature([2], tf.float32),
         "w": tf.VarLenFeature(tf.string)})
    with tf.Session() as sess:
        context, lists = sess.run([context, lists])
    assert context["id"] == expected["id"]
    assert lists["t"].tolist() == expected["t"]
    assert lists["w"].indices.tolist() == expected["w"]["indices"]
    assert lists["w"].values.tolist() == [
        v.encode() for v in expected["w"]["values"]]


def example(**features):
    lists = {int: ("int64_list", tf.train.Int64List),
             float: ("float_list", tf.train.FloatList),
             bytes: ("bytes_list", tf.train.BytesList)}
    made = {}
    for key, values in features.items():
        field, kind = lists[type(values[0])]
        made[key] = tf.train.Feature(**{field: kind(value=values)})
    return tf.train.Example(features=tf.train.Features(
        feature=made)).SerializeToString()


def test_what_programs_write_is_what_they_parse():
    serialized = example(x=[1.5, 2.5], label=[7], name=[b"n"])
    parsed = tf.parse_single_example(serialized, {
        "x": tf.FixedLenFeature([2], tf.float32),
        "label": tf.FixedLenFeature([], tf.int64),
        "name": tf.FixedLenFeature([], tf.string),
        "none": tf.FixedLenFeature([1], tf.int64, default_value=[-1])})
    with tf.Session() as sess:
        got = sess.run(parsed)
    assert got["x"].tolist() == [1.5, 2.5]
    assert (got["label"], got["name"]) == (7, b"n")
    assert got["none"].tolist() == [-1]


def test_sparse_features_are_put_together():
    serialized = [example(ix=[3, 1], val=[0.5, 0.25]), example(ix=[0],
                                                               val=[2.0])]
    parsed = tf.parse_example(serialized, {
        "sp": tf.SparseFeature("ix", "val", tf.float32, 5)})
    with tf.Session() as sess:
        dense = sess.run(tf.sparse_tensor_to_dense(parsed["sp"]))
    assert dense.tolist() == [[0, 0.25, 0, 0.5, 0], [2, 0, 0, 0, 0]]


@pytest.mark.parametrize("serialized, message", [
    (b"", r"Feature: x \(data type: float\) is required but could not be"),
    (b"garbage\xff", "Could not parse example input"),
    (example(x=[1]), "Data types don't match"),
    (example(x=[1.0, 2.0]), "Number of float values != expected"),
])
def test_an_example_that_does_not_fit_is_an_error(serialized, message):
    parsed = tf.parse_single_example(
        serialized, {"x": tf.FixedLenFeature([1], tf.float32)})
    with tf.Session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            sess.run(parsed)


def test_features_that_are_none_are_refused():
    with pytest.raises(ValueError, match="Missing: features was"):
        tf.parse_example([b""], {})
    with pytest.raises(ValueError, match="Missing shape for feature x"):
        tf.parse_example([b""], {"x": tf.FixedLenFeature(None, tf.float32)})
    with pytest.raises(ValueError, match="First dimension of shape for "
                                         "feature x unknown"):
        tf.parse_example([b""], {"x": tf.FixedLenFeature([None], tf.float32)})
    with pytest.raises(ValueError, match="Invalid feature x:3."):
        tf.parse_example([b""], {"x": 3})


def test_decode_raw_and_tensors_as_bytes():
    raw = tf.decode_raw([b"\1\0\2\0"], tf.int16)
    back = tf.parse_tensor(tf.serialize_tensor(raw), tf.int16)
    with tf.Session() as sess:
        assert sess.run(raw).tolist() == [[1, 2]]
        assert sess.run(back).tolist() == [[1, 2]]
        with pytest.raises(tf.errors.InvalidArgumentError,
                           match="not a multiple of 4"):
            sess.run(tf.decode_raw(b"abc", tf.int32))
