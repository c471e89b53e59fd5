"""Rows of tables that may lie in several parts."""

from sluice.framework import constant_op
from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework import sparse_tensor
from sluice.framework import tensor_shape
from sluice.framework.op_builder import apply_op
from sluice.ops import array_ops
from sluice.ops import clip_ops
from sluice.ops import math_ops
from sluice.ops import partitioned_variables
from sluice.platform import tf_logging as logging


def _parts(params):
    if params is None or (isinstance(params, (list, tuple)) and not params):
        raise ValueError("Need at least one param")
    if isinstance(params, (partitioned_variables.PartitionedVariable, list,
                           tuple)):
        return list(params)
    return [params]


def _clip(rows, ids, max_norm):
    if max_norm is None:
        return rows
    first, last = ids.shape.ndims, rows.shape.ndims
    if first and last:
        axes = list(range(first, last))
    else:
        axes = math_ops.range(first or array_ops.rank(ids),
                              last or array_ops.rank(rows))
    return clip_ops.clip_by_norm(rows, max_norm, axes=axes)


def _total_rows(parts, dtype):
    total = tensor_shape.Dimension(0)
    for p in parts:
        total += p.shape[0]
    if total.value:
        return constant_op.constant(total.value, dtype)
    sizes = []
    for p in parts:
        if p.shape[0].value is not None:
            sizes.append(p.shape[0].value)
        else:
            with ops.colocate_with(p):
                sizes.append(array_ops.shape(p)[0])
    return math_ops.reduce_sum(math_ops.cast(array_ops.stack(sizes), dtype))


