"""Savers, checkpoints, and what is initialized from them."""

import os
import shutil
import threading

import numpy as np
import pytest
import sluice as tf

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "../../tests/golden/checkpoints")


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


@pytest.fixture
def log(monkeypatch):
    """The lines that are logged."""
    lines = []
    from sluice.platform import tf_logging
    for level in ("info", "warning", "error"):
        monkeypatch.setattr(tf_logging, level, lambda text, *args: lines.append(
            text % args if args else text))
    return lines


def initialized():
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    return session


def read(path):
    with open(path, "rb") as f:
        return f.read()


# ---- Formats ----

@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("options", [
    {}, {"sharded": True}, {"write_version": tf.train.SaverDef.V1},
    {"write_version": tf.train.SaverDef.V1, "sharded": True},
    {"restore_sequentially": True}, {"reshape": True}])
def test_what_is_saved_comes_back(tmp_path, resource, options):
    a = tf.get_variable("a", initializer=[1.0, 2.0], use_resource=resource)
    b = tf.get_variable("b", initializer=tf.constant(7, tf.int64),
                        use_resource=resource)
    saver = tf.train.Saver(**options)
    with initialized() as session:
        path = saver.save(session, str(tmp_path / "m"), global_step=3)
        session.run([tf.assign(a, [0.0, 0.0]), tf.assign(b, 0)])
        saver.restore(session, path)
        np.testing.assert_array_equal(session.run(a), [1, 2])
        assert session.run(b) == 7
    assert tf.train.latest_checkpoint(str(tmp_path)) == path
    old = options.get("write_version") == tf.train.SaverDef.V1
    name = "m-3-?????-of-00001" if old and "sharded" in options else "m-3"
    assert path == str(tmp_path / name)
    assert (tmp_path / "m-3.index").exists() != old
    assert (tmp_path / "m-3.meta").exists()
    assert dict(tf.train.list_variables(path)) == {"a": [2], "b": []}


def test_a_builder_may_restore_one_after_the_other(tmp_path):
    from sluice.training import saver as saver_lib
    tf.get_variable("a", initializer=1.0)
    tf.get_variable("b", initializer=2.0)
    saver = tf.train.Saver(builder=saver_lib.BaseSaverBuilder(),
                           restore_sequentially=True)
    graph = tf.get_default_graph()
    second = graph.get_operation_by_name("save/RestoreV2_1")
    # Its names are made after the first, and it of them.
    names = second.inputs[1].op
    assert [op.name for op in names.control_inputs] == ["save/RestoreV2"]
    with initialized() as session:
        saver.restore(session, saver.save(session, str(tmp_path / "m")))


def test_the_old_format_is_byte_for_byte_that_of_tensorflow(tmp_path):
    golden = os.path.join(GOLDEN, "v1_legacy.ckpt")
    reader = tf.train.NewCheckpointReader(golden)
    whole = {name: tf.Variable(reader.get_tensor(name), name="x")
             for name in reader.get_variable_to_shape_map() if name != "p"}
    from sluice.ops.variables import SaveSliceInfo
    value, parts, at = reader.get_tensor("p"), [], 0
    for rows in (3, 2):
        part = tf.Variable(value[at:at + rows], name="p/part_%d" % len(parts))
        part._set_save_slice_info(SaveSliceInfo(
            "p", [5, 2], [at, 0], [rows, 2]))
        parts.append(part)
        at += rows
    saver = tf.train.Saver(dict(whole, p=parts),
                           write_version=tf.train.SaverDef.V1)
    with initialized() as session:
        saver.save(session, str(tmp_path / "m"))
    assert read(tmp_path / "m") == read(golden)


def test_tensors_without_elements_come_back(tmp_path):
    v = tf.get_variable("v", initializer=tf.zeros([0, 3]))
    with initialized() as session:
        path = tf.train.Saver().save(session, str(tmp_path / "m"))
        tf.train.Saver().restore(session, path)
        assert session.run(v).shape == (0, 3)
    assert tf.train.load_variable(path, "v:0").shape == (0, 3)


