"""Summaries and event files from Python."""

import glob
import os
import threading

import numpy as np
import pytest
import sluice as tf

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "../../tests/golden/events")


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def files(folder):
    return sorted(glob.glob(os.path.join(str(folder), "*tfevents*")))


def events(folder):
    found = []
    for path in files(folder):
        found += list(tf.train.summary_iterator(path))
    return found


def values(folder):
    return {v.tag: v for e in events(folder) for v in e.summary.value}


def scalar(tag, value):
    return tf.Summary(value=[tf.Summary.Value(tag=tag, simple_value=value)])


def test_a_file_of_tensorflow_is_written_again_byte_for_byte(tmp_path):
    golden = os.path.join(GOLDEN, "events.out.tfevents.1700000001.host")
    path = str(tmp_path / "again")
    with tf.python_io.TFRecordWriter(path) as writer:
        for event in tf.train.summary_iterator(golden):
            writer.write(event.SerializeToString(deterministic=True))
    with open(path, "rb") as a, open(golden, "rb") as b:
        assert a.read() == b.read()


def test_every_kind_of_summary_reaches_the_file(tmp_path):
    x = tf.placeholder(tf.float32, [4])
    tf.summary.scalar("average", tf.reduce_mean(x))
    tf.summary.histogram("all", x)
    tf.summary.image("dot", tf.reshape(x, [1, 2, 2, 1]), max_outputs=1)
    tf.summary.audio("beep", tf.reshape(x / 4, [1, 4]), 100)
    tf.summary.text("words", tf.constant(["one", "two"]))
    tf.summary.tensor_summary("raw", x)
    tf.summary.scalar("inner", 1.0, family="outer")
    with tf.name_scope("scope"):
        tf.summary.scalar("/bad name", 2.0)
    merged = tf.summary.merge_all()
    with tf.summary.FileWriter(str(tmp_path), tf.get_default_graph()) as writer:
        with tf.Session() as session:
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            metadata = tf.RunMetadata()
            for step in range(2):
                writer.add_summary(session.run(
                    merged, {x: [1, 2, 3, 4]}, options=options,
                    run_metadata=metadata), step)
            writer.add_run_metadata(metadata, "step_1", 1)
        writer.add_session_log(tf.SessionLog(status=tf.SessionLog.START), 2)
    found = values(tmp_path)
    assert found["average"].simple_value == 2.5
    assert found["all"].histo.num == 4
    assert found["dot/image"].image.encoded_image_string[1:4] == b"PNG"
    assert found["beep/audio/0"].audio.length_frames == 4
    assert tf.make_ndarray(found["words"].tensor)[1] == b"two"
    np.testing.assert_array_equal(tf.make_ndarray(found["raw"].tensor),
                                  [1, 2, 3, 4])
    assert found["outer/outer/inner"].simple_value == 1
    assert found["scope/bad_name"].simple_value == 2
    kinds = [e.WhichOneof("what") for e in events(tmp_path)]
    assert kinds == ["file_version", "graph_def", "meta_graph_def", "summary",
                     "summary", "tagged_run_metadata", "session_log"]
    # Said once for each tag.
    first, second = [e.summary for e in events(tmp_path)
                     if e.HasField("summary")]
    assert [v.HasField("metadata") for v in first.value] != \
        [v.HasField("metadata") for v in second.value]
    assert not any(v.HasField("metadata") for v in second.value)


def test_old_spellings_take_the_tag_as_it_is(tmp_path):
    from sluice import legacy
    names = legacy.names()
    with tf.name_scope("ignored"):
        made = [names["scalar_summary"](["a b", "c!"], [1.0, 2.0]),
                names["histogram_summary"]("h h", [1.0]),
                names["image_summary"]("i i", tf.zeros([1, 2, 2, 3])),
                names["audio_summary"]("s s", tf.zeros([1, 4]), 8)]
    assert names["merge_all_summaries"]() is not None
    with tf.Session() as session:
        got = tf.Summary.FromString(session.run(names["merge_summary"](made)))
    assert [v.tag for v in got.value] == [
        "a b", "c!", "h h", "i i/image/0", "s s/audio/0"]


