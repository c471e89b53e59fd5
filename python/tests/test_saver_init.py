"""Variables that begin with values of a checkpoint."""

import numpy as np
import pytest
import sluice as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


@pytest.fixture
def folder(tmp_path):
    """A checkpoint: a scalar, a matrix, and one in two parts."""
    with tf.Graph().as_default():
        tf.get_variable("scalar", initializer=3.0)
        tf.get_variable("old/matrix", initializer=np.arange(
            6, dtype=np.float32).reshape(3, 2))
        with tf.variable_scope("old", partitioner=tf.fixed_size_partitioner(2)):
            tf.get_variable("table", [4, 2], initializer=tf.ones_initializer())
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            tf.train.Saver().save(session, str(tmp_path / "m"), global_step=5)
    return str(tmp_path)


def first_values(*tensors):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(list(tensors))


MATRIX = np.arange(6).reshape(3, 2)


@pytest.mark.parametrize("resource", [False, True])
def test_every_form_of_the_map_works(folder, resource):
    with tf.variable_scope("new", use_resource=resource):
        matrix = tf.get_variable("matrix", [3, 2])
        table = tf.get_variable("table", [4, 2],
                                partitioner=tf.fixed_size_partitioner(3))
    by_name = tf.get_variable("b", [], use_resource=resource)
    by_object = tf.get_variable("c", [], use_resource=resource)
    tf.train.init_from_checkpoint(folder, {"old/": "new/"})
    tf.train.init_from_checkpoint(folder + "/m-5", {"scalar": "b"})
    tf.train.init_from_checkpoint(folder, {"scalar": by_object})
    whole = tf.convert_to_tensor(table)
    got = first_values(matrix, whole, by_name, by_object)
    np.testing.assert_array_equal(got[0], MATRIX)
    np.testing.assert_array_equal(got[1], np.ones([4, 2]))
    assert got[2:] == [3.0, 3.0]


def test_the_root_is_a_scope_too(folder):
    with tf.variable_scope("here"):
        scalar = tf.get_variable("scalar", [])
        with tf.variable_scope("old"):
            matrix = tf.get_variable("matrix", [3, 2])
    tf.train.init_from_checkpoint(folder, {"/": "here/"})
    got = first_values(scalar, matrix)
    assert got[0] == 3
    np.testing.assert_array_equal(got[1], MATRIX)
    with tf.Graph().as_default():
        matrix = tf.get_variable("matrix", [3, 2])
        tf.train.init_from_checkpoint(folder, {"old/": "/"})
        np.testing.assert_array_equal(first_values(matrix)[0], MATRIX)


def test_parts_given_as_a_list_take_their_slices(folder):
    table = tf.get_variable("t", [3, 2],
                            partitioner=tf.fixed_size_partitioner(3))
    tf.train.init_from_checkpoint(folder, {"old/matrix": list(table)})
    np.testing.assert_array_equal(
        first_values(tf.convert_to_tensor(table))[0], MATRIX)


def test_the_initializer_is_that_of_tensorflow(folder):
    v = tf.get_variable("v", [])
    tf.train.init_from_checkpoint(folder, {"scalar": "v"})
    assert v.initial_value.name == "checkpoint_initializer:0"
    assert v.initial_value.device == "/device:CPU:0"
    assert v.initializer.name == "Assign" and v.initializer.device == ""
    assert v.initial_value.op.type == "RestoreV2"


@pytest.mark.parametrize("mapping, text", [
    ({"zz": "v"}, "Tensor zz is not found in .* checkpoint {"),
    ({"zz": "none"}, "Assignment map with scope only name  should map to scope "
     "only zz. Should be 'scope/': 'other_scope/'."),
    ({"zz/": "s/"}, r"Tensor zz/b \(b in zz/\) is not found in"),
    ({"old/matrix": "v"}, r"Shape of variable v:0 \(\(\)\) doesn't match with "
     r"shape of tensor old/matrix \(\[3, 2\]\) from checkpoint reader."),
])
def test_a_map_that_does_not_fit_is_an_error(folder, mapping, text):
    tf.get_variable("v", [])
    tf.get_variable("s/b", [])
    with pytest.raises(ValueError, match=text):
        tf.train.init_from_checkpoint(folder, mapping)


