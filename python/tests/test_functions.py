"""Functions in graphs: Defun, calls, gradients, and graphs of TensorFlow.

tests/golden/functions has graphs that TensorFlow 1.15.5 and 2.15.1 built and
what they computed (record_functions.py), and what the golden program
functions_pyfunc gives for three values of x.
"""

import json
import os

import numpy as np
import pytest
from google.protobuf import text_format

import sluice as tf
from sluice.framework import function

_GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                       "tests", "golden")


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


@pytest.fixture(params=["in process", "server"])
def target(request):
    if request.param == "in process":
        return ""
    return tf.train.Server.create_local_server().target


def run(fetches, feeds=None, target=""):
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feeds)


# ---- Graphs of TensorFlow ----

def recorded(name):
    with open(os.path.join(_GOLDEN, "functions", name + ".json")) as f:
        return json.load(f)


@pytest.mark.parametrize("name", ["defuns", "calls_of_2x"])
def test_a_graph_of_tensorflow_computes_what_it_did_there(name, target):
    record = recorded(name)
    graph_def = text_format.Parse(record["graph"], tf.GraphDef())
    tf.import_graph_def(graph_def, name="")
    with tf.Session(target) as session:
        session.run(record["init"])
        names = [n for n, _ in record["fetches"]]
        values = session.run(names, record["feeds"])
    for value, (fetch, expected) in zip(values, record["fetches"]):
        np.testing.assert_allclose(value, expected, rtol=2e-6, err_msg=fetch)


def test_a_graph_goes_out_with_its_functions_as_it_came_in():
    graph_def = text_format.Parse(recorded("defuns")["graph"], tf.GraphDef())
    tf.import_graph_def(graph_def, name="")
    again = tf.get_default_graph().as_graph_def()
    assert list(again.library.function) == list(graph_def.library.function)
    assert list(again.library.gradient) == list(graph_def.library.gradient)
    assert again.versions.min_consumer == 12


def plain(value):
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, bytes):
        return value.decode()
    return getattr(value, "item", lambda: value)()


@pytest.mark.parametrize("case, x", [
    ("large", [1., 2.]), ("small", [.25, .5]), ("negative", [-1., .5])])
def test_the_golden_program_computes_what_it_does_in_tensorflow(case, x):
    names = {"tf": tf, "function": function}
    with open(os.path.join(_GOLDEN, "graphs", "functions_pyfunc.py")) as f:
        program = "".join(line for line in f if "import" not in line)
    exec(program, names)
    first, second = tf.train.Example(), tf.train.Example()
    first.features.feature["f"].float_list.value.extend([1.5, 2.5])
    first.features.feature["v"].bytes_list.value.extend([b"a", b"bc"])
    second.features.feature["f"].float_list.value.extend([3., 4.])
    second.features.feature["d"].int64_list.value.append(7)
    feeds = {names["x"]: x, "ser:0": [first.SerializeToString(),
                                      second.SerializeToString()]}
    got = {}
    with tf.Session() as session:
        for key in ("y", "g", "pf", "a", "pr", "ex", "one", "sm", "cs"):
            try:
                got[key] = plain(session.run(names[key], feeds))
            except tf.errors.OpError as e:
                got[key] = "%s: %s" % (type(e).__name__,
                                       e.message.split("\n")[0])
    assert got == recorded("functions_pyfunc_values")[case]


# ---- Defun ----

def test_calls_and_their_gradients(target):
    @function.Defun(tf.float32, tf.float32)
    def f(a, b):
        return a * b, tf.sin(a)

    x = tf.placeholder(tf.float32, [])
    y = tf.placeholder(tf.float32, [])
    product, sine = f(x, y)
    grads = tf.gradients([product, sine], [x, y])
    values = run([product, sine] + grads, {x: 2., y: 5.}, target)
    np.testing.assert_allclose(
        values, [10, np.sin(2.), 5 + np.cos(2.), 2], rtol=1e-6)


def test_a_result_that_no_gradient_comes_for_counts_as_zeros():
    @function.Defun(tf.float32)
    def f(a):
        return a * 2., a * 3., tf.cast(a, tf.int32)

    x = tf.constant([1., 2.])
    assert run(tf.gradients(f(x)[0], x)[0]).tolist() == [2, 2]