def test_object_checkpoints_are_read_by_name():
    w = tf.get_variable("w", [2, 3])
    step = tf.get_variable("step", [], tf.int64, tf.zeros_initializer())
    with tf.Session() as session:
        tf.train.Saver().restore(session, os.path.join(GOLDEN, "tf2_object"))
        np.testing.assert_array_equal(session.run(w),
                                      [[0, 1, 2], [3, 4, 5]])
        assert session.run(step) == 7
        tf.get_variable("other", [])
        with pytest.raises(tf.errors.NotFoundError,
                           match="Key other not found in checkpoint"):
            tf.train.Saver().restore(session,
                                     os.path.join(GOLDEN, "tf2_object"))


@pytest.mark.parametrize("name", ["training/model.ckpt-8",
                                  "training/model.ckpt-12", "partitioned-1"])
def test_checkpoints_of_tensorflow_are_read(name):
    reader = tf.train.load_checkpoint(os.path.join(GOLDEN, name))
    shapes = reader.get_variable_to_shape_map()
    kinds = reader.get_variable_to_dtype_map()
    assert sorted(shapes) == sorted(kinds)
    for key in shapes:
        value = np.asarray(reader.get_tensor(key))
        assert list(value.shape) == shapes[key]
        assert value.dtype == kinds[key].as_numpy_dtype
    first = sorted(shapes)[0]
    assert reader.debug_string().decode().split("\n")[0] == "%s (DT_%s) [%s]" % (
        first, kinds[first].name.upper(), ",".join(map(str, shapes[first])))


# ---- What is kept ----

def test_old_checkpoints_go_and_some_stay_for_good(tmp_path, monkeypatch):
    tf.get_variable("v", initializer=1.0)
    now = [1000.0]
    from sluice.training import saver as saver_lib
    monkeypatch.setattr(saver_lib.time, "time", lambda: now[0])
    saver = tf.train.Saver(max_to_keep=2, keep_checkpoint_every_n_hours=1)
    with initialized() as session:
        for step in range(8):
            now[0] += 1800
            saver.save(session, str(tmp_path / "m"), global_step=step)
    left = sorted(n[:-6] for n in os.listdir(tmp_path) if n.endswith(".index"))
    # One an hour: the first that is older than an hour, and so on.
    assert left == ["m-2", "m-4", "m-6", "m-7"]
    assert saver.last_checkpoints == [str(tmp_path / "m-6"),
                                      str(tmp_path / "m-7")]


def test_a_new_saver_goes_on_with_the_checkpoints_of_the_last(tmp_path):
    tf.get_variable("v", initializer=1.0)
    with initialized() as session:
        first = tf.train.Saver(max_to_keep=3)
        paths = [first.save(session, str(tmp_path / "m"), global_step=i)
                 for i in range(3)]
        second = tf.train.Saver(max_to_keep=3)
        second.recover_last_checkpoints(paths + [str(tmp_path / "gone")])
        assert second.last_checkpoints == paths
        second.save(session, str(tmp_path / "m"), global_step=3)
        assert not tf.train.checkpoint_exists(paths[0])
        third = tf.train.Saver(max_to_keep=1)
        third.set_last_checkpoints(paths[1:2])  # Of an unknown time: stays.
        third.save(session, str(tmp_path / "m"), global_step=4)
        assert tf.train.checkpoint_exists(paths[1])
        fourth = tf.train.Saver(max_to_keep=1)
        fourth.set_last_checkpoints_with_time([(paths[2], 5.0)])
        fourth.save(session, str(tmp_path / "m"), global_step=5)
        assert not tf.train.checkpoint_exists(paths[2])


def test_the_state_file_is_as_asked_for(tmp_path, monkeypatch):
    tf.get_variable("v", initializer=1.0)
    with initialized() as session:
        monkeypatch.chdir(tmp_path)
        os.mkdir("d")
        tf.train.Saver().save(session, "d/m")
        assert (tmp_path / "d/checkpoint").read_text() == (
            'model_checkpoint_path: "m"\nall_model_checkpoint_paths: "m"\n')
        assert tf.train.latest_checkpoint("d") == "d/m"
        absolute = str(tmp_path / "d/q")
        tf.train.Saver(save_relative_paths=True).save(
            session, absolute, global_step=7)
        assert 'path: "q-7"' in (tmp_path / "d/checkpoint").read_text()
        shutil.move("d", "elsewhere")
        assert tf.train.latest_checkpoint("elsewhere") == "elsewhere/q-7"
        padded = tf.train.Saver(pad_step_number=True)
        assert padded.save(session, "elsewhere/p", global_step=12,
                           latest_filename="other") == "elsewhere/p-00000012"
        assert tf.train.latest_checkpoint("elsewhere", "other").endswith("12")
        silent = tf.train.Saver().save(session, "elsewhere/s",
                                       write_state=False,
                                       write_meta_graph=False)
        assert not os.path.exists(silent + ".meta")
        assert tf.train.latest_checkpoint("elsewhere").endswith("q-7")


