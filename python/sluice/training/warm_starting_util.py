"""warm_start: begins a training with the variables of an earlier one."""

import collections

from sluice.framework import dtypes
from sluice.framework import ops
from sluice.framework.op_builder import apply_op
from sluice.ops import array_ops
from sluice.ops import init_ops
from sluice.ops import math_ops
from sluice.ops import partitioned_variables
from sluice.ops import state_ops
from sluice.ops import variables
from sluice.platform import tf_logging as logging
from sluice.training import checkpoint_management
from sluice.training import checkpoint_utils


class VocabInfo(collections.namedtuple("VocabInfo", [
        "new_vocab", "new_vocab_size", "num_oov_buckets", "old_vocab",
        "old_vocab_size", "backup_initializer", "axis"])):
    """How rows (axis 0) or columns (1) stand for words, now and before."""

    def __new__(cls, new_vocab, new_vocab_size, num_oov_buckets, old_vocab,
                old_vocab_size=-1, backup_initializer=None, axis=0):
        if axis not in (0, 1):
            raise ValueError("The only supported values for the axis argument "
                             "are 0 and 1.  Provided axis: {}".format(axis))
        return super().__new__(cls, new_vocab, new_vocab_size,
                               num_oov_buckets, old_vocab, old_vocab_size,
                               backup_initializer, axis)


def _infer_var_name(var):
    """The name in a checkpoint of a variable or of a list of its parts."""
    if isinstance(var, variables.Variable):
        return var.op.name
    name = var[0].op.name
    return name[:name.rfind("/part_")] if "/part_" in name else name


def _warm_start_var(var, prev_ckpt, prev_tensor_name=None):
    name = prev_tensor_name or _infer_var_name(var)
    target = var if isinstance(var, variables.Variable) or len(var) > 1 or \
        var[0]._save_slice_info else var[0]
    checkpoint_utils.init_from_checkpoint(prev_ckpt, {name: target})


def _remapping(vocab, offset, count):
    """Old indices of the words [offset, offset + count), -1 for new ones."""
    words = max(0, min(count, vocab.new_vocab_size - offset))
    remapped = apply_op("GenerateVocabRemapping", None,
                        new_vocab_file=vocab.new_vocab,
                        old_vocab_file=vocab.old_vocab,
                        new_vocab_offset=offset, num_new_vocab=words,
                        old_vocab_size=vocab.old_vocab_size)[0]
    if words == count:
        return remapped
    # Buckets of words that are in no vocabulary start afresh.
    fresh = array_ops.fill([count - words], ops.convert_to_tensor(
        -1, dtype=dtypes.int64))
    return array_ops.concat([remapped, fresh], axis=0)


def _warm_start_part(part, vocab, prev_ckpt, name):
    """Gives one part of a matrix its rows, or columns, of the old one."""
    rows, cols = part.get_shape().as_list()
    info = part._save_slice_info
    offset = info.var_offset[vocab.axis] if info else 0
    count = (rows, cols)[vocab.axis]
    total = info.full_shape[vocab.axis] if info else count
    expected = vocab.new_vocab_size + vocab.num_oov_buckets
    if total != expected:
        raise ValueError(
            "%s has %d %s, but its vocabulary has %d words and %d buckets" % (
                part.name, total, ("rows", "columns")[vocab.axis],
                vocab.new_vocab_size, vocab.num_oov_buckets))
    initializer = vocab.backup_initializer or init_ops.zeros_initializer()
    with ops.device(part.device), ops.device("/cpu:0"):
        found = _remapping(vocab, offset, count)
        fresh = array_ops.expand_dims(math_ops.less(
            found, ops.convert_to_tensor(0, dtype=dtypes.int64)),
            1 - vocab.axis)
        missing = math_ops.logical_and(
            fresh, array_ops.fill([rows, cols], True))
        values = array_ops.boolean_mask(
            initializer([rows, cols], dtype=dtypes.float32), missing)
        if vocab.axis == 0:
            row_map = found
            col_map = ops.convert_to_tensor([], dtype=dtypes.int64)
        else:
            first = info.var_offset[0] if info else 0
            row_map = math_ops.cast(math_ops.range(first, first + rows),
                                    dtypes.int64)
            col_map = found
        matrix = apply_op("LoadAndRemapMatrix", None, ckpt_path=prev_ckpt,
                          old_tensor_name=name, row_remapping=row_map,
                          col_remapping=col_map, initializing_values=values,
                          num_rows=rows, num_cols=cols)
    checkpoint_utils.set_initializer(part, state_ops.assign(part, matrix),
                                     matrix)


