"""tf.contrib.staging"""

from sluice.ops.staging import StagingArea  # noqa: F401