def _assign_to_parts(ids, parts, strategy):
    """(the part each id lies in, its row there)."""
    count = len(parts)
    if strategy == "mod":
        return ids % count, ids // count
    if strategy != "div":
        raise ValueError("Unrecognized partition strategy: " + strategy)
    total = _total_rows(parts, ids.dtype)
    # The first `extras` parts have one row more.
    rows = total // count
    extras = total % count
    part = math_ops.maximum(ids // (rows + 1), (ids - extras) // rows)
    return part, array_ops.where(part < extras, ids % (rows + 1),
                                 (ids - extras) % rows)


def _is_resource(param):
    return getattr(param, "_is_resource", False)


def embedding_lookup(params, ids, partition_strategy="mod", name=None,
                     validate_indices=True, max_norm=None):
    if params is None:
        raise ValueError("params must be specified")
    parts = _parts(params)
    with ops.name_scope(name, "embedding_lookup", parts + [ids]) as scope:
        # A resource variable is read row by row.
        if not any(_is_resource(p) for p in parts):
            parts = ops.convert_n_to_tensor(parts, name="params")
        ids = ops.convert_to_tensor(ids, name="ids")
        if len(parts) == 1:
            with ops.colocate_with(parts[0]):
                result = _clip(array_ops.gather(parts[0], ids, name=scope),
                               ids, max_norm)
            return array_ops.identity(result)
        return _clip(_lookup_in_parts(parts, ids, partition_strategy, scope),
                     ids, max_norm)


def _lookup_in_parts(parts, ids, strategy, name):
    flat_ids = array_ops.reshape(ids, [-1])
    places = math_ops.range(array_ops.size(flat_ids))
    part, row = _assign_to_parts(flat_ids, parts, strategy)
    part = math_ops.cast(part, dtypes.int32)
    rows = array_ops.dynamic_partition(row, part, len(parts))
    places = array_ops.dynamic_partition(places, part, len(parts))
    found = []
    for p, r in zip(parts, rows):
        with ops.colocate_with(p):
            found.append(array_ops.gather(p, r))
    result = apply_op("ParallelDynamicStitch", name, indices=places,
                      data=found)
    static = parts[0].shape[1:]
    for p in parts[1:]:
        static = static.merge_with(p.shape[1:])
    if static.is_fully_defined():
        element = static
    else:
        with ops.colocate_with(parts[0]):
            element = array_ops.shape(parts[0])[1:]
    result = array_ops.reshape(result, array_ops.concat(
        [array_ops.shape(ids), element], 0))
    result.set_shape(ids.shape.concatenate(static))
    return result


def embedding_lookup_sparse(params, sp_ids, sp_weights,
                            partition_strategy="mod", name=None,
                            combiner=None, max_norm=None):
    if combiner is None:
        logging.warning('The default value of combiner will change from '
                        '"mean" to "sqrtn" after 2016/11/01.')
        combiner = "mean"
    if combiner not in ("mean", "sqrtn", "sum"):
        raise ValueError("combiner must be one of 'mean', 'sqrtn' or 'sum'")
    if not isinstance(sp_ids, sparse_tensor.SparseTensor):
        raise TypeError("sp_ids must be SparseTensor")
    if sp_weights is not None and not isinstance(
            sp_weights, sparse_tensor.SparseTensor):
        raise TypeError("sp_weights must be either None or SparseTensor")
    parts = _parts(params)
    with ops.name_scope(name, "embedding_lookup_sparse",
                        parts + [sp_ids]) as scope:
        segments = sp_ids.indices[:, 0]
        if segments.dtype != dtypes.int32:
            segments = math_ops.cast(segments, dtypes.int32)
        ids, index = array_ops.unique(sp_ids.values)
        rows = embedding_lookup(parts, ids, partition_strategy,
                                max_norm=max_norm)
        if sp_weights is None:
            op_type = {"sum": "SparseSegmentSum", "mean": "SparseSegmentMean",
                       "sqrtn": "SparseSegmentSqrtN"}[combiner]
            return apply_op(op_type, scope, data=rows, indices=index,
                            segment_ids=segments)
        return _weighted(rows, index, segments, sp_weights.values, combiner,
                         scope)


def _weighted(rows, index, segments, weights, combiner, name):
    if weights.dtype != rows.dtype:
        weights = math_ops.cast(weights, rows.dtype)
    rows = array_ops.gather(rows, index)
    ones = array_ops.fill(
        array_ops.expand_dims(array_ops.rank(rows) - 1, 0), 1)
    shape = array_ops.concat([array_ops.shape(weights), ones], 0)
    static = weights.shape
    weights = array_ops.reshape(weights, shape)
    if rows.shape.ndims is not None:
        weights.set_shape(static.concatenate([1] * (rows.shape.ndims - 1)))
    rows *= weights
    if combiner == "sum":
        return math_ops.segment_sum(rows, segments, name=name)
    rows = math_ops.segment_sum(rows, segments)
    if combiner == "mean":
        total = math_ops.segment_sum(weights, segments)
    else:
        total = math_ops.sqrt(math_ops.segment_sum(math_ops.pow(weights, 2),
                                                   segments))
    return math_ops.div(rows, total, name=name)


def safe_embedding_lookup_sparse(embedding_weights, sparse_ids,
                                 sparse_weights=None, combiner="mean",
                                 default_id=None, name=None,
                                 partition_strategy="div", max_norm=None):
    """As embedding_lookup_sparse, for rows that may be empty or invalid.

    Ids below 0 and weights of 0 and below are left out. A row without ids gets
    `default_id`'s embedding, or zeros.
    """
    if embedding_weights is None:
        raise ValueError("Missing embedding_weights %s." % embedding_weights)
    parts = list(embedding_weights) if isinstance(
        embedding_weights, (partitioned_variables.PartitionedVariable, list,
                            tuple)) else [embedding_weights]
    if not parts:
        raise ValueError("Missing embedding_weights %s." % parts)
    dtype = None if sparse_weights is None else sparse_weights.dtype
    parts = [p if _is_resource(p) and dtype in (None, p.dtype) else
             ops.convert_to_tensor(p, dtype=dtype) for p in parts]
    with ops.name_scope(name, "embedding_lookup", parts + [sparse_ids]) \
            as scope:
        shape = sparse_ids.dense_shape
        ids = _as_matrix(sparse_ids)
        weights = sparse_weights
        if weights is not None:
            weights = sparse_tensor.SparseTensor(
                ids.indices, sparse_weights.values, ids.dense_shape)
        ids, weights = _retain(ids, weights,
                               math_ops.greater_equal(ids.values, 0))
        if weights is not None and combiner != "sum":
            ids, weights = _retain(ids, weights,
                                   math_ops.greater(weights.values, 0))
        ids, is_empty = _fill_empty_rows(ids, default_id or 0)
        if weights is not None:
            weights, _ = _fill_empty_rows(weights, 1.0)
        result = embedding_lookup_sparse(
            parts, ids, weights, combiner=combiner,
            partition_strategy=partition_strategy,
            name=None if default_id is None else scope, max_norm=max_norm)
        if default_id is None:
            empty = array_ops.tile(
                array_ops.reshape(is_empty, [-1, 1]),
                array_ops.stack([1, array_ops.shape(result)[1]]))
            result = array_ops.where(empty, array_ops.zeros_like(result),
                                     result, name=scope)
        found = array_ops.reshape(result, array_ops.concat(
            [math_ops.cast(shape[:-1], dtypes.int32),
             array_ops.shape(result)[1:]], 0))
        rank = shape.shape[0].value
        if rank is not None:
            found.set_shape(tensor_shape.unknown_shape(rank - 1).concatenate(
                result.shape[1:]))
        return found


def _as_matrix(sparse):
    """All dimensions but the last as one."""
    if sparse.dense_shape.shape[0].value == 2:
        return sparse
    outer = sparse.dense_shape[:-1]
    steps = apply_op("Cumprod", None, x=outer, axis=0, exclusive=True,
                     reverse=True)
    rows = math_ops.reduce_sum(sparse.indices[:, :-1] * steps, 1)
    return sparse_tensor.SparseTensor(
        array_ops.stack([rows, sparse.indices[:, -1]], 1), sparse.values,
        array_ops.stack([math_ops.reduce_prod(outer),
                         sparse.dense_shape[-1]]))


def _retain(ids, weights, mask):
    kept = array_ops.reshape(array_ops.where(mask), [-1])
    indices = array_ops.gather(ids.indices, kept)

    def of(sparse):
        return sparse_tensor.SparseTensor(
            indices, array_ops.gather(sparse.values, kept),
            array_ops.identity(sparse.dense_shape))
    return of(ids), None if weights is None else of(weights)


def _fill_empty_rows(sparse, default):
    indices, values, is_empty, _ = apply_op(
        "SparseFillEmptyRows", None, indices=sparse.indices,
        values=sparse.values, dense_shape=sparse.dense_shape,
        default_value=ops.convert_to_tensor(default,
                                            dtype=sparse.values.dtype))
    return sparse_tensor.SparseTensor(indices, values,
                                      sparse.dense_shape), is_empty
