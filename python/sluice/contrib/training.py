"""tf.contrib.training."""

from sluice.contrib.bucketing import (  # noqa: F401
    bucket, bucket_by_sequence_length, rejection_sample, stratified_sample)
from sluice.contrib.hparams import HParams  # noqa: F401
from sluice.framework import errors
from sluice.framework import ops
from sluice.ops import array_ops
from sluice.ops import clip_ops
from sluice.ops import control_flow_ops
from sluice.ops import variables
from sluice.platform import tf_logging as logging
from sluice.training import monitored_session
from sluice.training import optimizer as optimizer_lib
from sluice.training import queue_runner_impl
from sluice.training import training_util
from sluice.training.checkpoint_management import (  # noqa: F401
    checkpoints_iterator, wait_for_new_checkpoint)
from sluice.training.device_setter import (  # noqa: F401
    GreedyLoadBalancingStrategy, RandomStrategy, byte_size_load_fn)
from sluice.training.evaluation import (  # noqa: F401
    StopAfterNEvalsHook, SummaryAtEndHook, evaluate_once, evaluate_repeatedly,
    get_or_create_eval_step)
from sluice.training.training_util import (  # noqa: F401
    get_or_create_global_step)

_USE_GLOBAL_STEP = 0


def _values(gradient):
    return gradient.values if isinstance(gradient, ops.IndexedSlices) else \
        gradient


def _with_values(gradient, values):
    if isinstance(gradient, ops.IndexedSlices):
        return ops.IndexedSlices(values, gradient.indices,
                                 gradient.dense_shape)
    return values


def add_gradients_summaries(grads_and_vars):
    """Histograms and norms of the gradients."""
    from sluice.summary import summary
    summaries = []
    for gradient, variable in grads_and_vars:
        if gradient is None:
            logging.info("Var %s has no gradient", variable.op.name)
            continue
        values = _values(gradient)
        name = variable.op.name
        summaries.append(summary.histogram(name + "_gradient", values))
        summaries.append(summary.scalar(name + "_gradient_norm",
                                        clip_ops.global_norm([values])))
    return summaries


def clip_gradient_norms(gradients_to_variables, max_norm):
    """Clips each gradient by its own norm."""
    return [(gradient if gradient is None else
             _with_values(gradient, clip_ops.clip_by_norm(_values(gradient),
                                                          max_norm)), variable)
            for gradient, variable in gradients_to_variables]


def clip_gradient_norms_fn(max_norm):
    return lambda pairs: clip_gradient_norms(pairs, max_norm)


def multiply_gradients(grads_and_vars, gradient_multipliers):
    """Multiplies the gradients of the variables named in the dict (by variable
    or name)."""
    if not isinstance(grads_and_vars, list):
        raise ValueError("`grads_and_vars` must be a list.")
    if not gradient_multipliers:
        raise ValueError("`gradient_multipliers` is empty.")
    if not isinstance(gradient_multipliers, dict):
        raise ValueError("`gradient_multipliers` must be a dict.")
    result = []
    for gradient, variable in grads_and_vars:
        key = variable if variable in gradient_multipliers else \
            variable.op.name
        if key in gradient_multipliers:
            if gradient is None:
                raise ValueError("Requested multiple of `None` gradient.")
            factor = ops.convert_to_tensor(
                gradient_multipliers[key], dtype=_values(gradient).dtype)
            gradient = _with_values(gradient, _values(gradient) * factor)
        result.append((gradient, variable))
    return result


