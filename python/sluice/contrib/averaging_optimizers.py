"""Optimizers whose workers train variables of their own and meet at times
(tf.contrib.opt: ModelAverage, ElasticAverage, AGN).

A custom getter puts every trainable variable on the worker, among its local
variables, and a second one, the center, where the parameter servers are:
`global_center_variable/<name>`. Checkpoints have the centers.
"""

from sluice.framework import dtypes
from sluice.framework import ops
from sluice.ops import array_ops
from sluice.ops import control_flow_ops
from sluice.ops import data_flow_ops
from sluice.ops import math_ops
from sluice.ops import state_ops
from sluice.ops import variables
from sluice.training import optimizer
from sluice.training import saver
from sluice.training import session_run_hook

_GraphKeys = ops.GraphKeys

GLOBAL_VARIABLE_NAME = "global_center_variable"
LOCAL_VARIABLE_NAME = "local_center_variable"
GRAD_VARIABLE_NAME = "grad_variable"


class _WorkerVariables(object):
    """Gives a program the worker's variables, and remembers those that go
    with them."""

    def __init__(self, worker_device):
        self._worker_device = worker_device
        self._global_map = {}

    def _make_companions(self, getter, name, local, *args, **kwargs):
        raise NotImplementedError

    def _make_center(self, getter, name, initializer, *args, **kwargs):
        return getter(name="%s/%s" % (GLOBAL_VARIABLE_NAME, name),
                      initializer=initializer, trainable=False,
                      collections=[_GraphKeys.GLOBAL_VARIABLES], *args,
                      **kwargs)

    def _make_local(self, getter, name, trainable, initializer, *args,
                    **kwargs):
        return getter(name=name, initializer=initializer, trainable=trainable,
                      collections=[_GraphKeys.LOCAL_VARIABLES], *args,
                      **kwargs)

    def __call__(self, getter, name, trainable, collections, *args, **kwargs):
        initializer = kwargs.pop("initializer", None)
        if trainable is None or trainable:
            with ops.device(self._worker_device):
                local = self._make_local(getter, name, True, initializer,
                                         *args, **kwargs)
            if kwargs.get("reuse") is not True and \
                    local not in self._global_map:
                self._make_companions(getter, name, local, initializer, *args,
                                      **kwargs)
            return local
        kwargs.update(trainable=trainable, collections=collections,
                      initializer=initializer)
        if collections and _GraphKeys.LOCAL_VARIABLES in collections:
            with ops.device(self._worker_device):
                return getter(name, *args, **kwargs)
        return getter(name, *args, **kwargs)


class ModelAverageCustomGetter(_WorkerVariables):
    """For ModelAverageOptimizer; a center begins as the worker's variable."""

    def _make_companions(self, getter, name, local, initializer, *args,
                         **kwargs):
        kwargs.pop("shape", None)
        kwargs.pop("dtype", None)
        self._global_map[local] = self._make_center(
            getter, name, local.initialized_value(), *args, **kwargs)


class ElasticAverageCustomGetter(_WorkerVariables):
    """For ElasticAverageOptimizer; workers keep a copy of each center."""

    def __init__(self, worker_device):
        super().__init__(worker_device)
        self._local_map = {}

    def _make_companions(self, getter, name, local, initializer, *args,
                         **kwargs):
        self._global_map[local] = self._make_center(getter, name, initializer,
                                                    *args, **kwargs)
        with ops.device(self._worker_device):
            self._local_map[local] = self._make_local(
                getter, "%s/%s" % (LOCAL_VARIABLE_NAME, name), False,
                initializer, *args, **kwargs)


class AGNCustomGetter(_WorkerVariables):
    """For AGNOptimizer; workers sum gradients in a variable of their own."""

    def __init__(self, worker_device):
        super().__init__(worker_device)
        self._grad_map = {}

    def _make_companions(self, getter, name, local, initializer, *args,
                         **kwargs):
        self._global_map[local] = self._make_center(getter, name, initializer,
                                                    *args, **kwargs)
        with ops.device(self._worker_device):
            self._grad_map[local] = self._make_local(
                getter, "%s/%s" % (GRAD_VARIABLE_NAME, name), False,
                initializer, *args, **kwargs)


def _read(var):
    """Its value now: read where it lives, as what goes over the network may
    have left before the nodes that this waits for."""
    with ops.colocate_with(var.op):
        return var.read_value()