def test_merge_all_of_nothing_is_none_and_scopes_choose():
    assert tf.summary.merge_all() is None
    with tf.name_scope("one"):
        tf.summary.scalar("a", 1.0)
    with tf.name_scope("two"):
        tf.summary.scalar("a", 2.0, collections=["mine", "summaries"])
    with tf.Session() as session:
        def tags(merged):
            return [v.tag for v in
                    tf.Summary.FromString(session.run(merged)).value]
        assert tags(tf.summary.merge_all()) == ["one/a", "two/a"]
        assert tags(tf.summary.merge_all(scope="two")) == ["two/a"]
        assert tags(tf.summary.merge_all(key="mine")) == ["two/a"]


def test_histograms_may_leave_out_what_is_not_finite():
    bad = tf.constant([1.0, float("nan"), float("inf"), 2.0])
    strict = tf.summary.histogram("strict", bad)
    lenient = tf.summary.histogram("lenient", bad, skip_nonfinite=True)
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError,
                           match="Nan in summary histogram for: strict"):
            session.run(strict)
        got = tf.Summary.FromString(session.run(lenient)).value[0].histo
    assert (got.num, got.min, got.max) == (2, 1, 2)


def test_the_first_event_is_seen_at_once_and_all_after_a_flush(tmp_path):
    writer = tf.summary.FileWriter(str(tmp_path), flush_secs=1000)
    for step in range(50):
        writer.add_summary(scalar("v", step), step)
    writer.flush()
    assert [e.step for e in events(tmp_path)][1:] == list(range(50))
    writer.add_summary(scalar("v", 50), 50)
    writer.close()
    assert [e.step for e in events(tmp_path)][-1] == 50


def test_a_closed_writer_warns_and_a_reopened_one_goes_on(tmp_path):
    writer = tf.summary.FileWriter(str(tmp_path))
    writer.add_summary(scalar("v", 1), 1)
    writer.close()
    with pytest.warns(UserWarning, match="closed FileWriter"):
        writer.add_summary(scalar("v", 2), 2)
    writer.reopen()
    writer.add_summary(scalar("v", 3), 3)
    writer.close()
    assert len(files(tmp_path)) == 2
    assert sorted(e.step for e in events(tmp_path)
                  if e.HasField("summary")) == [1, 3]


def test_writers_of_one_second_have_files_of_their_own(tmp_path):
    writers = [tf.summary.FileWriter(str(tmp_path)) for _ in range(4)]
    threads = [threading.Thread(target=lambda w=w, i=i: (
        w.add_summary(scalar("w", i), i), w.close()))
        for i, w in enumerate(writers)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(files(tmp_path)) == 4
    assert sorted(e.step for e in events(tmp_path)
                  if e.HasField("summary")) == [0, 1, 2, 3]


def test_a_file_that_vanishes_is_replaced(tmp_path):
    writer = tf.summary.FileWriter(str(tmp_path))
    writer.add_summary(scalar("v", 1), 1)
    writer.flush()
    os.remove(files(tmp_path)[0])
    writer.add_summary(scalar("v", 2), 2)
    writer.flush()  # Says that they are lost.
    writer.add_summary(scalar("v", 3), 3)
    writer.close()
    assert [e.step for e in events(tmp_path) if e.HasField("summary")] == [3]


def test_the_cache_has_one_writer_for_a_folder(tmp_path):
    cache = tf.summary.FileWriterCache
    a = cache.get(str(tmp_path / "a"))
    assert cache.get(str(tmp_path / "a")) is a
    assert cache.get(str(tmp_path / "b")) is not a
    cache.clear()
    assert cache.get(str(tmp_path / "a")) is not a
    cache.clear()


def test_damaged_event_files_are_data_loss(tmp_path):
    with open(os.path.join(GOLDEN,
                           "events.out.tfevents.1700000001.host"), "rb") as f:
        good = f.read()
    whole = len(list(tf.train.summary_iterator(f.name)))
    bad = {"cut": good[:-3], "flipped": good[:40] + bytes([good[40] ^ 1]) +
           good[41:], "foreign": b"something else " * 50}
    for how, data in bad.items():
        path = tmp_path / how
        path.write_bytes(data)
        read = []
        with pytest.raises(tf.errors.DataLossError):
            for event in tf.train.summary_iterator(str(path)):
                read.append(event)
        assert len(read) < whole
        if how == "cut":
            assert len(read) == whole - 1
