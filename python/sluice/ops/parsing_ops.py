"""Examples, text and bytes as tensors."""

import collections

from sluice.framework import constant_op
from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework import sparse_tensor
from sluice.framework import tensor_shape
from sluice.framework.op_builder import apply_op, build
from sluice.ops import array_ops
from sluice.ops import sparse_ops

VarLenFeature = collections.namedtuple("VarLenFeature", ["dtype"])


class SparseFeature(collections.namedtuple(
        "SparseFeature",
        ["index_key", "value_key", "dtype", "size", "already_sorted"])):
    """A sparse tensor whose indices are features of their own."""

    def __new__(cls, index_key, value_key, dtype, size, already_sorted=False):
        return super().__new__(cls, index_key, value_key, dtype, size,
                               already_sorted)


class FixedLenFeature(collections.namedtuple(
        "FixedLenFeature", ["shape", "dtype", "default_value"])):
    """A feature of a known shape; without a default it must be there."""

    def __new__(cls, shape, dtype, default_value=None):
        return super().__new__(cls, shape, dtype, default_value)


class FixedLenSequenceFeature(collections.namedtuple(
        "FixedLenSequenceFeature",
        ["shape", "dtype", "allow_missing", "default_value"])):
    """Any number of entries of a known shape, padded in batches."""

    def __new__(cls, shape, dtype, allow_missing=False, default_value=None):
        return super().__new__(cls, shape, dtype, allow_missing,
                               default_value)


class _Features(object):
    """A dictionary of features in the order and form that ops take."""

    def __init__(self, features, allowed):
        self.sparse_keys, self.sparse_types = [], []
        self.dense_keys, self.dense_types = [], []
        self.dense_shapes, self.dense_defaults = [], {}
        for key in sorted(features or {}):
            feature = features[key]
            if not isinstance(feature, allowed):
                raise ValueError("Invalid feature %s:%s." % (key, feature))
            if isinstance(feature, VarLenFeature):
                if not feature.dtype:
                    raise ValueError("Missing type for feature %s." % key)
                self._add_sparse(key, feature.dtype)
            elif isinstance(feature, SparseFeature):
                self._add_sparse_feature(key, feature)
            else:
                self._add_dense(key, feature)

    def _add_sparse(self, key, dtype):
        self.sparse_keys.append(key)
        self.sparse_types.append(dtypes.as_dtype(dtype))

    def _add_sparse_feature(self, key, feature):
        if not feature.index_key:
            raise ValueError("Missing index_key for SparseFeature %s." %
                             (feature,))
        if not feature.value_key:
            raise ValueError("Missing value_key for SparseFeature %s." %
                             (feature,))
        if not feature.dtype:
            raise ValueError("Missing type for feature %s. Received feature="
                             "%s" % (key, feature))
        for name in sorted(_as_list(feature.index_key)):
            self._add_once(name, dtypes.int64, feature)
        self._add_once(feature.value_key, feature.dtype, feature)

    def _add_once(self, name, dtype, feature):
        if name not in self.sparse_keys:
            return self._add_sparse(name, dtype)
        found = self.sparse_types[self.sparse_keys.index(name)]
        if found != dtype:
            raise ValueError("Conflicting type %s vs %s for feature %s." %
                             (found, dtype, name))

    def _add_dense(self, key, feature):
        if not feature.dtype:
            raise ValueError("Missing type for feature %s." % key)
        if feature.shape is None:
            raise ValueError("Missing shape for feature %s." % key)
        shape = tensor_shape.as_shape(feature.shape)
        if isinstance(feature, FixedLenSequenceFeature):
            if feature.allow_missing:
                self.dense_defaults[key] = None
            if feature.default_value is not None:
                self.dense_defaults[key] = feature.default_value
        elif feature.default_value is not None:
            self.dense_defaults[key] = feature.default_value
        elif shape.ndims and any(d is None for d in shape.as_list()):
            raise ValueError("First dimension of shape for feature %s "
                             "unknown. Consider using "
                             "FixedLenSequenceFeature." % key)
        if not isinstance(feature, FixedLenSequenceFeature) and \
                shape.ndims is not None and not shape.is_fully_defined():
            raise ValueError("All dimensions of shape for feature %s need to "
                             "be known but received %s." % (key, shape))
        self.dense_keys.append(key)
        self.dense_types.append(dtypes.as_dtype(feature.dtype))
        self.dense_shapes.append(feature.shape)


