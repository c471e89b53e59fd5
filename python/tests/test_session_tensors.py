"""Tensors that stay with a session between its steps."""

import gc

import numpy as np
import pytest

import sluice as tf
from sluice.ops.session_ops import TensorHandle


@pytest.fixture(params=["local", "server", "rpc"])
def session(request):
    config = tf.ConfigProto()
    config.rpc_options.use_rpc_for_inprocess_master = request.param == "rpc"
    target = "" if request.param == "local" else \
        tf.train.Server.create_local_server().target
    with tf.Graph().as_default(), tf.Session(target, config=config) as sess:
        yield sess


def test_a_handle_stands_for_its_tensor(session):
    kept = tf.get_session_handle(tf.constant([1.0, 2.0]) * 2)
    handle = session.run(kept)
    assert isinstance(handle, TensorHandle)
    assert str(handle).startswith("GetSessionHandle;")
    np.testing.assert_array_equal(handle.eval(), [2, 4])
    # As the text it is, or in the place of a value.
    holder, tensor = tf.get_session_tensor(handle.handle, tf.float32)
    assert tensor.op.device == holder.op.device
    later = tensor + 1
    for value in (handle, handle.handle):
        np.testing.assert_array_equal(session.run(later, {holder: value}),
                                      [3, 5])
    x = tf.placeholder(tf.float32)
    found = session.run({"sum": x + 1, "again": [kept]}, {x: handle})
    np.testing.assert_array_equal(found["sum"], [3, 5])
    assert isinstance(found["again"][0], TensorHandle)


def test_a_deleted_tensor_is_gone(session):
    handle = session.run(tf.get_session_handle(tf.constant("text")))
    holder, tensor = tf.get_session_tensor(handle.handle, tf.string)
    assert session.run(tensor, {holder: handle}) == b"text"
    raw = handle.handle
    handle.delete()
    for call in (handle.delete, handle.eval):
        with pytest.raises(TypeError, match="may have already been deleted"):
            call()
    with pytest.raises(tf.errors.InvalidArgumentError,
                       match="is not in the session store"):
        session.run(tensor, {holder: raw})
    deleted, deleter = tf.delete_session_tensor(raw)
    with pytest.raises(tf.errors.InvalidArgumentError,
                       match="Failed to delete a tensor with handle"):
        session.run(deleter, {deleted: raw})


def test_handles_that_nobody_holds_are_dropped(session):
    kept = tf.get_session_handle(tf.constant(1.0))
    handles = [session.run(kept) for _ in range(10)]
    spared = session.run(kept).get_raw_handle()
    texts = [h.handle for h in handles]
    holder, tensor = tf.get_session_tensor(spared, tf.float32)
    assert session.run(tensor, {holder: texts[0]}) == 1.0
    del handles
    gc.collect()
    session.run(tf.constant(0))
    for text in texts:
        with pytest.raises(tf.errors.InvalidArgumentError, match="is not in"):
            session.run(tensor, {holder: text})
    assert session.run(tensor, {holder: spared}) == 1.0


def test_a_finalized_graph_gets_no_nodes(session):
    kept = tf.get_session_handle(tf.constant(1.0))
    tf.get_default_graph().finalize()
    for _ in range(30):
        session.run(kept)


def test_another_session_has_tensors_of_its_own():
    target = tf.train.Server.create_local_server().target
    with tf.Graph().as_default():
        kept = tf.get_session_handle(tf.constant(1.0))
        with tf.Session(target) as first:
            text = first.run(kept).get_raw_handle()
            holder, tensor = tf.get_session_tensor(text, tf.float32)
            assert first.run(tensor, {holder: text}) == 1.0
        with tf.Session(target) as second:
            with pytest.raises(tf.errors.InvalidArgumentError,
                               match="is not in"):
                second.run(tensor, {holder: text})
