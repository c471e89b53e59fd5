"""tf.contrib.framework and tf.contrib.training, as TensorFlow 1.15.5 has them."""

import os

import numpy as np
import pytest

import sluice as tf

HParams = tf.contrib.training.HParams
framework = tf.contrib.framework


# ---- HParams ----

@pytest.mark.parametrize("given, text, values", [
    (dict(a=1, b=2.0), "a=3,b=1e-3", dict(a=3, b=0.001)),
    (dict(a=1, d=[1, 2]), "d=[4,5,6],a=2", dict(a=2, d=[4, 5, 6])),
    (dict(e=True), "e=false", dict(e=False)),
    (dict(c="x"), "c=hello world", dict(c="hello world")),
    (dict(a=1.5), "a=2", dict(a=2.0)),
    (dict(a=1), "", dict(a=1)),
])
def test_hyper_parameters_are_parsed(given, text, values):
    assert HParams(**given).parse(text).values() == values


@pytest.mark.parametrize("act, error", [
    (lambda: HParams(a=1).parse("z=3"), "Unknown hyperparameter type for z"),
    (lambda: HParams(a=1).parse("a=x"), "Could not parse hparam 'a' of type "
     "'int' with value 'x' in a=x"),
    (lambda: HParams(a=1).parse("a=[1,2]"),
     "Must not pass a list for single-valued parameter: a"),
    (lambda: HParams(a=1).parse("a=1,a=2"),
     "Multiple assignments to variable 'a' in a=1,a=2"),
    (lambda: HParams(a=[1]).parse("a=1"),
     "Must pass a list for multi-valued parameter: a."),
    (lambda: HParams(e=True).parse("e=maybe"), "Could not parse hparam 'e' of "
     "type 'bool' with value 'maybe' in e=maybe"),
    (lambda: HParams(a=1).parse("a"), "Malformed hyperparameter value: a"),
    (lambda: HParams(a=1).set_hparam("a", "3"), "Could not cast hparam 'a' of "
     "type '<class 'int'>' from value '3'"),
    (lambda: HParams(a=1).set_hparam("a", 3.5), "Could not cast hparam 'a' of "
     "type '<class 'int'>' from value 3.5"),
    (lambda: HParams(e=True).override_from_dict({"e": 1}),
     "Could not cast hparam 'e' of type '<class 'bool'>' from value 1"),
    (lambda: HParams(values=1), "Hyperparameter name is reserved: values"),
    (lambda: HParams(a=[]), "Multi-valued hyperparameters cannot be empty: a"),
    (lambda: HParams(a=1).get("a", "s"), "Hparam 'a' of type '<class 'int'>' "
     "is incompatible with default=s. Could not cast hparam 'a' of type "
     "'<class 'int'>' from value 's'"),
])
def test_wrong_hyper_parameters_are_refused(act, error):
    with pytest.raises(ValueError) as caught:
        act()
    assert str(caught.value) == error


def test_hyper_parameters_are_written_and_read():
    h = HParams(a=1, b=2.5, c="x", d=[1, 2], e=True)
    assert h.to_json(sort_keys=True) == \
        '{"a": 1, "b": 2.5, "c": "x", "d": [1, 2], "e": true}'
    assert repr(HParams(a=1, b=2)) == "HParams([('a', 1), ('b', 2)])"
    assert str(HParams(a=1, b=2)) == "a=1,b=2"
    assert HParams(a=1).parse_json('{"a": 4}').a == 4
    assert HParams(b=1.0).override_from_dict({"b": 3}).b == 3.0
    with pytest.raises(KeyError):
        h.set_hparam("zz", 1)
    h.del_hparam("a")
    assert "a" not in h and h.get("a", 7) == 7


# ---- Variables ----

