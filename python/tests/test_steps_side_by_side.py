"""Steps that meet in variables and queues, each of which goes its own way."""

import threading

import pytest
import sluice as tf

TWO_CPUS = tf.ConfigProto(device_count={"CPU": 2})


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


def test_variables_outlive_the_steps_that_keep_more():
    """Stacks, arrays and temporary variables go with their step, and no more."""
    w = tf.Variable(0.5)
    queue = tf.FIFOQueue(3, tf.float32, [[]])
    put = queue.enqueue([w])
    _, y = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * w),
                         [tf.constant(0), tf.constant(1.0)])
    train = tf.train.GradientDescentOptimizer(0.1).minimize(y)
    array = tf.TensorArray(tf.float32, 1).write(0, w).read(0)
    total = tf.accumulate_n([w, w])
    with tf.Session() as session, tf.Session() as other:
        session.run(w.initializer)
        session.run(put)
        values = []
        for _ in range(3):
            values.append(session.run([train, y])[1])
            assert session.run(array) == session.run(total) / 2
        assert values[0] > values[1] > values[2] > 0
        assert other.run(tf.constant(1)) == 1
        assert session.run(queue.dequeue()) == 0.5


@pytest.mark.parametrize("reader", ["/cpu:0", "/cpu:1"])
def test_a_variable_is_read_after_what_its_reader_waits_for(reader):
    """Also if the reader is on another device than the variable."""
    with tf.device("/cpu:0"):
        w = tf.Variable(1.0)
    with tf.device("/cpu:1"):
        step = tf.constant(1.0) + tf.placeholder_with_default(1.0, [])
    with tf.device("/cpu:0"):
        update = w.assign_add(step)
    with tf.device(reader), tf.control_dependencies([update]):
        read = w.read_value()
    # Only through other nodes of the reader's device.
    with tf.device("/cpu:1"), tf.control_dependencies([update]):
        later = tf.constant(2.0) * step
    with tf.device(reader), tf.control_dependencies([later]):
        read_later = w.read_value()
    with tf.Session(config=TWO_CPUS) as session:
        session.run(w.initializer)
        for value in (3.0, 5.0, 7.0):
            assert session.run([update, read, read_later]) == [value] * 3


def test_many_steps_may_wake_each_other():
    """One by one, each by what the one before has put into a queue."""
    queue = tf.FIFOQueue(10, tf.int32, [[]])
    chain = tf.group(*[queue.enqueue(queue.dequeue()) for _ in range(20000)])
    start = queue.enqueue(0)
    with tf.Session() as session:
        ended = threading.Thread(target=lambda: session.run(chain))
        ended.start()
        session.run(start)
        ended.join()
        assert session.run(queue.size()) == 1


def test_who_puts_into_a_queue_does_not_wait_for_who_takes_it():
    """Even if the taker goes on only after the next element."""
    first = tf.FIFOQueue(1, tf.int32, [[]])
    second = tf.FIFOQueue(1, tf.int32, [[]])
    taken = first.dequeue()
    with tf.control_dependencies([taken]):
        rounds = tf.while_loop(lambda i: tf.equal(second.size(), 0),
                               lambda i: i + 1, [tf.constant(0) + taken],
                               parallel_iterations=1)
    with tf.Session() as session:
        for _ in range(3):
            taker = threading.Thread(target=lambda: session.run(rounds))
            taker.start()
            session.run(first.enqueue(1))
            session.run(second.enqueue(1))
            taker.join()
            session.run(second.dequeue())


def test_a_loop_over_devices_may_have_many_iterations_at_once():
    """They begin together when a late value comes."""
    queue = tf.FIFOQueue(1, tf.int32, [[]])

    def body(i, x):
        with tf.device("/cpu:1"):
            there = x + 1
        with tf.device("/cpu:0"):
            return i + 1, there + 0

    with tf.device("/cpu:0"):
        _, last = tf.while_loop(lambda i, _: i < 10000, body,
                                [tf.constant(0), queue.dequeue()],
                                parallel_iterations=10000, back_prop=False)
    with tf.Session(config=TWO_CPUS) as session:
        result = []
        loop = threading.Thread(
            target=lambda: result.append(session.run(last)))
        loop.start()
        session.run(queue.enqueue(5))
        loop.join()
        assert result == [10005]


