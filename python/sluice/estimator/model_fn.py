"""What a model function gets and returns."""

import collections

from sluice.framework import ops
from sluice.framework import tensor_shape
from sluice.training import monitored_session
from sluice.training import session_run_hook


class ModeKeys(object):
    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"


_Fields = collections.namedtuple("EstimatorSpec", [
    "mode", "predictions", "loss", "train_op", "eval_metric_ops",
    "export_outputs", "training_chief_hooks", "training_hooks", "scaffold",
    "evaluation_hooks", "prediction_hooks"])


class EstimatorSpec(_Fields):
    """The ops of a model in one mode."""

    def __new__(cls, mode, predictions=None, loss=None, train_op=None,
                eval_metric_ops=None, export_outputs=None,
                training_chief_hooks=None, training_hooks=None, scaffold=None,
                evaluation_hooks=None, prediction_hooks=None):
        if train_op is None and mode == ModeKeys.TRAIN:
            raise ValueError("Missing train_op.")
        if train_op is not None:
            _check_element(train_op, "train_op")
        loss = _checked_loss(loss, mode)
        if predictions is None:
            if mode == ModeKeys.PREDICT:
                raise ValueError("Missing predictions.")
            predictions = {}
        values = predictions.values() if isinstance(predictions, dict) else \
            [predictions]
        for value in values:
            if not isinstance(value, ops.Tensor):
                raise TypeError("predictions must be Tensor, given: %s" %
                                (value,))
        hooks = []
        for group in (training_chief_hooks, training_hooks, evaluation_hooks,
                      prediction_hooks):
            hooks.append(tuple(group or ()))
            for hook in hooks[-1]:
                if not isinstance(hook, session_run_hook.SessionRunHook):
                    raise TypeError("All hooks must be SessionRunHook "
                                    "instances, given: %s" % (hook,))
        scaffold = scaffold or monitored_session.Scaffold()
        if not isinstance(scaffold, monitored_session.Scaffold):
            raise TypeError("scaffold must be tf.train.Scaffold. Given: %s" %
                            (scaffold,))
        return super().__new__(
            cls, mode, predictions, loss, train_op,
            _checked_metrics(eval_metric_ops), export_outputs, hooks[0],
            hooks[1], scaffold, hooks[2], hooks[3])


def _check_element(element, name):
    if not isinstance(element, (ops.Tensor, ops.Operation)) and \
            not hasattr(element, "_as_graph_element"):
        raise TypeError("%s must be Operation or Tensor, given: %s" %
                        (name, element))


def _checked_loss(loss, mode):
    if loss is None:
        if mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
            raise ValueError("Missing loss.")
        return None
    loss = ops.convert_to_tensor(loss)
    if not loss.shape.is_compatible_with(tensor_shape.TensorShape([])):
        if loss.shape.num_elements() != 1:
            raise ValueError("Loss must be scalar, given: %s" % (loss,))
        from sluice.ops import array_ops
        return array_ops.reshape(loss, [])
    return loss


def _checked_metrics(metrics):
    if metrics is None:
        return {}
    if not isinstance(metrics, dict):
        raise TypeError("eval_metric_ops must be a dict, given: %s" %
                        (metrics,))
    for key, pair in metrics.items():
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(
                "Values of eval_metric_ops must be (metric_value, update_op) "
                "tuples, given: %s for key: %s" % (pair, key))
        for element in pair:
            _check_element(element, "eval_metric_ops")
    return metrics