def _trained(grads_and_vars):
    return [v for g, v in grads_and_vars if g is not None]


class _Meeting(optimizer.Optimizer):
    """Trains with `_opt`, and does something else every so many steps."""

    def __init__(self, opt, period, custom_getter, use_locking, name):
        super().__init__(use_locking, name)
        self._opt = opt
        self._period = period
        self._global_map = custom_getter._global_map
        self._local_step = variables.Variable(
            initial_value=0, trainable=False,
            collections=[_GraphKeys.LOCAL_VARIABLES], name="local_step")
        self._opt._prepare()

    def _apply_locally(self, grads_and_vars):
        """Trains the worker's variables; what is kept for that is local."""
        known = set(variables.global_variables())
        update = self._opt.apply_gradients(grads_and_vars)
        graph = ops.get_default_graph()
        made = graph.get_collection_ref(_GraphKeys.GLOBAL_VARIABLES)
        new = [v for v in made if v not in known]
        made[:] = [v for v in made if v in known]
        graph.get_collection_ref(_GraphKeys.LOCAL_VARIABLES).extend(new)
        return update

    def _count_step(self):
        return state_ops.assign_add(self._local_step, 1,
                                    name="local_step_update").op

    def _when_due(self, after, meet):
        """`meet` when the period has ended, all `after` the given."""
        with ops.control_dependencies(after):
            step = _read(self._local_step)
            due = math_ops.equal(math_ops.mod(step, self._period), 0)
            return control_flow_ops.cond(due, meet, control_flow_ops.no_op)

    def _count_global_step(self, global_step):
        if global_step is None:
            return []
        with ops.colocate_with(global_step):
            return [state_ops.assign_add(global_step, 1)]


class ModelAverageOptimizer(_Meeting):
    """Every `interval_steps` all workers take the mean of their variables.

    All of them wait for each other then: the chief takes the mean and lets the
    others go on.
    """

    def __init__(self, opt, num_worker, is_chief, ma_custom_getter,
                 interval_steps=100, use_locking=True,
                 name="ModelAverageOptimizer"):
        super().__init__(opt, interval_steps, ma_custom_getter, use_locking,
                         name)
        self._num_worker = num_worker
        self._is_chief = is_chief
        self._chief_init_op = None
        self._accumulators = []

    def compute_gradients(self, *args, **kwargs):
        return self._opt.compute_gradients(*args, **kwargs)

    def _make_accumulator(self, center):
        with ops.name_scope(self._name + "/global"), \
                ops.device(center.device):
            return data_flow_ops.ConditionalAccumulator(
                center.dtype.base_dtype, shape=center.get_shape(),
                shared_name=center.name + "/var_accum")

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """A tensor that trains, and meets the others when it is time."""
        if not grads_and_vars:
            raise ValueError("Must supply at least one variable")
        if global_step is None:
            raise ValueError("Global step is required")
        apply_updates = self._opt.apply_gradients(grads_and_vars)
        with ops.control_dependencies([apply_updates]):
            counted = self._count_step()
        local_vars = _trained(grads_and_vars)
        centers = [self._global_map[v] for v in local_vars]
        with ops.colocate_with(global_step):
            queue = data_flow_ops.FIFOQueue(-1, [dtypes.bool_], shapes=[[]],
                                            shared_name="sync_queue")
        self._accumulators = [self._make_accumulator(c) for c in centers]

        def meet():
            given = []
            step = _read(global_step)
            for accumulator, center, var in zip(self._accumulators, centers,
                                                local_vars):
                with ops.device(center.device):
                    given.append(accumulator.apply_grad(_read(var), step))
            with ops.control_dependencies(given):
                go_on = self._take_means(centers, queue, global_step) if \
                    self._is_chief else queue.dequeue()
            with ops.control_dependencies([go_on]):
                return self._take_centers(local_vars)
        update = self._when_due([counted], meet)
        self._chief_init_op = control_flow_ops.group(*[
            a.set_global_step(global_step, name="SetGlobalStep")
            for a in self._accumulators])
        return update

    def _take_means(self, centers, queue, global_step):
        taken = []
        for accumulator, center in zip(self._accumulators, centers):
            with ops.device(center.device):
                taken.append(center.assign(
                    accumulator.take_grad(self._num_worker),
                    use_locking=self._use_locking))
        taken += self._count_global_step(global_step)
        with ops.control_dependencies(taken), ops.colocate_with(global_step):
            return queue.enqueue_many(array_ops.fill([self._num_worker - 1],
                                                     False))

    def _take_centers(self, local_vars):
        taken = []
        for var in local_vars:
            with ops.device(var.device):
                taken.append(var.assign(_read(self._global_map[var])))
        return control_flow_ops.group(*taken)

    def get_init_op(self):
        """Gives the worker's variables the values of the centers."""
        return self._take_centers(variables.trainable_variables())

    def make_session_run_hook(self):
        return _ModelAverageOptimizerHook(self, self._is_chief)


