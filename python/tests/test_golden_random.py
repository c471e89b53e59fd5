"""Random numbers are those of TensorFlow 1.15.5 for the same seeds.

tests/golden/random has what programs drew; rows of an array are runs of one
session, and a new session starts again at the first.
"""

import json
import os
import re

import numpy as np
import pytest

import sluice as tf

_GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                       "tests", "golden", "random")
_LOGITS = [[0., 1., 2., -1.], [3., 0., 0., -30.]]

with open(os.path.join(_GOLDEN, "index.json")) as index:
    CASES = json.load(index)["cases"]


def as_python(program):
    """The recorded text as an expression; it names arguments too freely."""
    program = re.sub(r"\bseed=", "", program)
    program = program.replace("([5], maxval=", "([5], 0, ")
    program = re.sub(r"\b(minval|maxval)=", "", program)
    program = program.replace("float64 same", "double_logits")
    program = program.replace("multinomial(same", "multinomial(logits")
    program = program.replace("[[0,1,2,-1],[3,0,0,-30]]", "logits")
    return program


def build(program, op_seed):
    def seeded(function):
        return lambda *args, **kw: function(*args, seed=op_seed, **kw)

    class nn:
        dropout = staticmethod(seeded(tf.nn.dropout))

    names = {n: seeded(getattr(tf, n)) for n in (
        "random_uniform", "random_shuffle", "random_crop", "multinomial",
        "random_gamma")}
    names.update({
        "random_poisson": lambda rates, *args, **kw: tf.random_poisson(
            tf.constant(rates), *args, seed=op_seed, **kw),
        "stateless_random_uniform": tf.random.stateless_uniform,
        "stateless_random_normal": tf.random.stateless_normal,
        "stateless_truncated_normal": tf.random.stateless_truncated_normal,
        "stateless_multinomial": tf.random.stateless_multinomial,
        "nn": nn, "ones": tf.ones, "range": tf.range, "reshape": tf.reshape,
        "less": lambda x, y: tf.cast(tf.less(x, y), tf.int32)})
    for dtype in ("float16", "float32", "float64", "int32", "int64"):
        names[dtype] = getattr(tf, dtype)
    program = as_python(program)
    # Constants count when a graph seed alone is given.
    if "double_logits" in program:
        names["double_logits"] = np.array(_LOGITS)
    elif "logits" in program:
        names["logits"] = np.array(_LOGITS, np.float32)
    return eval(program, names)


@pytest.mark.parametrize("case", CASES, ids=[c["key"] for c in CASES])
def test_the_numbers_of(case):
    recorded = np.load(os.path.join(_GOLDEN, case["file"]))[case["key"]]
    with tf.Graph().as_default() as graph:
        if case["graph_seed"] is not None:
            tf.set_random_seed(case["graph_seed"])
        drawn = build(case["program"], case["op_seed"])
        for op_type, _, seed, seed2 in case.get("op_attrs", ()):
            op, = [o for o in graph.get_operations() if o.type == op_type]
            assert (op.get_attr("seed"), op.get_attr("seed2")) == (seed, seed2)
        for _ in range(2):
            with tf.Session() as session:
                rows = [session.run(drawn) for _ in range(case["runs"])]
                got = np.stack(rows)
                assert got.dtype == recorded.dtype
                if "normal" in case["program"] or "gamma" in case["program"]:
                    # Logarithms and the like differ in the last bit.
                    tolerance = 2e-6 if got.dtype == np.float32 else 1e-12
                    np.testing.assert_allclose(got, recorded, rtol=tolerance,
                                               atol=tolerance)
                else:
                    np.testing.assert_array_equal(got, recorded)
