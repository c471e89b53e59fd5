"""Writing graphs to files."""

import os

from google.protobuf import text_format

from sluice import _sluice
from sluice.framework import ops


def write_graph(graph_or_graph_def, logdir, name, as_text=True):
    """Writes a graph as text or binary and returns the path."""
    graph_def = graph_or_graph_def
    if isinstance(graph_def, ops.Graph):
        graph_def = graph_def.as_graph_def()
    os.makedirs(logdir or ".", exist_ok=True)
    path = os.path.join(logdir, name)
    if as_text:
        data = text_format.MessageToString(graph_def).encode("utf-8")
    else:
        data = graph_def.SerializeToString()
    _sluice.write_file_atomically(path, data)
    return path