class ElasticAverageOptimizer(_Meeting):
    """Every `communication_period` a worker and the center draw near.

    Elastic averaging SGD (arXiv 1412.6651): with the difference d of the
    worker's variable and the center, the worker moves by -moving_rate * d and
    the center by moving_rate * d. In between the loss has rho / 2 * d^2 more.
    """

    # What all workers together move the center by, at most.
    BETA = 0.9

    def __init__(self, opt, num_worker, ea_custom_getter,
                 communication_period=10, moving_rate=None, rho=None,
                 use_locking=True, synchronous=False,
                 name="ElasticAverageOptimizer"):
        super().__init__(opt, communication_period, ea_custom_getter,
                         use_locking, name)
        self._num_worker = num_worker
        self._local_map = ea_custom_getter._local_map
        self._synchronous = synchronous
        self._moving_rate = self.BETA / communication_period / num_worker \
            if moving_rate is None else moving_rate
        if rho is None:
            rate = getattr(opt, "_learning_rate", None)
            rho = self._moving_rate / (opt._lr if rate is None else rate)
        self._rho = rho

    def compute_gradients(self, loss, var_list=None,
                          gate_gradients=optimizer.Optimizer.GATE_OP,
                          aggregation_method=None,
                          colocate_gradients_with_ops=False, grad_loss=None):
        if not var_list:
            var_list = variables.trainable_variables()
        distances = [math_ops.l2_loss(math_ops.subtract(
            v, self._local_map[v])) for v in var_list]
        total = distances[0] if len(distances) == 1 else \
            math_ops.add_n(distances)
        return self._opt.compute_gradients(
            loss + self._rho * total, var_list, gate_gradients,
            aggregation_method, colocate_gradients_with_ops, grad_loss)

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """A tensor that trains, and meets the center when it is time."""
        apply_updates = self._apply_locally(grads_and_vars)
        with ops.control_dependencies([apply_updates]):
            counted = self._count_step()
        local_vars = _trained(grads_and_vars)

        def meet():
            copies = [state_ops.assign(self._local_map[v],
                                       _read(self._global_map[v]))
                      for v in local_vars]
            with ops.control_dependencies([c.op for c in copies]):
                return control_flow_ops.group(*self._draw_near(
                    local_vars, copies, global_step))
        return self._when_due([counted], meet)

    def _draw_near(self, local_vars, centers, global_step):
        differences = []
        for var, center in zip(local_vars, centers):
            with ops.device(var.device):
                differences.append(math_ops.subtract(_read(var), center))
        updates = []
        for var, difference in zip(local_vars, differences):
            with ops.device(var.device):
                updates.append(state_ops.assign_sub(
                    var, self._moving_rate * difference))
        for var, difference in zip(local_vars, differences):
            center = self._global_map[var]
            with ops.device(center.device):
                updates.append(state_ops.assign_add(
                    center, self._moving_rate * difference))
        return updates + self._count_global_step(global_step)

    def get_init_op(self, task_index):
        """Gives the worker's variables the values of the centers; if it is
        synchronous, when all workers are there."""
        taken = []
        for var in variables.trainable_variables():
            with ops.device(var.device):
                value = _read(self._global_map[var])
                taken.append(state_ops.assign(var, value,
                                              use_locking=self._use_locking))
                taken.append(state_ops.assign(self._local_map[var], value,
                                              use_locking=self._use_locking))
        taken = control_flow_ops.group(*taken)
        return self._after_all(task_index, taken) if self._synchronous else \
            taken

    def _after_all(self, task_index, done):
        """Every worker tells the others, and waits for what they tell it."""
        queues = [data_flow_ops.FIFOQueue(
            self._num_worker, [dtypes.bool_], shapes=[[]],
            shared_name="variable_init_sync_queue%d" % i)
            for i in range(self._num_worker)]
        said = ops.convert_to_tensor(False)
        with ops.control_dependencies([done]):
            told = [queue.enqueue(said) for i, queue in enumerate(queues)
                    if i != task_index]
        heard = queues[task_index].dequeue_many(self._num_worker - 1)
        return control_flow_ops.group(heard, *told)

    def make_session_run_hook(self, is_chief, task_index):
        return _TakesCentersHook(self, is_chief, task_index)

    def swapping_saver(self, var_list=None, name="swapping_saver", **kwargs):
        """A Saver that has the centers under the names of the variables."""
        if var_list is None:
            var_list = variables.trainable_variables()
        if not isinstance(var_list, dict):
            var_list = {v.op.name: v for v in var_list}
        swapped = {name: self._global_map.get(v, v)
                   for name, v in var_list.items()}
        return saver.Saver(swapped, name=name, **kwargs)