@pytest.mark.parametrize("other", ["/cpu:0", "/cpu:1"])
def test_what_is_dead_around_a_loop_is_dead_in_each_iteration(other):
    taken = tf.placeholder(tf.bool, [])
    not_taken, _ = tf.raw_ops.Switch(data=5.0, pred=taken)

    def body(i, total):
        with tf.device("/cpu:0"):
            twice = not_taken * 2.0
        with tf.device(other):
            there = twice + 1.0
        with tf.device("/cpu:0"):
            # Alive through its second input where the first one is dead.
            value, _ = tf.raw_ops.Merge(inputs=[there, tf.to_float(i)])
        return i + 1, total + value

    with tf.device("/cpu:0"):
        _, total = tf.while_loop(lambda i, _: i < 4, body,
                                 [tf.constant(0), tf.constant(0.0)],
                                 back_prop=False)
    options = tf.RunOptions(timeout_in_ms=60000)
    with tf.Session(config=TWO_CPUS) as session:
        assert session.run(total, {taken: True}, options=options) == 6.0


@pytest.mark.parametrize("reader", ["/cpu:0", "/cpu:1"])
def test_variables_are_read_after_the_update_that_comes_along(reader):
    with tf.device("/cpu:0"):
        v = tf.Variable(1.0)
    with tf.device("/cpu:1"):
        x = tf.Variable(4.0) + 1.0
    with tf.device("/cpu:0"):
        assigned = tf.assign(v, x)
        added = tf.assign_add(v, x)
    with tf.device(reader):
        total = v._ref() + assigned
        sums = tf.add_n([added, v._ref(), v._ref()])
    with tf.Session(config=TWO_CPUS) as session:
        for _ in range(2):
            session.run(tf.global_variables_initializer())
            assert session.run(total) == 10.0
            session.run(v.initializer)
            assert session.run(sums) == 18.0


@pytest.mark.parametrize("spinner", ["/cpu:0", "/cpu:1"])
def test_a_loop_may_wait_for_what_another_device_does(spinner):
    """In the same step: both go on, whichever is started first."""
    with tf.device("/cpu:0"):
        w = tf.Variable(0.0)
    with tf.device(spinner):
        _, seen = tf.while_loop(
            lambda i, _: tf.less(w._ref(), 1.0), lambda i, y: (i + 1, y),
            [tf.constant(0), tf.constant(2.0)], parallel_iterations=1,
            back_prop=False)
    with tf.device("/cpu:1" if spinner == "/cpu:0" else "/cpu:0"):
        late = tf.reduce_sum(tf.matmul(tf.ones([300, 300]),
                                       tf.random_uniform([300, 300])))
    with tf.device("/cpu:0"):
        update = tf.assign(w, 1.0 + 0.0 * late)
    options = tf.RunOptions(timeout_in_ms=60000)
    with tf.Session(config=TWO_CPUS) as session:
        for _ in range(3):
            session.run(w.initializer)
            assert session.run([seen, update], options=options) == [2.0, 1.0]


def test_a_branch_in_a_loop_may_return_what_a_loop_of_its_own_made():
    def body(i, total):
        def inner():
            return tf.while_loop(lambda j, _: j < 2,
                                 lambda j, t: (j + 1, t + 3.0),
                                 [tf.constant(0), total])[1]
        return i + 1, tf.cond(i < 1, inner, lambda: total - 1.0)

    _, total = tf.while_loop(lambda i, _: i < 3, body,
                             [tf.constant(0), tf.constant(0.0)])
    with tf.Session() as session:
        assert session.run(total) == 4.0
