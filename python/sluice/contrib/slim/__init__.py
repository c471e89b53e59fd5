"""tf.contrib.slim: the training loop and what stands beside it."""

from sluice.contrib.framework import *  # noqa: F401,F403
from sluice.contrib.slim import learning  # noqa: F401
from sluice.ops.variable_scope import variable_scope  # noqa: F401


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotImplementedError(
        "tf.contrib.slim.%s is not part of Sluice; build the layer of "
        "tf.get_variable and tf.nn" % name)