def test_a_folder_without_checkpoints_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="Couldn't find 'checkpoint' file or "
                       "checkpoints in given directory"):
        tf.train.init_from_checkpoint(str(tmp_path), {"a": "b"})


# ---- Warm starts ----

def test_variables_are_warm_started_by_name(folder):
    scalar = tf.get_variable("scalar", [])
    renamed = tf.get_variable("mine", [3, 2])
    tf.get_variable("untouched", [2], initializer=tf.zeros_initializer())
    tf.train.warm_start(folder, vars_to_warm_start="scalar|mine",
                        var_name_to_prev_var_name={"mine": "old/matrix"})
    got = first_values(scalar, renamed)
    assert got[0] == 3
    np.testing.assert_array_equal(got[1], MATRIX)


def test_lists_reach_variables_that_are_not_trained(folder):
    scalar = tf.get_variable("scalar", [], trainable=False)
    tf.train.warm_start(folder, vars_to_warm_start=["scalar"])
    assert first_values(scalar) == [3]
    with tf.Graph().as_default():
        scalar = tf.get_variable("scalar", [])
        tf.train.warm_start(folder, vars_to_warm_start=[scalar])
        assert first_values(scalar) == [3]


@pytest.fixture
def vocabs(tmp_path):
    def write(name, *words):
        path = tmp_path / name
        path.write_text("\n".join(words) + "\n")
        return str(path)
    return write("old.txt", "a", "b", "c"), write("new.txt", "c", "x", "a")


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_rows_follow_their_words(folder, vocabs, parts):
    old, new = vocabs
    v = tf.get_variable("old/matrix", [4, 2], partitioner=(
        tf.fixed_size_partitioner(parts) if parts > 1 else None))
    tf.train.warm_start(folder, var_name_to_vocab_info={
        "old/matrix": tf.train.VocabInfo(
            new, 3, 1, old, backup_initializer=tf.constant_initializer(9.0))})
    got = first_values(tf.convert_to_tensor(v))[0]
    np.testing.assert_array_equal(got, [[4, 5], [9, 9], [0, 1], [9, 9]])


def test_columns_follow_their_words(folder, vocabs, tmp_path):
    (tmp_path / "two.txt").write_text("a\nb\n")
    v = tf.get_variable("old/matrix", [3, 4])
    tf.train.warm_start(folder, var_name_to_vocab_info={
        "old/matrix": tf.train.VocabInfo(vocabs[1], 3, 1,
                                         str(tmp_path / "two.txt"), axis=1)})
    np.testing.assert_array_equal(first_values(v)[0], [
        [0, 0, 0, 0], [0, 0, 2, 0], [0, 0, 4, 0]])


def test_only_so_many_old_words_count(folder, vocabs):
    old, new = vocabs
    v = tf.get_variable("old/matrix", [3, 2])
    tf.train.warm_start(folder, var_name_to_vocab_info={
        "old/matrix": tf.train.VocabInfo(new, 3, 0, old, old_vocab_size=1)})
    np.testing.assert_array_equal(first_values(v)[0],
                                  [[0, 0], [0, 0], [0, 1]])


def test_what_is_not_used_is_an_error(folder, vocabs):
    tf.get_variable("scalar", [])
    with pytest.raises(ValueError, match="var_name_to_prev_var_name that were "
                       "not used: {'zz'}"):
        tf.train.warm_start(folder, var_name_to_prev_var_name={"zz": "a"})
    info = tf.train.VocabInfo(vocabs[1], 3, 0, vocabs[0])
    with pytest.raises(ValueError, match="var_name_to_vocab_info that were "
                       "not used: {'zz'}"):
        tf.train.warm_start(folder, var_name_to_vocab_info={"zz": info})
    with pytest.raises(ValueError, match="must be a `list` or `str`"):
        tf.train.warm_start(folder, vars_to_warm_start=5)
    with pytest.raises(ValueError, match="all `Variable` or all `str`"):
        tf.train.warm_start(folder, vars_to_warm_start=["a", 5])
    with pytest.raises(ValueError, match="axis argument are 0 and 1"):
        tf.train.VocabInfo("a", 1, 0, "b", axis=3)