def test_functions_call_functions():
    @function.Defun(tf.float32, func_name="Inner")
    def inner(a):
        return tf.square(a)

    @function.Defun(tf.float32, func_name="Outer")
    def outer(a):
        return inner(a) + inner(a + 1.)

    x = tf.constant(3.)
    y = outer(x)
    library = tf.get_default_graph().as_graph_def().library
    assert [f.signature.name for f in library.function] == ["Outer", "Inner"]
    assert run([y, tf.gradients(y, x)[0]]) == [25, 14]


def test_tensors_and_variables_from_outside():
    scale = tf.constant(10.)
    with tf.variable_scope("model"):
        @function.Defun(tf.float32)
        def f(a):
            v = tf.get_variable("v", [], initializer=tf.ones_initializer())
            return a * scale + v

        y = f(tf.constant(2.))
    assert [v.name for v in tf.global_variables()] == ["model/v:0"]
    assert len(f.captured_inputs) == 2
    assert run([y] + tf.gradients(y, [scale, tf.global_variables()[0]])) == [
        21, 2, 1]


def test_values_can_be_captured_instead():
    scale = tf.constant(10.)

    @function.Defun(tf.float32, capture_by_value=True)
    def f(a):
        return a * scale

    y = f(tf.constant(2.))
    assert len(y.op.inputs) == 1
    assert run(y) == 20


def test_gradients_that_the_program_defines():
    @function.Defun(tf.float32, tf.float32)
    def gradient(a, dy):
        return dy * 100.

    @function.Defun(tf.float32, grad_func=gradient)
    def f(a):
        return a * a

    @function.Defun(tf.float32,
                    python_grad_func=lambda op, dy: dy * 7. * op.inputs[0])
    def g(a):
        return a * a

    x = tf.constant(3.)
    assert run([f(x), tf.gradients(f(x), x)[0]]) == [9, 100]
    assert run([g(x), tf.gradients(g(x), x)[0]]) == [9, 21]


def test_types_that_the_call_decides():
    @function.Defun(func_name="Double")
    def double(a):
        return a + a

    results = double(tf.constant(2.)), double(tf.constant([3]))
    assert [r.op.type for r in results] == ["Double_float32", "Double_int32"]
    assert run(results[0]) == 4 and run(results[1]).tolist() == [6]


def test_control_flow_and_many_calls_of_it():
    @function.Defun(tf.int32, shape_func=lambda op: [[]])
    def power(n):
        return tf.while_loop(lambda i, p: i < n,
                             lambda i, p: (i + 1, p * 2), [0, 1])[1]

    @function.Defun(tf.int32)
    def sign(n):
        return tf.cond(n > 0, lambda: tf.constant(1), lambda: tf.constant(-1))

    assert run([power(3), power(5), sign(4), sign(-4)]) == [8, 32, 1, -1]
    inside = tf.while_loop(lambda i, s: i < 4,
                           lambda i, s: (i + 1, s + power(i)), [0, 0])
    assert run(inside[1]) == 1 + 2 + 4 + 8
    taken = tf.cond(tf.constant(True), lambda: power(3), lambda: power(4))
    assert run(taken) == 8


def test_side_effects_happen_once_and_in_order():
    v = tf.Variable(1., use_resource=True)

    @function.Defun(tf.float32, capture_resource_var_by_value=False)
    def add(a):
        return v.assign_add(a)

    call = add(2.)
    with tf.control_dependencies([call]):
        after = v.read_value()
    assert run([call, after]) == [3, 3]


def test_what_a_call_waits_for_and_who_waits_for_it():
    ran = []

    def note(text):
        return tf.py_func(lambda: ran.append(text), [], [])

    @function.Defun()
    def effect():
        note("in")
        return []

    with tf.control_dependencies([note("before")]):
        call = effect()
    assert isinstance(call, tf.Operation)
    with tf.control_dependencies([call]):
        last = note("after")
    with tf.Session() as session:
        session.run(last)
    assert ran == ["before", "in", "after"]


def test_nothing_of_a_call_runs_in_a_branch_that_is_not_taken():
    ran = []

    @function.Defun()
    def effect():
        return tf.py_func(lambda: ran.append(1) or 5., [], tf.float64)

    pick = tf.placeholder(tf.bool, [])
    y = tf.cond(pick, effect, lambda: tf.constant(1., tf.float64))
    with tf.Session() as session:
        assert session.run(y, {pick: False}) == 1 and not ran
        assert session.run(y, {pick: True}) == 5 and ran == [1]


def test_random_numbers_of_two_calls_differ():
    @function.Defun()
    def draw():
        return tf.random_uniform([4])

    a, b = draw(), draw()
    first, second = run([a, b])
    assert (first != second).any()