def test_an_iterator_yields_new_checkpoints(tmp_path):
    tf.get_variable("v", initializer=1.0)
    saver = tf.train.Saver()
    with initialized() as session:
        found = []
        saver.save(session, str(tmp_path / "m"), global_step=0)
        for path in tf.train.checkpoints_iterator(
                str(tmp_path), timeout=0, timeout_fn=lambda: True):
            found.append(path)
            if len(found) < 3:
                saver.save(session, str(tmp_path / "m"),
                           global_step=len(found))
    assert found == [str(tmp_path / ("m-%d" % i)) for i in range(3)]


# ---- What goes wrong ----

def test_all_missing_keys_are_named_with_what_may_be_meant(tmp_path):
    tf.get_variable("model/kernel", initializer=1.0)
    with initialized() as session:
        path = tf.train.Saver().save(session, str(tmp_path / "m"))
    with tf.Graph().as_default():
        tf.get_variable("kernel", [])
        tf.get_variable("bias", [])
        with tf.Session() as session:
            with pytest.raises(tf.errors.NotFoundError) as e:
                tf.train.Saver().restore(session, path)
    text = str(e.value)
    assert text.startswith(
        "Restoring from checkpoint failed. This is most likely due to a "
        "Variable name or other graph key that is missing from the checkpoint")
    assert "Key bias not found in checkpoint" in text
    assert "2 of 2 keys are missing: bias, kernel" in text
    assert "The checkpoint has no kernel, but model/kernel" in text
    assert path in text


@pytest.mark.parametrize("resource", [False, True])
def test_a_wrong_shape_names_tensor_shapes_and_file(tmp_path, resource):
    tf.get_variable("w", initializer=[1.0, 2.0])
    tf.get_variable("same", initializer=1.0)
    with initialized() as session:
        path = tf.train.Saver().save(session, str(tmp_path / "m"))
    with tf.Graph().as_default():
        tf.get_variable("w", [3], use_resource=resource)
        tf.get_variable("same", [])
        with tf.Session() as session:
            with pytest.raises(tf.errors.InvalidArgumentError) as e:
                tf.train.Saver().restore(session, path)
    assert "a mismatch between the current graph and the graph from the " \
        "checkpoint" in str(e.value)
    assert "Tensor w of checkpoint %s is float [2], the variable w is float " \
        "[3]" % path in str(e.value)
    assert "same" not in str(e.value).split("\n\n")[-1]


def test_a_wrong_type_names_tensor_types_and_file(tmp_path):
    tf.get_variable("w", initializer=[1.0, 2.0])
    with initialized() as session:
        path = tf.train.Saver().save(session, str(tmp_path / "m"))
    with tf.Graph().as_default():
        tf.get_variable("w", [2], tf.int32, tf.zeros_initializer())
        with tf.Session() as session:
            with pytest.raises(tf.errors.InvalidArgumentError) as e:
                tf.train.Saver().restore(session, path)
    assert "tensor_name = w; expected dtype int32 does not equal original " \
        "dtype float\nThe checkpoint is " + path in str(e.value)


