"""The tables of tests/scenarios, which the C++ tests play too."""

import os

import sluice as tf


def table(name):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..",
                        "..", "tests", "scenarios", name + ".txt")
    with open(path) as lines:
        return [[field.strip() for field in line.split("|")]
                for line in lines]


def error_of(code):
    return tf.errors.exception_type_from_error_code(
        getattr(tf.errors, code))(None, None, "of a scenario")


def code_of(error):
    return [name for name in dir(tf.errors)
            if name.isupper() and getattr(tf.errors, name) ==
            error.error_code][0]