def create_train_op(total_loss, optimizer, global_step=_USE_GLOBAL_STEP,
                    update_ops=None, variables_to_train=None,
                    transform_grads_fn=None, summarize_gradients=False,
                    gate_gradients=optimizer_lib.Optimizer.GATE_OP,
                    aggregation_method=None,
                    colocate_gradients_with_ops=False, check_numerics=True):
    """A tensor that updates the variables and is the loss."""
    if global_step is _USE_GLOBAL_STEP:
        global_step = training_util.get_or_create_global_step()
    collected = set(ops.get_collection(ops.GraphKeys.UPDATE_OPS))
    update_ops = collected if update_ops is None else set(update_ops)
    if not collected.issubset(update_ops):
        logging.warning("update_ops in create_train_op does not contain all "
                        "the update_ops in GraphKeys.UPDATE_OPS")
    if update_ops:
        with ops.control_dependencies(update_ops):
            barrier = control_flow_ops.no_op(name="update_barrier")
        total_loss = _with_dependencies([barrier], total_loss)
    trainable = variables.trainable_variables()
    if variables_to_train is None:
        variables_to_train = trainable
    else:
        for variable in variables_to_train:
            assert variable in trainable
    assert variables_to_train
    pairs = optimizer.compute_gradients(
        total_loss, variables_to_train, gate_gradients=gate_gradients,
        aggregation_method=aggregation_method,
        colocate_gradients_with_ops=colocate_gradients_with_ops)
    if transform_grads_fn:
        pairs = transform_grads_fn(pairs)
    if summarize_gradients:
        with ops.name_scope("summarize_grads"):
            add_gradients_summaries(pairs)
    updated = optimizer.apply_gradients(pairs, global_step=global_step)
    with ops.name_scope("train_op"):
        if check_numerics:
            total_loss = array_ops.check_numerics(
                total_loss, "LossTensor is inf or nan")
        train_op = _with_dependencies([updated], total_loss)
    collection = ops.get_collection_ref(ops.GraphKeys.TRAIN_OP)
    if train_op not in collection:
        collection.append(train_op)
    return train_op


def _with_dependencies(dependencies, tensor):
    with ops.name_scope("control_dependency", values=[tensor]), \
            ops.control_dependencies(dependencies):
        return array_ops.identity(tensor)


def _refuse(name, instead):
    raise NotImplementedError("tf.contrib.training.%s is not part of Sluice; "
                              "use %s." % (name, instead))


def weighted_resample(inputs, weights, overall_rate, scope=None,
                      mean_decay=0.999, seed=None):
    _refuse("weighted_resample", "tf.multinomial and tf.gather")


def resample_at_rate(inputs, rates, scope=None, seed=None, back_prop=False):
    _refuse("resample_at_rate", "tf.multinomial and tf.gather")


class FeedingQueueRunner(queue_runner_impl.QueueRunner):
    """Runs enqueue operations, each with what its function gives to feed."""

    def __init__(self, queue=None, enqueue_ops=None, close_op=None,
                 cancel_op=None, feed_fns=None,
                 queue_closed_exception_types=None):
        super().__init__(
            queue, enqueue_ops, close_op, cancel_op,
            queue_closed_exception_types=queue_closed_exception_types or
            (errors.OutOfRangeError, errors.CancelledError))
        if feed_fns is None:
            feed_fns = [None] * len(enqueue_ops)
        elif len(feed_fns) != len(enqueue_ops):
            raise ValueError("If feed_fns is not None, it must have the same "
                             "length as enqueue_ops.")
        self._feed_fns = feed_fns

    def _make_enqueue(self, sess, enqueue_op, index):
        feed = self._feed_fns[index]
        if feed is None:
            return super()._make_enqueue(sess, enqueue_op, index)
        return lambda: sess.run(enqueue_op, feed_dict=feed())

    def to_proto(self):
        raise NotImplementedError("FeedingQueueRunner does not support "
                                  "serialization to proto.")

    @staticmethod
    def from_proto(queue_runner_def, import_scope=None):
        raise NotImplementedError("FeedingQueueRunner does not support "
                                  "serialization to proto.")


def train(train_op, logdir, master="", is_chief=True, scaffold=None,
          hooks=None, chief_only_hooks=None, save_checkpoint_secs=600,
          save_summaries_steps=100, config=None, max_wait_secs=7200,
          run_metadata=None):
    """Runs `train_op` until a hook asks to stop; its last value."""
    if logdir is None and is_chief and (save_summaries_steps or
                                        save_checkpoint_secs):
        raise ValueError("logdir cannot be None when save_summaries_steps is "
                         "not None")
    loss = None
    with monitored_session.MonitoredTrainingSession(
            master=master, is_chief=is_chief, checkpoint_dir=logdir,
            scaffold=scaffold, hooks=hooks, chief_only_hooks=chief_only_hooks,
            save_checkpoint_secs=save_checkpoint_secs,
            save_summaries_steps=save_summaries_steps, config=config,
            max_wait_secs=max_wait_secs) as session:
        while not session.should_stop():
            loss = session.run(train_op, run_metadata=run_metadata)
    return loss
