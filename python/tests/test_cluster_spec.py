"""ClusterSpec, servers' definitions and where ops go."""

import pytest

import sluice as tf
from sluice.training import device_setter
from sluice.training import server_lib


def test_lists_and_dictionaries_are_clusters():
    spec = tf.train.ClusterSpec({"worker": {1: "w1:1", 4: "w4:1"},
                                 "ps": ["a:1", "b:1"]})
    assert spec.jobs == ["worker", "ps"]
    assert spec.as_dict() == {"ps": ["a:1", "b:1"],
                              "worker": {1: "w1:1", 4: "w4:1"}}
    assert spec.num_tasks("worker") == 2
    assert spec.task_indices("worker") == [1, 4]
    assert spec.task_address("worker", 4) == "w4:1"
    assert spec.job_tasks("worker") == [None, "w1:1", None, None, "w4:1"]
    assert [j.name for j in spec.as_cluster_def().job] == ["ps", "worker"]
    assert str(tf.train.ClusterSpec({"ps": ["ps0:1111"]})) == \
        "ClusterSpec({'ps': ['ps0:1111']})"


def test_a_spec_equals_its_copies():
    spec = tf.train.ClusterSpec({"ps": ["a:1"]})
    assert spec == tf.train.ClusterSpec(spec)
    assert spec == tf.train.ClusterSpec(spec.as_cluster_def())
    assert spec == {"ps": {0: "a:1"}}
    assert spec != tf.train.ClusterSpec({"ps": ["b:1"]})
    assert spec and not tf.train.ClusterSpec({})
    assert tf.train.ClusterSpec({"w": []})


@pytest.mark.parametrize("make,error,text", [
    (lambda: tf.train.ClusterSpec(["a"]), TypeError,
     "must be a dictionary mapping"),
    (lambda: tf.train.ClusterSpec({"ps": "a:1"}), TypeError,
     "The tasks for job 'ps' must be a list"),
    (lambda: tf.train.ClusterSpec({1: ["a:1"]}), TypeError,
     "Job name 1 must be bytes or unicode"),
    (lambda: tf.train.ClusterSpec({"ps": [1]}), TypeError,
     "Task address 1 must be bytes or unicode"),
    (lambda: tf.train.ClusterSpec({"ps": []}).num_tasks("w"), ValueError,
     "No such job in cluster: 'w'"),
    (lambda: tf.train.ClusterSpec({"ps": []}).task_address("ps", 0),
     ValueError, "No task with index 0 in job 'ps'"),
])
def test_a_wrong_cluster_is_an_error_that_says_why(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_job_and_task_may_be_left_out_when_there_is_one():
    made = server_lib._make_server_def({"local": ["localhost:0"]}, None, None,
                                       None, None)
    assert (made.job_name, made.task_index, made.protocol) == ("local", 0,
                                                               "grpc")
    two = {"ps": ["a:1", "b:1"], "worker": ["c:1"]}
    with pytest.raises(ValueError, match="explicit `job_name`"):
        server_lib._make_server_def(two, None, None, None, None)
    with pytest.raises(ValueError, match="explicit `task_index`"):
        server_lib._make_server_def(two, "ps", None, None, None)
    with pytest.raises(TypeError, match="Could not convert"):
        server_lib._make_server_def("x", None, None, None, None)


def test_a_server_def_is_overridden_by_arguments():
    base = server_lib._make_server_def({"ps": ["a:1", "b:1"]}, "ps", 0, None,
                                       tf.ConfigProto(log_device_placement=1))
    made = server_lib._make_server_def(
        base, None, 1, None, tf.ConfigProto(allow_soft_placement=True))
    assert made.task_index == 1 and base.task_index == 0
    assert made.default_session_config.log_device_placement
    assert made.default_session_config.allow_soft_placement


def test_variables_go_to_parameter_servers_in_turn():
    with tf.Graph().as_default():
        cluster = tf.train.ClusterSpec({"ps": ["a:1", "b:1"],
                                        "worker": ["c:1"]})
        with tf.device(tf.train.replica_device_setter(cluster=cluster)):
            v = tf.Variable(1.0)
            with tf.device("/cpu:0"):
                w = tf.Variable(2.0)
            with tf.device("/job:moon"):
                moon = tf.Variable(3.0)
            x = tf.Variable(4.0)
            a = v + w
        assert v.device == "/job:ps/task:0"
        assert w.device == "/job:ps/task:1/device:CPU:0"
        assert moon.device == "/job:moon"
        assert x.device == "/job:ps/task:0"
        assert a.device == "/job:worker"


def test_without_parameter_servers_there_is_no_device_function():
    assert tf.train.replica_device_setter() is None
    assert tf.train.replica_device_setter(
        cluster={"worker": ["a:1"]}) is None
    with pytest.raises(TypeError, match="ps_strategy must be callable"):
        tf.train.replica_device_setter(ps_tasks=1, ps_strategy=1)


def test_greedy_balancing_counts_bytes():
    with tf.Graph().as_default():
        strategy = device_setter.GreedyLoadBalancingStrategy(
            2, device_setter.byte_size_load_fn)
        with tf.device(tf.train.replica_device_setter(
                ps_tasks=2, ps_strategy=strategy)):
            big = tf.Variable(tf.zeros([100]))
            small = [tf.Variable(tf.zeros([10])) for _ in range(3)]
        assert big.device == "/job:ps/task:0"
        assert {v.device for v in small} == {"/job:ps/task:1"}