def _as_list(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _prepend_none(features):
    """Shapes of entries of sequences, with their number unknown."""
    prepended = {}
    for key, feature in features.items():
        if isinstance(feature, FixedLenSequenceFeature):
            if not feature.allow_missing:
                raise ValueError(
                    "Unsupported: FixedLenSequenceFeature requires "
                    "allow_missing to be True.")
            feature = feature._replace(
                shape=[None] + tensor_shape.as_shape(feature.shape).as_list())
        prepended[key] = feature
    return prepended


def _defaults(parsed, sequences=False):
    """A tensor for every dense feature; an empty one if it must be there.

    Also gives the shapes as the op takes them.
    """
    values, shapes = [], []
    for key, dtype, shape in zip(parsed.dense_keys, parsed.dense_types,
                                 parsed.dense_shapes):
        shape = tensor_shape.as_shape(shape)
        value = parsed.dense_defaults.get(key)
        variable = bool(shape.ndims and shape.as_list()[0] is None)
        if variable:
            # What batches are padded with.
            if value is None:
                value = constant_op.constant(
                    "" if dtype == dtypes.string else 0, dtype=dtype)
            else:
                value = ops.convert_to_tensor(value, dtype=dtype,
                                              name="padding_" + _clean(key))
                value = array_ops.reshape(value, [])
        elif value is None:
            value = constant_op.constant([], dtype=dtype)
        elif not isinstance(value, ops.Tensor):
            value = ops.convert_to_tensor(value, dtype=dtype,
                                          name="key_" + _clean(key))
            if not sequences:
                value = array_ops.reshape(value, shape.as_list())
        values.append(value)
        shapes.append(shape)
    return values, shapes


def _clean(key):
    return "".join(c if c.isalnum() or c in "_.\\-/" else "_" for c in key)


def _as_dict(parsed, indices, values, shapes, dense):
    result = {key: sparse_tensor.SparseTensor(i, v, s) for key, i, v, s in
              zip(parsed.sparse_keys, indices, values, shapes)}
    result.update(zip(parsed.dense_keys, dense))
    return result


def _with_sparse_features(features, tensors):
    """Puts the parts of SparseFeatures together, and drops them."""
    result = dict(tensors)
    for key in sorted(features):
        feature = features[key]
        if isinstance(feature, SparseFeature):
            indices = [tensors[k] for k in _as_list(feature.index_key)]
            result[key] = sparse_ops.sparse_merge(
                indices, tensors[feature.value_key], _as_list(feature.size),
                already_sorted=feature.already_sorted)
    return {key: result[key] for key in features}


_ALL_KINDS = (VarLenFeature, SparseFeature, FixedLenFeature,
              FixedLenSequenceFeature)


def parse_example(serialized, features, name=None, example_names=None):
    """Tensors of a vector of serialized Examples, by name."""
    if not features:
        raise ValueError("Missing: features was %s." % features)
    features = _prepend_none(features)
    parsed = _Features(features, _ALL_KINDS)
    with ops.name_scope(name, "ParseExample", [serialized, example_names]):
        names = [] if example_names is None else example_names
        defaults, shapes = _defaults(parsed)
        # TensorFlow names the op again what the scope is called.
        op = build("ParseExample", name, serialized=serialized, names=names,
                   sparse_keys=parsed.sparse_keys,
                   dense_keys=parsed.dense_keys, dense_defaults=defaults,
                   sparse_types=parsed.sparse_types,
                   Tdense=parsed.dense_types, dense_shapes=shapes)
        n = len(parsed.sparse_keys)
        out = list(op.outputs)
        tensors = _as_dict(parsed, out[:n], out[n:2 * n], out[2 * n:3 * n],
                           out[3 * n:])
    return _with_sparse_features(features, tensors)


def parse_single_example(serialized, features, name=None, example_names=None):
    """As parse_example, of a scalar."""
    if not features:
        raise ValueError("Missing features.")
    if example_names is not None:
        return _parse_single_by_batch(serialized, features, name,
                                      example_names)
    features = _prepend_none(features)
    parsed = _Features(features, _ALL_KINDS)
    with ops.name_scope(name, "ParseSingleExample", [serialized]):
        serialized = ops.convert_to_tensor(serialized, name="serialized")
        defaults, shapes = _defaults(parsed)
        op = build("ParseSingleExample", name, serialized=serialized,
                   dense_defaults=defaults,
                   num_sparse=len(parsed.sparse_keys),
                   sparse_keys=parsed.sparse_keys,
                   sparse_types=parsed.sparse_types,
                   dense_keys=parsed.dense_keys, Tdense=parsed.dense_types,
                   dense_shapes=shapes)
        n = len(parsed.sparse_keys)
        out = list(op.outputs)
        tensors = _as_dict(parsed, out[:n], out[n:2 * n], out[2 * n:3 * n],
                           out[3 * n:])
    return _with_sparse_features(features, tensors)


def _parse_single_by_batch(serialized, features, name, example_names):
    """A batch of one, as only batches have names for messages."""
    with ops.name_scope(name, "ParseSingleExample",
                        [serialized, example_names]):
        serialized = ops.convert_to_tensor(serialized)
        serialized = array_ops.expand_dims(serialized, 0)
        example_names = ops.convert_to_tensor(example_names)
        example_names = array_ops.expand_dims(example_names, 0)
        batch = parse_example(serialized, features, name, example_names)
        single = {}
        for key in sorted(batch):
            value = batch[key]
            if isinstance(value, sparse_tensor.SparseTensor):
                single[key] = sparse_tensor.SparseTensor(
                    array_ops.slice(value.indices, [0, 1], [-1, -1],
                                    name="Slice_Indices_%s" % _clean(key)),
                    value.values,
                    array_ops.slice(value.dense_shape, [1], [-1],
                                    name="Squeeze_Shape_%s" % _clean(key)))
            else:
                single[key] = array_ops.squeeze(
                    value, [0], name="Squeeze_%s" % _clean(key))
        return single


def _sequence_parts(context_features, sequence_features):
    if not (context_features or sequence_features):
        raise ValueError("Missing features.")
    context = _Features(context_features, (VarLenFeature, FixedLenFeature))
    lists = _Features(sequence_features,
                      (VarLenFeature, FixedLenSequenceFeature))
    for key, default in lists.dense_defaults.items():
        if default is not None:
            raise ValueError("Value feature_list_dense_defaults[%s] must be "
                             "None" % key)
    return context, lists, sorted(lists.dense_defaults)


def parse_single_sequence_example(serialized, context_features=None,
                                  sequence_features=None, example_name=None,
                                  name=None):
    """(context, lists): tensors of a serialized SequenceExample, by name."""
    context, lists, missing = _sequence_parts(context_features,
                                              sequence_features)
    with ops.name_scope(name, "ParseSingleSequenceExample", [serialized]):
        defaults, shapes = _defaults(context, sequences=True)
        op = build(
            "ParseSingleSequenceExample", name, serialized=serialized,
            feature_list_dense_missing_assumed_empty=missing,
            context_sparse_keys=context.sparse_keys,
            context_dense_keys=context.dense_keys,
            feature_list_sparse_keys=lists.sparse_keys,
            feature_list_dense_keys=lists.dense_keys,
            context_dense_defaults=defaults, debug_name=example_name or "",
            context_sparse_types=context.sparse_types,
            Tcontext_dense=context.dense_types, context_dense_shapes=shapes,
            feature_list_sparse_types=lists.sparse_types,
            feature_list_dense_types=lists.dense_types,
            feature_list_dense_shapes=lists.dense_shapes)
        return _sequence_result(context, lists, op)[:2]


def parse_sequence_example(serialized, context_features=None,
                           sequence_features=None, example_names=None,
                           name=None):
    """(context, lists, lengths) of a vector of serialized SequenceExamples."""
    context, lists, missing = _sequence_parts(context_features,
                                              sequence_features)
    with ops.name_scope(name, "ParseSequenceExample",
                        [serialized, example_names]):
        defaults, shapes = _defaults(context, sequences=True)
        op = build(
            "ParseSequenceExample", name, serialized=serialized,
            debug_name=[] if example_names is None else example_names,
            context_dense_defaults=defaults,
            feature_list_dense_missing_assumed_empty=missing,
            context_sparse_keys=context.sparse_keys,
            context_dense_keys=context.dense_keys,
            feature_list_sparse_keys=lists.sparse_keys,
            feature_list_dense_keys=lists.dense_keys,
            Ncontext_sparse=len(context.sparse_keys),
            Ncontext_dense=len(context.dense_keys),
            Nfeature_list_sparse=len(lists.sparse_keys),
            Nfeature_list_dense=len(lists.dense_keys),
            context_sparse_types=context.sparse_types,
            Tcontext_dense=context.dense_types, context_dense_shapes=shapes,
            feature_list_sparse_types=lists.sparse_types,
            feature_list_dense_types=lists.dense_types,
            feature_list_dense_shapes=lists.dense_shapes)
        return _sequence_result(context, lists, op)


def _sequence_result(context, lists, op):
    out = list(op.outputs)

    def take(n):
        taken = out[:n]
        del out[:n]
        return taken

    n = len(context.sparse_keys)
    context_dict = _as_dict(context, take(n), take(n), take(n),
                            take(len(context.dense_keys)))
    n = len(lists.sparse_keys)
    list_dict = _as_dict(lists, take(n), take(n), take(n),
                         take(len(lists.dense_keys)))
    return context_dict, list_dict, dict(zip(lists.dense_keys, out))


def decode_raw(input_bytes=None, out_type=None, little_endian=True, name=None,
               bytes=None):
    """The bytes of strings as numbers."""
    return apply_op("DecodeRaw", name,
                    bytes=bytes if input_bytes is None else input_bytes,
                    out_type=out_type, little_endian=little_endian)


def decode_csv(records, record_defaults, field_delim=",",
               use_quote_delim=True, name=None, na_value="",
               select_cols=None):
    """A tensor for every column of lines of comma-separated values."""
    if select_cols is not None:
        if any(a >= b for a, b in zip(select_cols, select_cols[1:])):
            raise ValueError("select_cols is not strictly increasing.")
        if any(c < 0 for c in select_cols):
            raise ValueError("select_cols contains negative values.")
        if len(select_cols) != len(record_defaults):
            raise ValueError("Length of select_cols and record_defaults do "
                             "not match.")
    return apply_op("DecodeCSV", name, records=records,
                    record_defaults=record_defaults, field_delim=field_delim,
                    use_quote_delim=use_quote_delim, na_value=na_value,
                    select_cols=select_cols or [])


def parse_tensor(serialized, out_type, name=None):
    return apply_op("ParseTensor", name, serialized=serialized,
                    out_type=out_type)


def serialize_tensor(tensor, name=None):
    return apply_op("SerializeTensor", name, tensor=tensor)


def decode_json_example(json_examples, name=None):
    return apply_op("DecodeJSONExample", name, json_examples=json_examples)


def decode_compressed(bytes, compression_type="", name=None):
    return apply_op("DecodeCompressed", name, bytes=bytes,
                    compression_type=compression_type)
