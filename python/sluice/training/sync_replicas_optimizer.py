"""SyncReplicasOptimizer: one step from the gradients of several workers."""

import time

from sluice.framework import dtypes
from sluice.framework import errors
from sluice.framework import ops
from sluice.framework.op_builder import apply_op
from sluice.ops import array_ops
from sluice.ops import control_flow_ops
from sluice.ops import data_flow_ops
from sluice.ops import variables
from sluice.platform import tf_logging as logging
from sluice.training import optimizer
from sluice.training import session_manager
from sluice.training import session_run_hook
from sluice.training import sync_replicas_runner


def _assign(variable, value):
    if getattr(variable, "_is_resource", False):
        return variable.assign(value)
    return apply_op("Assign", None, ref=variable._ref(), value=value,
                    use_locking=True)


class SyncReplicasOptimizer(optimizer.Optimizer):
    """Averages gradients before another optimizer applies them.

    Workers push gradients to accumulators and wait for a token; a thread of
    the chief applies the average of enough of them and hands tokens out.

    A step that has waited for `step_timeout_secs` (None: for ever), and much
    longer than steps usually take, names the workers it waits for and lets the
    others compute what is missing. With `least_replicas` given, later steps
    are made of fewer gradients, but not of fewer than that.
    """

    def __init__(self, opt, replicas_to_aggregate, total_num_replicas=None,
                 variable_averages=None, variables_to_average=None,
                 use_locking=False, name="sync_replicas", replica_id=None,
                 step_timeout_secs=30, least_replicas=None):
        if total_num_replicas is None:
            total_num_replicas = replicas_to_aggregate
        if replica_id is not None:
            logging.warning("SyncReplicasOptimizer no longer has a "
                            "replica_id; it is ignored.")
        super().__init__(use_locking, name)
        logging.info("SyncReplicasV2: replicas_to_aggregate=%s; "
                     "total_num_replicas=%s", replicas_to_aggregate,
                     total_num_replicas)
        self._opt = opt
        self._replicas_to_aggregate = replicas_to_aggregate
        self._gradients_applied = False
        self._variable_averages = variable_averages
        self._variables_to_average = variables_to_average
        self._total_num_replicas = total_num_replicas
        self._tokens_per_step = max(total_num_replicas, replicas_to_aggregate)
        self._step_timeout_secs = step_timeout_secs
        self._least_replicas = replicas_to_aggregate if \
            least_replicas is None else least_replicas
        self._global_step = None
        self._sync_token_queue = None
        self._chief_queue_runner = None
        self._accumulator_list = []
        self._takes = []

    def compute_gradients(self, *args, **kwargs):
        return self._opt.compute_gradients(*args, **kwargs)

    def get_slot(self, *args, **kwargs):
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args, **kwargs):
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self):
        return self._opt.variables()

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """The operation a worker runs; its value is the new local step."""
        grads_and_vars = list(grads_and_vars)
        if not grads_and_vars:
            raise ValueError("Must supply at least one variable")
        if global_step is None:
            raise ValueError("Global step is required to check staleness")
        self._global_step = global_step
        # On this worker, also where variables go to parameter servers.
        anchor = control_flow_ops.no_op()
        with ops.colocate_with(anchor):
            self._local_step = variables.Variable(
                initial_value=0, trainable=False,
                collections=[ops.GraphKeys.LOCAL_VARIABLES],
                dtype=global_step.dtype.base_dtype,
                name="sync_rep_local_step")
        self.local_step_init_op = _assign(self._local_step, global_step)
        chief_init_ops = [self.local_step_init_op]
        self.ready_for_local_init_op = \
            variables.report_uninitialized_variables(
                variables.global_variables())
        with ops.name_scope(None, self._name):
            train_ops, aggregated = self._aggregate(grads_and_vars)
            with ops.device(global_step.device), ops.name_scope(""):
                update_op = self._opt.apply_gradients(aggregated, global_step)
            with ops.device(global_step.device), ops.name_scope(""):
                train_op = self._add_tokens(global_step, train_ops, update_op)
            for accumulator, device in self._accumulator_list:
                with ops.device(device):
                    chief_init_ops.append(accumulator.set_global_step(
                        global_step, name="SetGlobalStep"))
            self.chief_init_op = control_flow_ops.group(*chief_init_ops)
            self._gradients_applied = True
            return train_op

    def _aggregate(self, grads_and_vars):
        """(operations that push gradients, [(average, variable), …])."""
        train_ops, aggregated = [], []
        for grad, var in grads_and_vars:
            if grad is None:
                aggregated.append((None, var))
                continue
            shared_name = var.name + "/grad_accum"
            with ops.device(var.device):
                if isinstance(grad, ops.Tensor):
                    accumulator = data_flow_ops.ConditionalAccumulator(
                        grad.dtype, shape=var.get_shape(),
                        shared_name=shared_name)
                    train_ops.append(accumulator.apply_grad(
                        grad, local_step=self._local_step))
                    taken = accumulator.take_grad(self._replicas_to_aggregate)
                elif isinstance(grad, ops.IndexedSlices):
                    accumulator = data_flow_ops.SparseConditionalAccumulator(
                        grad.dtype, shape=(), shared_name=shared_name)
                    train_ops.append(accumulator.apply_indexed_slices_grad(
                        grad, local_step=self._local_step))
                    taken = accumulator.take_indexed_slices_grad(
                        self._replicas_to_aggregate)
                else:
                    raise ValueError("Unknown grad type!")
                aggregated.append((taken, var))
                self._takes.append(taken.op.inputs[1])
                self._accumulator_list.append((accumulator, var.device))
        return train_ops, aggregated

    def _add_tokens(self, global_step, train_ops, update_op):
        queue = data_flow_ops.FIFOQueue(
            -1, global_step.dtype.base_dtype, shapes=(), name="sync_token_q",
            shared_name="sync_token_q")
        self._sync_token_queue = queue
        # The queue runner closes a queue when it ends; not the one above.
        dummy_queue = data_flow_ops.FIFOQueue(
            1, dtypes.int32, shapes=(), name="dummy_queue",
            shared_name="dummy_queue")
        with ops.control_dependencies(train_ops):
            token = queue.dequeue()
        train_op = _assign(self._local_step, token)
        with ops.control_dependencies([update_op]):
            # Workers go on from the step this update made.
            tokens = array_ops.fill([self._tokens_per_step], global_step)
            sync_op = queue.enqueue_many((tokens,))
        if self._variable_averages is not None:
            with ops.control_dependencies([sync_op]), ops.name_scope(""):
                sync_op = self._variable_averages.apply(
                    self._variables_to_average)
        self._token_ops = sync_replicas_runner.TokenOps(
            queue, global_step, self._accumulator_list)
        self._chief_queue_runner = sync_replicas_runner.ChiefQueueRunner(
            dummy_queue, sync_op, self._token_ops, self._takes,
            self._replicas_to_aggregate, self._step_timeout_secs,
            self._least_replicas)
        return train_op

    def get_chief_queue_runner(self):
        if self._gradients_applied is False:
            raise ValueError("Should be called after apply_gradients().")
        return self._chief_queue_runner

    def get_init_tokens_op(self, num_tokens=-1):
        if self._gradients_applied is False:
            raise ValueError("get_init_tokens_op() should be called after "
                             "apply_gradients().")
        needed = self._replicas_to_aggregate - self._total_num_replicas
        if num_tokens == -1:
            num_tokens = self._replicas_to_aggregate
        elif num_tokens < needed:
            raise ValueError("Too few tokens to finish the first step: %d "
                             "(given) vs %d (needed)" % (num_tokens, needed))
        if num_tokens <= 0:
            return control_flow_ops.no_op(name="no_init_tokens")
        with ops.device(self._global_step.device), ops.name_scope(""):
            tokens = array_ops.fill([num_tokens], self._global_step)
            return self._sync_token_queue.enqueue_many((tokens,))

    def get_clean_up_op(self):
        """Before 1.0 this emptied queues; accumulators need nothing."""
        return control_flow_ops.no_op(name="no_clean_up")

    def make_session_run_hook(self, is_chief, num_tokens=-1):
        return _SyncReplicasOptimizerHook(self, is_chief, num_tokens)