def _warm_start_var_with_vocab(var, vocab, prev_ckpt, prev_tensor_name=None):
    name = prev_tensor_name or _infer_var_name(var)
    parts = [var] if isinstance(var, variables.Variable) else var
    for part in parts:
        if part.get_shape().ndims != 2 or \
                part.dtype.base_dtype != dtypes.float32:
            raise ValueError("Only float32 matrices are warm-started with a "
                             "vocabulary; %s is %s %s" % (
                                 part.name, part.dtype.base_dtype.name,
                                 part.get_shape()))
        _warm_start_part(part, vocab, prev_ckpt, name)


def _grouped(vars_to_warm_start):
    """{name: [parts]} of what the caller chose."""
    keys = ops.GraphKeys
    if isinstance(vars_to_warm_start, str) or vars_to_warm_start is None:
        logging.info("Warm-starting variables only in TRAINABLE_VARIABLES.")
        chosen = ops.get_collection(keys.TRAINABLE_VARIABLES,
                                    scope=vars_to_warm_start)
    elif isinstance(vars_to_warm_start, list):
        if all(isinstance(v, str) for v in vars_to_warm_start):
            chosen = []
            for pattern in vars_to_warm_start:
                chosen += ops.get_collection(keys.GLOBAL_VARIABLES,
                                             scope=pattern)
        elif all(isinstance(v, variables.Variable)
                 for v in vars_to_warm_start):
            chosen = vars_to_warm_start
        else:
            raise ValueError("If `vars_to_warm_start` is a list, it must be "
                             "all `Variable` or all `str`.  Given types are "
                             "{}".format([type(v)
                                          for v in vars_to_warm_start]))
    else:
        raise ValueError("`vars_to_warm_start must be a `list` or `str`.  "
                         "Given type is {}".format(type(vars_to_warm_start)))
    grouped = {}
    for var in chosen:
        parts = list(var) if isinstance(
            var, partitioned_variables.PartitionedVariable) else [var]
        for part in parts:
            group = grouped.setdefault(_infer_var_name([part]), [])
            if not any(part is other for other in group):
                group.append(part)
    return grouped


def warm_start(ckpt_to_initialize_from, vars_to_warm_start=".*",
               var_name_to_vocab_info=None, var_name_to_prev_var_name=None):
    """Initializes variables from a checkpoint, by name and vocabulary."""
    vocabs = dict(var_name_to_vocab_info or {})
    renamed = dict(var_name_to_prev_var_name or {})
    logging.info("Warm-starting from: %s", ckpt_to_initialize_from)
    grouped = _grouped(vars_to_warm_start)
    prefix = checkpoint_utils._checkpoint_file(ckpt_to_initialize_from)
    if prefix is None or not checkpoint_management.checkpoint_exists(prefix):
        # For its error.
        checkpoint_utils.load_checkpoint(ckpt_to_initialize_from)
    unused_vocabs, unused_names = set(vocabs), set(renamed)
    count = 0
    for name, parts in grouped.items():
        # One that is whole is no list.
        var = parts if len(parts) > 1 or parts[0]._save_slice_info else \
            parts[0]
        old_name = renamed.get(name)
        unused_names.discard(name)
        vocab = vocabs.get(name)
        if vocab is not None:
            unused_vocabs.discard(name)
            logging.debug("Warm-starting variable: %s; current_vocab: %s "
                          "current_vocab_size: %s prev_vocab: %s "
                          "prev_vocab_size: %s current_oov: %s prev_tensor: "
                          "%s initializer: %s", name, vocab.new_vocab,
                          vocab.new_vocab_size, vocab.old_vocab,
                          vocab.old_vocab_size if vocab.old_vocab_size > 0
                          else "All", vocab.num_oov_buckets,
                          old_name or "Unchanged",
                          vocab.backup_initializer or "zero-initialized")
            _warm_start_var_with_vocab(var, vocab, prefix, old_name)
            count += 1
        elif vars_to_warm_start:
            logging.debug("Warm-starting variable: %s; prev_var_name: %s",
                          name, old_name or "Unchanged")
            _warm_start_var(var, prefix, old_name)
            count += 1
    logging.info("Warm-started %d variables.", count)
    if unused_names:
        raise ValueError(
            "You provided the following variables in var_name_to_prev_var_name "
            "that were not used: {0}.  Perhaps you misspelled them?  Here is "
            "the list of viable variable names: {1}".format(
                unused_names, grouped.keys()))
    if unused_vocabs:
        raise ValueError(
            "You provided the following variables in var_name_to_vocab_info "
            "that were not used: {0}.  Perhaps you misspelled them?  Here is "
            "the list of viable variable names: {1}".format(
                unused_vocabs, grouped.keys()))