@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def test_variables_are_found():
    with tf.variable_scope("a"):
        v = framework.model_variable("v", [2])
        w = framework.variable("w", [2], trainable=False)
    local = framework.local_variable(1.0)
    made = framework.global_variable(2.0, name="made")
    assert framework.get_unique_variable("a/v") is v
    assert framework.get_variable_full_name(v) == "a/v"
    with pytest.raises(ValueError, match="Couldn't find variable b"):
        framework.get_unique_variable("b")
    with pytest.raises(ValueError, match="does not uniquely identify"):
        framework.get_unique_variable("a")
    assert framework.filter_variables([v, w], ["v$"]) == [v]
    assert framework.filter_variables([v, w], None, ["v$"]) == [w]
    assert framework.filter_variables([v, w], ["v"], reg_search=False) == []
    assert local in tf.local_variables() and made in tf.global_variables()
    assert framework.assert_or_get_global_step() is None
    step = tf.train.get_or_create_global_step()
    assert framework.assert_or_get_global_step() is step
    assert framework.assert_or_get_global_step(None, step) is step


def test_variables_take_values_and_those_of_checkpoints(tmp_path):
    v = tf.get_variable("v", [2, 2], initializer=tf.zeros_initializer())
    parts = tf.get_variable("p", [3], initializer=tf.zeros_initializer(),
                            partitioner=tf.fixed_size_partitioner(2))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        framework.assign_from_values_fn(
            {"v": np.array([1., 2., 3., 4.])})(session)
        assert session.run(v).tolist() == [[1., 2.], [3., 4.]]
        session.run(parts.assign([5., 6., 7.]))
        path = tf.train.Saver().save(session, str(tmp_path / "m"))
        session.run(tf.global_variables_initializer())
        assign, feed = framework.assign_from_checkpoint(path,
                                                        tf.global_variables())
        session.run(assign, feed)
        assert session.run(v).tolist() == [[1., 2.], [3., 4.]]
        assert session.run(parts.as_tensor()).tolist() == [5., 6., 7.]
    other = tf.get_variable("other", [4])
    with pytest.raises(ValueError, match=r"is missing variable \[other\]"):
        framework.assign_from_checkpoint(path, [other])
    assert framework.assign_from_checkpoint(path, [other], True)[1] == {}
    with pytest.raises(ValueError, match="Total size of new array must be "):
        framework.assign_from_checkpoint(path, {"p": other})
    flat, feed = framework.assign_from_checkpoint(path, {"v": other})
    with tf.Session() as session:
        session.run(flat, feed)
        assert session.run(other).tolist() == [1., 2., 3., 4.]
    assert framework.list_variables(str(tmp_path)) == [("p", [3]),
                                                       ("v", [2, 2])]
    assert os.path.basename(path) == "m"


def test_scopes_say_which_arguments_they_give():
    @framework.add_arg_scope
    def layer(x, units=3, name=None):
        return x, units, name
    assert framework.arg_scoped_arguments(layer) == ("units", "name")
    with framework.arg_scope([layer], units=5):
        assert layer(1) == (1, 5, None)


# ---- Queues ----

def test_queues_are_filled_by_what_is_fed():
    queue = tf.FIFOQueue(10, [tf.int32], shapes=[[]])
    fed = tf.placeholder(tf.int32, [])
    values = iter([1, 2, 3])

    def feed():
        for value in values:
            return {fed: value}
        raise tf.errors.OutOfRangeError(None, None, "end")
    enqueue = queue.enqueue(fed)
    runner = tf.contrib.training.FeedingQueueRunner(queue, [enqueue],
                                                    feed_fns=[feed])
    with tf.Session() as session:
        coord = tf.train.Coordinator()
        threads = runner.create_threads(session, coord=coord, start=True)
        assert session.run(queue.dequeue_many(3)).tolist() == [1, 2, 3]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(queue.dequeue())
        coord.request_stop()
        coord.join(threads)
    with pytest.raises(ValueError, match="same length as enqueue_ops"):
        tf.contrib.training.FeedingQueueRunner(queue, [enqueue] * 2,
                                               feed_fns=[feed])
    with pytest.raises(NotImplementedError, match="serialization"):
        runner.to_proto()
