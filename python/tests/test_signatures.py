"""The symbols of the training stack are there and take TensorFlow's arguments.

tests/golden/training_signatures.txt has them as TensorFlow 1.15.5 does. A call
that is right there must be right here and mean the same: the same names in the
same order with the same defaults. More arguments may follow, and what must be
given there may have a default here (for old spellings).
"""

import importlib.util
import inspect
import os
import sys

import pytest

import sluice as tf

_GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                       "tests", "golden")
_ALIAS = os.path.join(os.path.dirname(os.path.dirname(
    os.path.abspath(tf.__file__))), "alias")


def _table():
    with open(os.path.join(_GOLDEN, "training_signatures.txt")) as f:
        return dict(line.rstrip("\n").split("\t") for line in f)


TABLE = _table()

# Not there yet, by what they wait for.
_WAIT = {
    "linear algebra": """
        batch_cholesky batch_cholesky_solve batch_matrix_band_part
        batch_matrix_determinant batch_matrix_inverse batch_matrix_solve
        batch_matrix_solve_ls batch_matrix_triangular_solve
        batch_self_adjoint_eig batch_self_adjoint_eigvals batch_svd cholesky
        cholesky_solve matrix_band_part matrix_determinant matrix_inverse
        matrix_solve matrix_solve_ls matrix_triangular_solve
        self_adjoint_eig self_adjoint_eigvals svd""",
    "Fourier transforms": """
        batch_fft batch_fft2d batch_fft3d batch_ifft batch_ifft2d batch_ifft3d
        fft fft2d fft3d ifft ifft2d ifft3d""",
    "arithmetic of sparse tensors": """
        sparse_add sparse_concat sparse_maximum sparse_minimum
        sparse_reduce_max sparse_reduce_max_sparse sparse_reduce_sum
        sparse_reduce_sum_sparse sparse_reset_shape sparse_reshape
        sparse_slice sparse_softmax sparse_split""",
    "sampled candidates": "nn.nce_loss nn.sampled_softmax_loss",
    "the sequences of RNN cells": "reverse_sequence",
    "images": "image.per_image_whitening",
    "saved models": """
        estimator.Estimator.experimental_export_all_saved_models
        estimator.Estimator.export_saved_model
        estimator.Estimator.export_savedmodel""",
    "the message HParamDef": """
        contrib.training.HParams.from_proto
        contrib.training.HParams.to_proto""",
}
MISSING = {"tf." + name for names in _WAIT.values() for name in names.split()}

# There, to name what to use in their place.
REFUSED = {
    "tf.contrib.training.resample_at_rate": 2,
    "tf.contrib.training.weighted_resample": 3,
}


@pytest.fixture(scope="module")
def recorder():
    """The script that recorded the table, on Sluice."""
    before = {name for name in sys.modules if name.startswith("tensorflow")}
    sys.path.insert(0, _ALIAS)
    spec = importlib.util.spec_from_file_location(
        "record_training_signatures",
        os.path.join(_GOLDEN, "record_training_signatures.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(_ALIAS)
    for name in [n for n in sys.modules if n.startswith("tensorflow")]:
        if name not in before:
            del sys.modules[name]


def find(recorder, symbol):
    """(value, static): what it is, and how its class holds it."""
    owner, _, name = symbol.rpartition(".")
    value = recorder.find(symbol)
    holder = recorder.find(owner)
    if inspect.isclass(holder):
        return value, inspect.getattr_static(holder, name)
    return value, value


def parameters(text):
    """[(name, default or None)] of "(a, b=1, *args)"."""
    parsed, depth, word, quote = [], 0, "", None
    for c in text[1:-1] + ",":
        if quote:
            quote = None if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif c == "," and not depth:
            if word.strip():
                name, eq, default = word.strip().partition("=")
                parsed.append((name, default if eq else None))
            word = ""
            continue
        word += c
    return parsed


def accepts(ours, theirs):
    """Why a call right for `theirs` may be wrong for `ours`, or None."""
    ours, theirs = parameters(ours), parameters(theirs)
    rest = {name for name, _ in ours if name.startswith("*")}
    plain = [p for p in ours if not p[0].startswith("*")]
    position = 0
    for name, default in theirs:
        if name.startswith("*"):
            if name.startswith("**") and not any(
                    r.startswith("**") for r in rest):
                return "no " + name
            if not name.startswith("**") and name != "*" and not any(
                    r.startswith("*") and not r.startswith("**") and r != "*"
                    for r in rest):
                return "no " + name
            continue
        if position >= len(plain):
            return None if {"*args", "**kwargs"} <= rest else "no " + name
        if plain[position][0] != name:
            return "%s where %s should be" % (plain[position][0], name)
        mine = plain[position][1]
        if default is not None and mine != default and default != "...":
            return "%s=%s, not %s" % (name, mine, default)
        if default is not None and mine is None:
            return "%s has no default" % name
        position += 1
    for name, default in plain[position:]:
        if default is None:
            return "%s must be given" % name
    return None


def difference(recorder, symbol, expected):
    """What is wrong with a symbol, or None."""
    try:
        value, static = find(recorder, symbol)
    except AttributeError as e:
        return "missing: %s" % e
    if expected in ("-", "module"):
        return None
    if expected == "property":
        # A field that __init__ sets is no property, but does as well.
        return None
    if expected.startswith("= "):
        ours = "= " + recorder.plain(value)
        return None if ours == expected else ours
    if isinstance(static, (staticmethod, classmethod)):
        ours = recorder.arguments(static.__func__,
                                  isinstance(static, classmethod))
    elif inspect.isfunction(static) and static is not value:
        ours = recorder.arguments(static, bound=True)
    elif inspect.isfunction(static) and inspect.isclass(
            recorder.find(symbol.rpartition(".")[0])):
        ours = recorder.arguments(static, bound=True)
    else:
        ours = recorder.describe(value)
    return accepts(ours, expected)


@pytest.mark.parametrize("symbol", [
    s for s in sorted(TABLE) if not TABLE[s].startswith("#")])
def test_the_symbol(recorder, symbol):
    wrong = difference(recorder, symbol, TABLE[symbol])
    if symbol in MISSING:
        assert wrong and wrong.startswith("missing"), "is there now"
    else:
        assert wrong is None, (symbol, TABLE[symbol])


@pytest.mark.parametrize("symbol, arguments", sorted(REFUSED.items()))
def test_what_is_refused_names_a_replacement(recorder, symbol, arguments):
    with pytest.raises(NotImplementedError, match="use tf[.]"):
        recorder.find(symbol)(*[None] * arguments)


def test_nothing_else_is_missing():
    assert MISSING <= set(TABLE)
    assert set(REFUSED) <= set(TABLE)


@pytest.mark.parametrize("ours, theirs, right", [
    ("(a, b=1)", "(a, b=1)", True), ("(a, b=2)", "(a, b=1)", False),
    ("(a, b=1, c=None)", "(a, b=1)", True), ("(a, b=1, c)", "(a, b=1)", False),
    ("(b=1, a=2)", "(a=2, b=1)", False), ("(a=None)", "(a)", True),
    ("(a)", "(a=1)", False), ("(a)", "(a, **kwargs)", False),
    ("(a, *args, **kwargs)", "(a, *args, **kwargs)", True),
    ("(a='x, y', b=(1, 2))", "(a='x, y', b=(1, 2))", True)])
def test_when_arguments_are_the_same(ours, theirs, right):
    assert (accepts(ours, theirs) is None) == right
