"""Runs variable_programs.py and prints what came of each program, as JSON.

Run by TensorFlow 1.15.5, for tests/golden/variable_programs.json.
"""

import json
import os
import re

import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))


def programs():
    scope = {}
    with open(os.path.join(HERE, "variable_programs.py")) as f:
        exec(f.read(), scope)
    return scope["PROGRAMS"]


def plain(value):
    """`value` as JSON has it."""
    return json.loads(json.dumps(value, default=str))


def outcome(program):
    """{"out": …}, or {"error": class, "message": first line}."""
    scope = {"tf": tf, "out": None}
    with tf.Graph().as_default():
        try:
            exec(program, scope)
        except Exception as e:
            text = getattr(e, "message", None) or str(e)
            text = re.sub(r"\(defined at .*?\) ", "", text.split("\n")[0])
            return {"error": type(e).__name__, "message": text}
    return {"out": plain(scope["out"])}


def main():
    print(json.dumps({name: outcome(program)
                      for name, program in programs().items()},
                     indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
