"""NumPy, imported when it is first used.

A process that only serves (`server.join()` of a ps) makes no array, and NumPy
would be a third of its memory and of the time it takes to start.
"""

import types


class _LazyModule(types.ModuleType):

    def __getattr__(self, name):
        import numpy
        value = getattr(numpy, name)
        setattr(self, name, value)  # Found without coming here from now on.
        return value


np = _LazyModule("numpy")
