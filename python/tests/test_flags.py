"""Flags: what every form on the command line means."""

import subprocess
import sys

import pytest

from sluice.platform import flags


@pytest.fixture
def values():
    v = flags.FlagValues()
    flags.DEFINE_string("name", "x", "A name", flag_values=v)
    flags.DEFINE_integer("n", 1, "A number", flag_values=v)
    flags.DEFINE_float("rate", 0.5, "A rate", flag_values=v)
    flags.DEFINE_boolean("fast", False, "Fast", flag_values=v)
    flags.DEFINE_list("hosts", "", "Hosts", flag_values=v)
    flags.DEFINE_enum("kind", "a", ["a", "b"], "A kind", flag_values=v)
    flags.DEFINE_multi_string("tag", [], "Tags", flag_values=v)
    return v


@pytest.mark.parametrize("words,flag,value", [
    (["--name=v"], "name", "v"),
    (["--name", "v"], "name", "v"),
    (["-name=v"], "name", "v"),
    (["-name", "v"], "name", "v"),
    (["--name="], "name", ""),
    (["--name=a=b"], "name", "a=b"),
    (["-n=3"], "n", 3),
    (["--n", "-3"], "n", -3),
    (["--n=0x10"], "n", 16),
    (["--n=0o10"], "n", 8),
    (["--n=010"], "n", 10),
    (["--rate=1e-3"], "rate", 1e-3),
    (["--fast"], "fast", True),
    (["--nofast"], "fast", False),
    (["--fast=TRUE"], "fast", True),
    (["--fast=t"], "fast", True),
    (["--fast=1"], "fast", True),
    (["--fast=F"], "fast", False),
    (["--fast=0"], "fast", False),
    (["--fast", "false"], "fast", True),
    (["--hosts=a:1, b:2"], "hosts", ["a:1", "b:2"]),
    (["--kind=b"], "kind", "b"),
    (["--tag=a", "--tag=b"], "tag", ["a", "b"]),
    (["word", "--n=2"], "n", 2),
    (["--", "--n=2"], "n", 1),
])
def test_a_flag_has_the_value_its_form_says(values, words, flag, value):
    values(["prog"] + words)
    assert getattr(values, flag) == value
    assert type(getattr(values, flag)) is type(value)


@pytest.mark.parametrize("words,rest", [
    (["--unknown", "v", "--n=2"], ["--unknown", "v"]),
    (["--unknown=v"], ["--unknown=v"]),
    (["a", "--n=2", "b"], ["a", "b"]),
    (["--fast", "false"], ["false"]),
    (["--", "--n=2"], ["--", "--n=2"]),
    (["--undefok=q", "--q=1", "--z=1"], ["--z=1"]),
])
def test_main_gets_the_words_that_are_no_flags(values, words, rest):
    assert values(["prog"] + words, known_only=True) == ["prog"] + rest


@pytest.mark.parametrize("words", [
    ["--n=x"], ["--n=1.5"], ["--rate=x"], ["--fast=maybe"], ["--nofast=1"],
    ["--kind=c"], ["--name"],
])
def test_a_bad_value_is_an_error(values, words):
    with pytest.raises(flags.Error):
        values(["prog"] + words, known_only=True)


def test_an_unknown_flag_is_an_error_when_parsing_strictly(values):
    with pytest.raises(flags.UnrecognizedFlagError):
        values(["prog", "--unknown=1"])


def test_flags_come_from_a_file(values, tmp_path):
    path = tmp_path / "flags"
    path.write_text("# a comment\n--n=7\n\n--name=file\n")
    values(["prog", "--flagfile=%s" % path, "--name=later"])
    assert (values.n, values.name) == (7, "later")


def test_reading_a_flag_parses_the_command_line(values, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["prog", "-n=5", "--else=1"])
    assert values.n == 5


def test_a_flag_defined_after_the_first_read_has_its_value(
        values, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["prog", "--late=5"])
    assert values.n == 1
    flags.DEFINE_integer("late", 0, "Late", flag_values=values)
    assert values.late == 5


@pytest.mark.parametrize("module", ["other", "__main__", __name__])
def test_a_flag_defined_twice_is_an_error_that_says_where(values, module):
    with pytest.raises(flags.DuplicateFlagError) as error:
        flags.DEFINE(flags.ArgumentParser(), "name", "y", "Again",
                     flag_values=values, module_name=module)
    where = sys.argv[0] if module == "__main__" else module
    assert str(error.value) == (
        "The flag 'name' is defined twice. First from %s, Second from %s.  "
        "Description from first occurrence: A name" % (__name__, where))
    assert values["name"].default == "x"


def test_a_flag_may_replace_another_if_either_allows_it(values):
    flags.DEFINE_string("name", "y", "Mine", flag_values=values,
                        allow_override=True)
    flags.DEFINE_string("name", "z", "Yours", flag_values=values)
    assert values["name"].default == "z"


def test_a_required_flag_must_have_a_value(values):
    flags.DEFINE_string("must", None, "Needed", flag_values=values)
    flags.mark_flag_as_required("must", values)
    with pytest.raises(flags.IllegalFlagValueError, match="--must must have"):
        values(["prog"])
    values(["prog", "--must=x"])


def test_values_can_be_set_and_listed(values):
    values(["prog"])
    values.n = 9
    assert values["n"].value == 9
    assert values.flag_values_dict()["n"] == 9
    assert "n" in values


def test_old_keywords_are_accepted(values):
    flags.DEFINE_integer(flag_name="old", default_value=3, docstring="Old",
                         flag_values=values)
    values(["prog"])
    assert values.old == 3


PROGRAM = """
import sluice as tf
tf.app.flags.DEFINE_integer("task_index", 0, "Index")
def main(argv):
    print(argv[1:], tf.app.flags.FLAGS.task_index)
    tf.logging.info("seen")
    return 3
tf.app.run()
"""


def run(*words):
    return subprocess.run([sys.executable, "-c", PROGRAM] + list(words),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=60)


def test_app_run_gives_main_the_rest_and_returns_its_status():
    done = run("-task_index=2", "--other", "word")
    assert done.stdout == "['--other', 'word'] 2\n"
    assert done.returncode == 3
    assert done.stderr == "INFO:tensorflow:seen\n"


def test_app_run_ends_with_one_line_for_a_bad_value():
    done = run("--task_index=x")
    assert done.returncode == 1
    assert "flag --task_index=x" in done.stderr
    assert "Traceback" not in done.stderr