SyncReplicasOptimizerV2 = SyncReplicasOptimizer


class _SyncReplicasOptimizerHook(session_run_hook.SessionRunHook):
    """Does what a session needs before synchronous training starts."""

    def __init__(self, sync_optimizer, is_chief, num_tokens):
        self._sync_optimizer = sync_optimizer
        self._is_chief = is_chief
        self._num_tokens = num_tokens
        self._wait = None

    def begin(self):
        opt = self._sync_optimizer
        if opt._gradients_applied is False:
            raise ValueError("SyncReplicasOptimizer.apply_gradient should be "
                             "called before using the hook.")
        self._ready_for_local_init_op = opt.ready_for_local_init_op
        opt._token_ops.build()
        if self._is_chief:
            self._local_init_op = opt.chief_init_op
            self._q_runner = opt.get_chief_queue_runner()
            self._init_tokens_op = opt.get_init_tokens_op(self._num_tokens)
        else:
            self._local_init_op = opt.local_step_init_op
            self._q_runner = None
            self._init_tokens_op = None

    def after_create_session(self, session, coord):
        ready, message = session_manager._ready(
            self._ready_for_local_init_op, session,
            "Model is not ready for SyncReplicasOptimizer local init.")
        if not ready:
            raise RuntimeError(
                "Init operations did not make model ready for "
                "SyncReplicasOptimizer local_init. Init op: %s, error: %s" %
                (self._local_init_op.name, message))
        session.run(self._local_init_op)
        if self._init_tokens_op is not None:
            session.run(self._init_tokens_op)
        if self._q_runner is not None:
            self._q_runner.training_ended = False
            self._q_runner.create_threads(session, coord=coord, daemon=True,
                                          start=True)
        else:
            self._wait = sync_replicas_runner.TokenWait(session, coord)
            self._wait.start()

    def before_run(self, run_context):
        if self._wait is not None:
            self._wait.began = time.time()

    def after_run(self, run_context, run_values):
        if self._wait is not None:
            self._wait.began = None

    def end(self, session):
        if self._q_runner is not None:
            # Closing the session tells the other workers.
            self._q_runner.training_ended = True
            return
        try:
            # The others go on, and need the token that this one holds.
            session.run(self._sync_optimizer._token_ops.hand_out)
        except errors.OpError as e:
            logging.vlog(1, "Ignored exception: %s", str(e))