def damage(path, how):
    if how == "gone":
        os.remove(path)
    elif how == "foreign":
        with open(path, "wb") as f:
            f.write(b"something else " * 100)
    elif how == "cut":
        os.truncate(path, os.path.getsize(path) // 2)
    else:
        with open(path, "r+b") as f:
            f.seek(os.path.getsize(path) // 2)
            byte = f.read(1)
            f.seek(-1, os.SEEK_CUR)
            f.write(bytes([byte[0] ^ 1]))


@pytest.mark.parametrize("name", [".index", ".data-00000-of-00001"])
@pytest.mark.parametrize("how", ["gone", "foreign", "cut", "flipped"])
def test_recovery_takes_the_last_checkpoint_that_is_whole(tmp_path, name, how,
                                                          log):
    v = tf.get_variable("v", initializer=np.arange(100.0))
    saver = tf.train.Saver()
    with initialized() as session:
        for step in (1, 2):
            session.run(tf.assign(v, np.full(100, float(step))))
            last = saver.save(session, str(tmp_path / "m"), global_step=step)
    damage(last + name, how)
    manager = tf.train.SessionManager()
    session, ready = manager.recover_session(
        "", saver=saver, checkpoint_dir=str(tmp_path))
    with session:
        assert ready
        assert session.run(v)[0] == 1
    assert any("m-2 is damaged, trying the one before it" in l for l in log)
    assert "Restored %s in place of %s, which is damaged." % (
        tmp_path / "m-1", last) in log
    assert saver.last_restored == str(tmp_path / "m-1")
    damage(str(tmp_path / "m-1") + name, how)
    with pytest.raises((tf.errors.OpError, ValueError)) as e:
        manager.prepare_session("", init_op=tf.no_op(), saver=saver,
                                checkpoint_dir=str(tmp_path))
    assert "m-2" in str(e.value)


def test_recovery_does_not_hide_a_graph_that_does_not_fit(tmp_path):
    tf.get_variable("v", initializer=1.0)
    with initialized() as session:
        saver = tf.train.Saver()
        saver.save(session, str(tmp_path / "m"), global_step=1)
        saver.save(session, str(tmp_path / "m"), global_step=2)
    with tf.Graph().as_default():
        tf.get_variable("w", initializer=1.0)
        with pytest.raises(tf.errors.NotFoundError,
                           match="Key w not found"):
            tf.train.SessionManager().prepare_session(
                "", saver=tf.train.Saver(), checkpoint_dir=str(tmp_path),
                init_op=tf.global_variables_initializer())


def test_the_checkpoint_just_restored_is_not_written_again(tmp_path):
    folder = str(tmp_path)

    def train(steps):
        with tf.Graph().as_default():
            step = tf.train.get_or_create_global_step()
            count = tf.assign_add(step, 1)
            with tf.train.MonitoredTrainingSession(
                    checkpoint_dir=folder, save_checkpoint_steps=100,
                    hooks=[tf.train.StopAtStepHook(num_steps=steps)],
                    log_step_count_steps=None) as session:
                before = os.stat(tf.train.latest_checkpoint(folder) +
                                 ".index").st_ino
                while not session.should_stop():
                    session.run(count)
                return before
    train(3)
    index = os.path.join(folder, "model.ckpt-3.index")
    inode = os.stat(index).st_ino
    assert train(2) == inode
    assert os.stat(index).st_ino == inode
    assert tf.train.latest_checkpoint(folder).endswith("-5")


def test_an_unwritable_directory_is_an_error(tmp_path):
    tf.get_variable("v", initializer=1.0)
    blocked = tmp_path / "file"
    blocked.write_text("")
    with initialized() as session:
        with pytest.raises((tf.errors.OpError, ValueError)) as e:
            tf.train.Saver().save(session, str(blocked / "m"))
        assert str(blocked) in str(e.value)


def test_saves_of_several_threads_take_turns(tmp_path):
    step = tf.Variable(0, name="step")
    add = tf.assign_add(step, 1)
    saver = tf.train.Saver()
    export, held, go_on = saver.export_meta_graph, threading.Event(), \
        threading.Event()

    def hold_the_first(*args, **kwargs):
        if not held.is_set():
            held.set()
            assert go_on.wait(60)
        return export(*args, **kwargs)

    saver.export_meta_graph = hold_the_first
    with tf.Session() as session:
        session.run(step.initializer)

        def save():
            saver.save(session, str(tmp_path / "m"), global_step=step)

        first = threading.Thread(target=save)
        first.start()
        assert held.wait(60)
        session.run(add)
        second = threading.Thread(target=save)
        second.start()
        second.join(0.3)  # As long as it would take if it did not wait.
        go_on.set()
        for thread in (first, second):
            thread.join(60)
            assert not thread.is_alive()
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "m-1")