class AGNOptimizer(_Meeting):
    """Every `communication_period` the mean of a worker's gradients trains the
    center, whose value the worker then takes.

    Accumulated gradient normalization (arXiv 1710.02368). Between, the worker
    trains its own variables with each gradient.
    """

    def __init__(self, optimizer, num_worker, custom_getter,
                 communication_period=10, use_locking=True,
                 name="AGNOptimizer"):
        super().__init__(optimizer, communication_period, custom_getter,
                         use_locking, name)
        self._num_worker = num_worker
        self._grad_map = custom_getter._grad_map

    def compute_gradients(self, loss, var_list=None,
                          gate_gradients=optimizer.Optimizer.GATE_OP,
                          aggregation_method=None,
                          colocate_gradients_with_ops=False, grad_loss=None):
        return self._opt.compute_gradients(
            loss, var_list, gate_gradients, aggregation_method,
            colocate_gradients_with_ops, grad_loss)

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """A tensor that trains, and meets the center when it is time."""
        before = [self._apply_locally(grads_and_vars)]
        for grad, var in grads_and_vars:
            if grad is None:
                continue
            total = self._grad_map[var]
            before.append(
                total.scatter_add(grad).op
                if isinstance(grad, ops.IndexedSlices)
                else state_ops.assign_add(total, grad).op)
        local_vars = _trained(grads_and_vars)

        def meet():
            means = [self._grad_map[v].assign(
                _read(self._grad_map[v]) / float(self._period),
                use_locking=self._use_locking) for v in local_vars]
            with ops.control_dependencies([m.op for m in means]):
                updated = self._opt.apply_gradients(
                    [(_read(self._grad_map[v]), self._global_map[v])
                     for v in local_vars])
            with ops.control_dependencies([updated]):
                return control_flow_ops.group(
                    *self._count_global_step(global_step) +
                    self._start_anew(local_vars))
        return self._when_due(before + [self._count_step()], meet)

    def _start_anew(self, local_vars):
        return [v.assign(_read(self._global_map[v]),
                         use_locking=self._use_locking) for v in local_vars] \
            + [self._grad_map[v].assign(array_ops.zeros_like(
                self._grad_map[v]), use_locking=self._use_locking)
               for v in local_vars]

    def get_init_op(self, task_index):
        """Gives the worker's variables the values of the centers."""
        return control_flow_ops.group(*self._start_anew(
            variables.trainable_variables()))

    def make_session_run_hook(self, is_chief, task_index):
        return _TakesCentersHook(self, is_chief, task_index)


class _TakesCentersHook(session_run_hook.SessionRunHook):
    """Lets a worker start from the centers."""

    def __init__(self, averaging, is_chief, task_index):
        self._averaging = averaging
        self._is_chief = is_chief
        self._task_index = task_index

    def begin(self):
        self._init_op = self._averaging.get_init_op(self._task_index)

    def after_create_session(self, session, coord):
        session.run(self._init_op)


class _ModelAverageOptimizerHook(session_run_hook.SessionRunHook):
    """The same; and the chief tells the accumulators of the step."""

    def __init__(self, averaging, is_chief):
        self._averaging = averaging
        self._is_chief = is_chief

    def begin(self):
        if self._averaging._chief_init_op is None:
            raise ValueError("apply_gradients should be called before using "
                             "the hook.")
        self._chief_init_op = self._averaging._chief_init_op
        self._init_op = self._averaging.get_init_op()

    def after_create_session(self, session, coord):
        if self._is_chief:
            session.run(self._chief_init_op)
        session.run(self._init_op)
