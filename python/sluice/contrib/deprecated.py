"""tf.contrib.deprecated: summaries whose tag is taken as it is."""

from sluice.legacy import (  # noqa: F401
    audio_summary, histogram_summary, image_summary, merge_all_summaries,
    merge_summary, scalar_summary)