def test_shapes_come_from_a_shape_function_alone():
    @function.Defun(tf.float32)
    def f(a):
        return a + 1.

    @function.Defun(tf.float32, shape_func=lambda op: [op.inputs[0].shape])
    def g(a):
        return a + 1.

    x = tf.zeros([2, 3])
    assert f(x).shape.ndims is None
    assert g(x).shape.as_list() == [2, 3]


def test_a_declared_function_may_be_defined_later():
    later = function.Declare("Later", [("a", tf.float32)],
                             [("b", tf.float32)])

    @function.Defun(tf.float32, func_name="Later")
    def f(a):
        return a + 1.

    f.add_to_graph(tf.get_default_graph())
    assert run(later(tf.constant(1.))) == 2


# ---- Mistakes ----

def test_wrong_calls_are_refused():
    @function.Defun(tf.float32, func_name="One")
    def one(a):
        return a

    with pytest.raises(ValueError, match="Expected number of arguments: 1, "
                                         "received: 2"):
        one(1., 2.)
    with pytest.raises(ValueError, match="of type int32, but expects float32"):
        one(1)
    with pytest.raises(ValueError, match="Unknown keyword arguments"):
        one(1., speed=3)


def test_wrong_definitions_are_refused():
    with pytest.raises(ValueError, match="argument defaults or keywords"):
        function.Defun(tf.float32)(lambda a, b=1: a)
    with pytest.raises(ValueError, match="fewer arguments"):
        function.Defun(tf.float32, tf.float32)(lambda a: a)
    with pytest.raises(ValueError, match="can not return None"):
        function.Defun(tf.float32, func_name="F")(lambda a: (a, None))(1.)
    function.Defun(tf.float32, func_name="Same")(lambda a: a + 1.)(1.)
    with pytest.raises(ValueError, match="Cannot add function 'Same' because "
                                         "a different function"):
        function.Defun(tf.float32, func_name="Same")(lambda a: a + 2.)(1.)
    with pytest.raises(ValueError, match="an op with the same name"):
        function.Defun(tf.float32, func_name="MatMul")(lambda a: a)(1.)


LIBRARY = """
  library { function {
    signature { name: "F"
      input_arg { name: "a" type: DT_FLOAT }
      output_arg { name: "b" type: DT_FLOAT } }
    node_def { name: "n" op: "%s" input: "%s"
      attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "b" value: "%s" } } }
  node { name: "x" op: "Placeholder"
    attr { key: "dtype" value { type: DT_FLOAT } } }
  node { name: "y" op: "%s" input: "x" %s }
  versions { producer: 134 min_consumer: 12 }"""
CALL = """attr { key: "f" value { func { name: "%s" } } }
    attr { key: "Tin" value { list { type: DT_FLOAT } } }
    attr { key: "Tout" value { list { type: %s } } }"""


@pytest.mark.parametrize("parts, error, message", [
    (("F", "a", "n:b:0", "F", ""), tf.errors.InvalidArgumentError,
     "Function F calls itself (F -> F)"),
    (("Neg", "a", "n:y:0", "PartitionedCall", CALL % ("G", "DT_FLOAT")),
     tf.errors.NotFoundError, "Function G is not defined."),
    (("Neg", "a", "n:y:0", "PartitionedCall", CALL % ("F", "DT_INT32")),
     tf.errors.InvalidArgumentError,
     "Function F returns (float), but (int32) is wanted"),
    (("Neg", "a", "n:y:0", "PartitionedCall",
      (CALL % ("F", "DT_FLOAT")).replace(
          "{ type: DT_FLOAT } } }\n",
          "{ type: DT_FLOAT type: DT_FLOAT } } }\n", 1) + ' input: "x"'),
     tf.errors.InvalidArgumentError,
     "Function F takes (float), but is given (float, float)"),
    (("Neg", "b", "n:y:0", "F", ""), tf.errors.InvalidArgumentError,
     "there is no node or argument 'b'"),
    (("Neg", "a", "n:z:0", "F", ""), tf.errors.InvalidArgumentError,
     "'n:z:0' names no output of 'n'"),
    (("Neg", "a", "n:y:7", "F", ""), tf.errors.InvalidArgumentError,
     "'n:y:7' names no output of 'n'"),
    (("Negg", "a", "n:y:0", "F", ""), tf.errors.NotFoundError,
     "Op type not registered 'Negg'"),
    (("_Arg", "a", "n:output:0", "F", ""), tf.errors.InvalidArgumentError,
     "node 'n' is of type _Arg, which only the runtime makes"),
    (("Neg", "n:y:0", "n:y:0", "F", ""), tf.errors.InvalidArgumentError,
     "cycle"),
])
def test_bad_functions_are_errors_of_the_step(parts, error, message, target):
    graph_def = text_format.Parse(LIBRARY % parts, tf.GraphDef())
    for node in graph_def.library.function[0].node_def:
        if node.op == "F":
            del node.attr["T"]
    tf.import_graph_def(graph_def, name="")
    with tf.Session(target) as session, pytest.raises(error) as raised:
        session.run("y:0", {"x:0": 1.})
    assert message in raised.value.message
    assert "y" in raised.value.message


