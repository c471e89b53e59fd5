"""tf.contrib: the parts that distributed programs use."""

import importlib

_PARTS = ("deprecated", "framework", "layers", "lookup",
          "opt", "slim", "staging", "training")


def __getattr__(name):
    if name in _PARTS:
        return importlib.import_module("sluice.contrib." + name)
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(
        "tf.contrib.%s is not part of Sluice; there are: %s" %
        (name, ", ".join("tf.contrib." + p for p in _PARTS)))


def __dir__():
    return list(_PARTS)
