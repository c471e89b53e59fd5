"""Scaffold: the operations a training session needs."""

from sluice.framework import ops
from sluice.ops import array_ops
from sluice.ops import control_flow_ops
from sluice.ops import variables
from sluice.platform import tf_logging as logging
from sluice.summary import summary
from sluice.training import resources
from sluice.training import saver as training_saver

_GraphKeys = ops.GraphKeys


class Scaffold(object):
    """The operations a training session needs; makes those not given."""

    def __init__(self, init_op=None, init_feed_dict=None, init_fn=None,
                 ready_op=None, ready_for_local_init_op=None,
                 local_init_op=None, summary_op=None, saver=None,
                 copy_from_scaffold=None):
        if copy_from_scaffold is not None and not isinstance(
                copy_from_scaffold, Scaffold):
            raise TypeError("copy_from_scaffold is not a Scaffold instance.")

        def pick(value, name):
            if value is None and copy_from_scaffold is not None:
                return getattr(copy_from_scaffold, name)
            return value

        self._init_op = pick(init_op, "init_op")
        self._init_feed_dict = pick(init_feed_dict, "init_feed_dict")
        self._user_init_fn = pick(init_fn, "_user_init_fn")
        self._ready_op = pick(ready_op, "ready_op")
        self._ready_for_local_init_op = pick(ready_for_local_init_op,
                                             "ready_for_local_init_op")
        self._local_init_op = pick(local_init_op, "local_init_op")
        self._summary_op = pick(summary_op, "summary_op")
        self._saver = pick(saver, "saver")
        self._init_fn = None
        if self._user_init_fn:
            self._init_fn = lambda sess: self._user_init_fn(self, sess)

    init_op = property(lambda self: self._init_op)
    init_feed_dict = property(lambda self: self._init_feed_dict)
    init_fn = property(lambda self: self._init_fn)
    ready_op = property(lambda self: self._ready_op)
    ready_for_local_init_op = property(
        lambda self: self._ready_for_local_init_op)
    local_init_op = property(lambda self: self._local_init_op)
    summary_op = property(lambda self: self._summary_op)
    saver = property(lambda self: self._saver)

    def finalize(self):
        """Makes what is missing and closes the graph."""
        get = Scaffold.get_or_default
        if self._init_op is None:
            self._init_op = get("init_op", _GraphKeys.INIT_OP, lambda: (
                control_flow_ops.group(
                    variables.global_variables_initializer(),
                    resources.initialize_resources(
                        resources.shared_resources()))))
        if self._ready_op is None:
            self._ready_op = get("ready_op", _GraphKeys.READY_OP, lambda: (
                array_ops.concat([
                    variables.report_uninitialized_variables(),
                    resources.report_uninitialized_resources()], 0)))
        if self._ready_for_local_init_op is None:
            self._ready_for_local_init_op = get(
                "ready_for_local_init_op", _GraphKeys.READY_FOR_LOCAL_INIT_OP,
                lambda: array_ops.concat([
                    variables.report_uninitialized_variables(
                        variables.global_variables()),
                    resources.report_uninitialized_resources(
                        resources.shared_resources())], 0))
        if self._local_init_op is None:
            self._local_init_op = get("local_init_op",
                                      _GraphKeys.LOCAL_INIT_OP,
                                      Scaffold.default_local_init_op)
        if self._summary_op is None:
            self._summary_op = get("summary_op", _GraphKeys.SUMMARY_OP,
                                   summary.merge_all)
        if self._saver is None:
            self._saver = _get_saver_or_default()
        self._saver.build()
        ops.get_default_graph().finalize()
        logging.info("Graph was finalized.")
        return self

    @staticmethod
    def get_or_default(arg_name, collection_key, default_constructor):
        elements = ops.get_collection(collection_key)
        if elements:
            if len(elements) > 1:
                raise RuntimeError(
                    "More than one item in the collection \"%s\". Please "
                    "indicate which one to use by passing it to the "
                    "tf.Scaffold constructor as:  tf.Scaffold(%s=item to use)"
                    % (collection_key, arg_name))
            return elements[0]
        op = default_constructor()
        if op is not None:
            ops.add_to_collection(collection_key, op)
        return op

    @staticmethod
    def default_local_init_op():
        return control_flow_ops.group(
            variables.local_variables_initializer(),
            resources.tables_initializer(),
            resources.initialize_resources(resources.local_resources()))


def _get_saver_or_default():
    savers = ops.get_collection(_GraphKeys.SAVERS)
    if savers:
        if len(savers) > 1:
            raise RuntimeError(
                "More than one item in collection %s. Please indicate which "
                "one to use by passing it to the constructor." %
                _GraphKeys.SAVERS)
        return savers[0]
    saver = training_saver.Saver(sharded=True, allow_empty=True)
    ops.add_to_collection(_GraphKeys.SAVERS, saver)
    return saver
