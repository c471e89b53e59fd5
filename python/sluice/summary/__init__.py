"""tf.summary."""

from sluice.framework.protos import (  # noqa: F401
    Event, SessionLog, Summary, TaggedRunMetadata)
from sluice.summary.summary import (  # noqa: F401
    SummaryDescription, audio, get_summary_description, histogram, image,
    merge, merge_all, scalar, tensor_summary, text)
from sluice.summary.writer import FileWriter  # noqa: F401
from sluice.summary.writer_cache import FileWriterCache  # noqa: F401
