"""Reading event files."""

from sluice.framework import protos
from sluice.python_io import tf_record_iterator


def summary_iterator(path):
    """The events of an event file."""
    for record in tf_record_iterator(path):
        yield protos.Event.FromString(record)