def test_a_call_with_too_few_arguments_cannot_be_imported():
    graph_def = text_format.Parse(
        LIBRARY % ("Neg", "a", "n:y:0", "F", ""), tf.GraphDef())
    del graph_def.node[1].input[:]
    with pytest.raises(ValueError, match="y"):
        tf.import_graph_def(graph_def, name="")


def test_functions_that_multiply_without_end_are_refused():
    graph_def = tf.GraphDef()
    for i in range(40):
        f = graph_def.library.function.add()
        text_format.Parse("""
          signature { name: "F%d" input_arg { name: "a" type: DT_FLOAT }
            output_arg { name: "b" type: DT_FLOAT } }
          node_def { name: "m" op: "%s" input: "a" }
          node_def { name: "n" op: "%s" input: "m:%s:0" }
          ret { key: "b" value: "n:%s:0" }""" % (
              (i,) + (("F%d" % (i - 1),) * 2 + ("b",) * 2 if i else
                      ("Neg", "Neg", "y", "y"))), f)
        if i == 0:
            for node in f.node_def:
                node.attr["T"].type = tf.float32.as_datatype_enum
    graph_def.node.add(name="x", op="Placeholder").attr["dtype"].type = 1
    graph_def.node.add(name="y", op="F39", input=["x"])
    tf.import_graph_def(graph_def, name="")
    with tf.Session() as session, \
            pytest.raises(tf.errors.ResourceExhaustedError,
                          match="make more than 262144 nodes"):
        session.run("y:0", {"x:0": 1.})


def test_calls_that_are_too_deep_are_refused():
    graph_def = tf.GraphDef()
    for i in range(2000):
        text_format.Parse("""
          signature { name: "F%d" input_arg { name: "a" type: DT_FLOAT }
            output_arg { name: "b" type: DT_FLOAT } }
          node_def { name: "m" op: "F%d" input: "a" }
          ret { key: "b" value: "m:b:0" }""" % (i, i + 1),
                          graph_def.library.function.add())
    graph_def.node.add(name="x", op="Placeholder").attr["dtype"].type = 1
    graph_def.node.add(name="y", op="F0", input=["x"])
    tf.import_graph_def(graph_def, name="")
    with tf.Session() as session, \
            pytest.raises(tf.errors.ResourceExhaustedError,
                          match="More than 200 functions call one another"):
        session.run("y:0", {"x:0": 1.})


def test_the_gradient_of_control_flow_in_a_function():
    @function.Defun(tf.float32)
    def branches(a):
        return tf.cond(a > 0., lambda: a * 2., lambda: a * 3.)

    @function.Defun(tf.float32)
    def loop(a):
        return tf.while_loop(lambda i, s: i < 3,
                             lambda i, s: (i + 1, s * a), [0, a])[1]

    x = tf.placeholder(tf.float32, [])
    grad, = tf.gradients(branches(x), x)
    with tf.Session() as session:
        assert session.run(grad, {x: 1.}) == 2
        assert session.run(grad, {x: -1.}) == 3
        # TensorFlow has none either: a function says too little of its loops.
        with pytest.raises(tf.errors.InvalidArgumentError,
                           match="a while loop whose context is not known"):
            session.run(tf.gradients(loop(x), x)[0], {x: 1.})


def test_what_has_no_gradient_says_so():
    @function.Defun(tf.float32, func_name="Hard")
    def hard(a):
        return tf.raw_ops.RandomGammaGrad(alpha=a, sample=a)

    x = tf.constant(1.)
    grad = tf.gradients(hard(x), x)[0]
    with tf.Session() as session, pytest.raises(tf.errors.NotFoundError) as e:
        session.run(grad)
    assert "No gradient defined for operation 'RandomGammaGrad'" in \
        e.value.message
