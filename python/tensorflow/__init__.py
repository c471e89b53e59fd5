"""`import tensorflow` for programs that run on Sluice.

This directory is on the path only when it is asked for (`sluice run`). It has
no code of its own: names are Sluice's, and modules that programs import by
their old place (tensorflow.python.*, tensorflow.contrib.*, …) are found by the
table in _alias.py.
"""

import sluice as _sluice_package
from tensorflow import _alias

_alias.install()

for _name, _value in list(vars(_sluice_package).items()):
    if not _name.startswith("__") or _name in ("__version__",):
        globals()[_name] = _value


def __getattr__(name):
    import importlib
    if name in ("contrib", "python", "examples", "core", "compat"):
        return importlib.import_module("tensorflow." + name)
    # What Sluice makes when it is first asked for.
    return getattr(_sluice_package, name)


def __dir__():
    return sorted(set(globals()) | {"contrib", "python", "examples", "core"})
