"""Operations that make summaries, and what collects them."""

import contextlib
import re

from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework import protos
from sluice.framework.op_builder import apply_op
from sluice.platform import tf_logging as logging
from sluice.summary.writer import FileWriter  # noqa: F401
from sluice.summary.writer_cache import FileWriterCache  # noqa: F401

Summary = protos.Summary
SummaryDescription = getattr(protos, "SummaryDescription", None)
Event = protos.Event
SessionLog = protos.SessionLog
TaggedRunMetadata = protos.TaggedRunMetadata

_ILLEGAL = re.compile(r"[^-/\w\.]")


def clean_tag(name):
    """A name that is fit for a scope."""
    if name is not None:
        clean = _ILLEGAL.sub("_", name).lstrip("/")
        if clean != name:
            logging.info("Summary name %s is illegal; using %s instead.",
                         name, clean)
            name = clean
    return name


@contextlib.contextmanager
def summary_scope(name, family=None, default_name=None, values=None):
    """(tag, scope) of a summary."""
    name, family = clean_tag(name), clean_tag(family)
    base = name if family is None else "%s/%s" % (family, name)
    with ops.name_scope(base, default_name, values) as scope:
        tag = scope.rstrip("/")
        if family is not None:
            tag = "%s/%s" % (family, tag)
        yield tag, scope


def collect(value, collections, default_collections):
    for key in default_collections if collections is None else collections:
        ops.add_to_collection(key, value)


_DEFAULT = [ops.GraphKeys.SUMMARIES]


def scalar(name, tensor, collections=None, family=None):
    with summary_scope(name, family, values=[tensor]) as (tag, scope):
        val = apply_op("ScalarSummary", scope, tags=tag, values=tensor)
        collect(val, collections, _DEFAULT)
    return val


def histogram(name, values, collections=None, family=None,
              skip_nonfinite=False):
    """`skip_nonfinite`, which TensorFlow does not have: NaN and infinities are
    left out and said once, where they would end the step."""
    with summary_scope(name, family, default_name="HistogramSummary",
                       values=[values]) as (tag, scope):
        val = apply_op("HistogramSummary", scope, tag=tag, values=values)
        if skip_nonfinite:
            val.op._set_attr("_skip_nonfinite", protos.AttrValue(b=True))
        collect(val, collections, _DEFAULT)
    return val


def image(name, tensor, max_outputs=3, collections=None, family=None):
    with summary_scope(name, family, values=[tensor]) as (tag, scope):
        val = apply_op("ImageSummary", scope, tag=tag, tensor=tensor,
                       max_images=max_outputs)
        collect(val, collections, _DEFAULT)
    return val


def audio(name, tensor, sample_rate, max_outputs=3, collections=None,
          family=None):
    with summary_scope(name, family, values=[tensor]) as (tag, scope):
        sample_rate = ops.convert_to_tensor(
            sample_rate, dtype=dtypes.float32, name="sample_rate")
        val = apply_op("AudioSummaryV2", scope, tag=tag, tensor=tensor,
                       max_outputs=max_outputs, sample_rate=sample_rate)
        collect(val, collections, _DEFAULT)
    return val


def text(name, tensor, collections=None):
    if tensor.dtype.base_dtype != dtypes.string:
        raise ValueError("Expected tensor %s to have dtype string, got %s" %
                         (tensor.name, tensor.dtype))
    metadata = protos.SummaryMetadata(
        plugin_data=protos.SummaryMetadata.PluginData(plugin_name="text"))
    return tensor_summary(name=name, tensor=tensor, summary_metadata=metadata,
                          collections=collections)


def tensor_summary(name, tensor, summary_description=None, collections=None,
                   summary_metadata=None, family=None, display_name=None):
    metadata = protos.SummaryMetadata()
    if summary_metadata is not None:
        metadata.CopyFrom(summary_metadata)
    if summary_description is not None:
        metadata.summary_description = summary_description
    if display_name is not None:
        metadata.display_name = display_name
    with summary_scope(name, family, values=[tensor]) as (tag, scope):
        val = apply_op("TensorSummaryV2", scope, tensor=tensor, tag=tag,
                       serialized_summary_metadata=(
                           metadata.SerializeToString()))
        collect(val, collections, _DEFAULT)
    return val


def merge(inputs, collections=None, name=None):
    name = clean_tag(name)
    with ops.name_scope(name, "Merge", inputs):
        val = apply_op("MergeSummary", name, inputs=list(inputs))
        collect(val, collections, [])
    return val


def merge_all(key=ops.GraphKeys.SUMMARIES, scope=None, name=None):
    """All summaries in one, or None if there are none."""
    summary_ops = ops.get_collection(key, scope=scope)
    if not summary_ops:
        return None
    return merge(summary_ops, name=name)


def get_summary_description(node_def):
    if node_def.op != "TensorSummary":
        raise ValueError("Can't get_summary_description on %s" % node_def.op)
    from google.protobuf import json_format
    text_ = node_def.attr["description"].s.decode("utf-8")
    description = protos.SummaryDescription()
    json_format.Parse(text_, description)
    return description
