"""Texts: joining, numbers, encodings, hashes."""

from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework.op_builder import apply_op
from sluice.ops import array_ops
from sluice.ops import math_ops


def _one_of(first, second, first_name, second_name):
    if first is not None and second is not None:
        raise ValueError("Cannot specify both '%s' and '%s'" % (first_name,
                                                                second_name))
    return second if first is None else first


def reduce_join(inputs, axis=None, keep_dims=None, separator="", name=None,
                reduction_indices=None, keepdims=None):
    """Joins the texts along the axes, or all of them."""
    keep = bool(_one_of(keepdims, keep_dims, "keepdims", "keep_dims"))
    axis = _one_of(axis, reduction_indices, "axis", "reduction_indices")
    with ops.name_scope(name, "ReduceJoin", [inputs, axis]):
        inputs = ops.convert_to_tensor(inputs)
        if axis is None:
            rank = inputs.shape.ndims
            axis = list(range(rank - 1, -1, -1)) if rank is not None else \
                math_ops.range(array_ops.rank(inputs) - 1, -1, -1)
            if rank is not None:
                axis = ops.convert_to_tensor(axis, dtype=dtypes.int32)
        return apply_op("ReduceJoin", None, inputs=inputs,
                        reduction_indices=axis, keep_dims=keep,
                        separator=separator)


def string_join(inputs, separator="", name=None):
    return apply_op("StringJoin", name, inputs=list(inputs),
                    separator=separator)


def string_to_number(string_tensor=None, out_type=dtypes.float32, name=None,
                     input=None):
    text = _one_of(string_tensor, input, "string_tensor", "input")
    return apply_op("StringToNumber", name, string_tensor=text,
                    out_type=out_type)


def as_string(input, precision=-1, scientific=False, shortest=False, width=-1,
              fill="", name=None):
    return apply_op("AsString", name, input=input, precision=precision,
                    scientific=scientific, shortest=shortest, width=width,
                    fill=fill)


def string_strip(input, name=None):
    return apply_op("StringStrip", name, input=input)


def string_to_hash_bucket(string_tensor=None, num_buckets=None, name=None,
                          input=None):
    text = _one_of(string_tensor, input, "string_tensor", "input")
    return apply_op("StringToHashBucket", name, string_tensor=text,
                    num_buckets=num_buckets)


def string_to_hash_bucket_fast(input, num_buckets, name=None):
    return apply_op("StringToHashBucketFast", name, input=input,
                    num_buckets=num_buckets)


def string_to_hash_bucket_strong(input, num_buckets, key, name=None):
    return apply_op("StringToHashBucketStrong", name, input=input,
                    num_buckets=num_buckets, key=key)


def decode_base64(input, name=None):
    return apply_op("DecodeBase64", name, input=input)


def encode_base64(input, pad=False, name=None):
    return apply_op("EncodeBase64", name, input=input, pad=pad)


def decode_compressed(bytes, compression_type="", name=None):
    return apply_op("DecodeCompressed", name, bytes=bytes,
                    compression_type=compression_type)
