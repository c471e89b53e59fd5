"""Staging areas, as programs use them."""

import threading

import numpy as np
import pytest

import sluice as tf


def test_a_later_step_takes_what_an_earlier_one_put():
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [2])
        area = tf.contrib.staging.StagingArea(
            [tf.float32, tf.int32], shapes=[[2], []], capacity=2)
        put = area.put([x, 7])
        taken, seen = area.get(), area.peek(0)
        assert [t.shape.as_list() for t in taken] == [[2], []]
        sess.run(put, {x: [1, 2]})
        sess.run(put, {x: [3, 4]})
        assert sess.run(area.size()) == 2
        np.testing.assert_array_equal(sess.run(seen)[0], [1, 2])
        np.testing.assert_array_equal(sess.run(taken)[0], [1, 2])
        sess.run(area.clear())
        assert sess.run(area.size()) == 0


def test_areas_with_names_take_and_give_dictionaries():
    with tf.Graph().as_default(), tf.Session() as sess:
        area = tf.contrib.staging.StagingArea(
            [tf.float32, tf.string], names=["value", "label"],
            shared_name="named")
        sess.run(area.put({"label": tf.constant("a"),
                           "value": tf.constant(1.0)}))
        assert sess.run(area.get()) == {"value": 1.0, "label": b"a"}
        with pytest.raises(ValueError, match="You must enqueue a dictionary"):
            area.put([tf.constant(1.0), tf.constant("a")])
        with pytest.raises(ValueError, match="Keys in dictionary to put"):
            area.put({"other": tf.constant(1.0)})


# Nodes and names are those of TensorFlow 1.15.5.
def test_nodes_stand_with_their_area_and_values_come_to_the_caller():
    with tf.Graph().as_default() as graph:
        with tf.device("/job:ps"):
            area = tf.contrib.staging.StagingArea([tf.float32])
        with tf.device("/job:worker"):
            put = area.put([tf.constant(1.0)])
            (taken,) = area.get()
        assert put.device == "/job:ps"
        assert put.name == "StagingArea_put"
        assert taken.op.type == "Identity"
        assert taken.op.inputs[0].op.name == "StagingArea_get"
        assert taken.op.inputs[0].op.device == "/job:ps"
        assert taken.device == "/job:worker"
        assert [n.name for n in graph.as_graph_def().node] == [
            "StagingArea_root/NoOp", "Const", "StagingArea_put",
            "StagingArea_get", "NoOp", "Identity"]


@pytest.mark.parametrize("arguments, message", [
    (dict(shapes=[[1], [2]]), "shapes must be the same length as dtypes"),
    (dict(names=["a", "b"]), "names must be the same length as dtypes"),
    (dict(shared_name=3), "shared_name must be a string"),
])
def test_wrong_arguments_are_named(arguments, message):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        tf.contrib.staging.StagingArea([tf.float32], **arguments)


def test_wrong_values_are_named():
    with tf.Graph().as_default():
        area = tf.contrib.staging.StagingArea([tf.float32], [[3]])
        with pytest.raises(ValueError, match="Datatypes do not match"):
            area.put([tf.constant(1)])
        with pytest.raises(ValueError, match=r"\(2,\) and \(3,\)"):
            area.put([tf.constant([1.0, 2.0])])
        with pytest.raises(ValueError, match="Unexpected number of inputs"):
            area.put([tf.constant([1.0] * 3)] * 2)


def test_waiting_takers_hold_no_threads_and_end_with_their_time():
    with tf.Graph().as_default(), tf.Session() as sess:
        area = tf.contrib.staging.StagingArea([tf.float32], [[]])
        (taken,) = area.get()
        put = area.put([tf.constant(5.0)])
        got = []

        def take():
            got.append(sess.run(taken))

        takers = [threading.Thread(target=take) for _ in range(20)]
        for taker in takers:
            taker.start()
        with pytest.raises(tf.errors.DeadlineExceededError):
            # Twenty others wait; this one may not be served before its time.
            sess.run(area.peek(0), options=tf.RunOptions(timeout_in_ms=1))
        for _ in takers:
            sess.run(put)
        for taker in takers:
            taker.join(60)
        assert got == [5.0] * 20
