"""replica_device_setter: variables to parameter servers, the rest to workers."""

import hashlib

from sluice.platform.lazy_numpy import np

from sluice.framework import device as pydev
from sluice.framework import tensor_shape
from sluice.framework import dtypes
from sluice.platform import tf_logging as logging
from sluice.training import server_lib

STANDARD_PS_OPS = (
    "Variable", "VariableV2", "AutoReloadVariable", "MutableHashTable",
    "MutableHashTableV2", "MutableHashTableOfTensors",
    "MutableHashTableOfTensorsV2", "MutableDenseHashTable",
    "MutableDenseHashTableV2", "VarHandleOp",
    "BoostedTreesEnsembleResourceHandleOp",
    "BoostedTreesQuantileStreamResourceHandleOp",
    "ResourceConditionalAccumulator",
)


class _RoundRobinStrategy(object):
    """0, 1, …, n-1, 0, … in the order in which ops are made."""

    def __init__(self, num_tasks):
        self._num_tasks = num_tasks
        self._next_task = 0

    def __call__(self, unused_op):
        task = self._next_task
        self._next_task = (self._next_task + 1) % self._num_tasks
        return task


class RandomStrategy(object):
    """A task that depends on the op's name and the seed alone."""

    def __init__(self, num_ps_tasks, seed=0):
        self._num_tasks = num_ps_tasks
        self._seed = seed

    def __call__(self, op):
        digest = hashlib.md5(("%s_%d" % (op.name, self._seed)).encode())
        return int(digest.hexdigest(), 16) % self._num_tasks


class GreedyLoadBalancingStrategy(object):
    """The task with the least load so far."""

    def __init__(self, num_tasks, load_fn):
        self._num_tasks = num_tasks
        self._load_fn = load_fn
        self._ps_loads = np.zeros(num_tasks)

    def __call__(self, op):
        task = int(np.argmin(self._ps_loads))
        self._ps_loads[task] += self._load_fn(op)
        return task


def byte_size_load_fn(op):
    """The bytes of what `op` holds, for GreedyLoadBalancingStrategy."""
    if len(op.outputs) != 1:
        raise ValueError("Op %s must have a single output" % op)
    output = op.outputs[0]
    shape, dtype = output.get_shape(), output.dtype.base_dtype
    if op.type == "VarHandleOp" or not shape.is_fully_defined():
        # A handle is one element; what counts is behind it.
        shape = tensor_shape.TensorShape(op.get_attr("shape"))
        dtype = dtypes.as_dtype(op.get_attr("dtype"))
    shape.assert_is_fully_defined()
    return dtype.size * shape.num_elements()


class _ReplicaDeviceChooser(object):

    def __init__(self, ps_tasks, ps_device, worker_device, merge_devices,
                 ps_ops, ps_strategy):
        self._ps_tasks = ps_tasks
        self._ps_device = ps_device
        self._worker_device = worker_device
        self._merge_devices = merge_devices
        self._ps_ops = frozenset(ps_ops)
        self._ps_strategy = ps_strategy

    def device_function(self, op):
        if not self._merge_devices and op.device:
            return op.device
        current = pydev.DeviceSpec.from_string(op.device or "")
        if self._ps_tasks and self._ps_device and op.type in self._ps_ops:
            spec = pydev.DeviceSpec.from_string(self._ps_device)
            if spec.job and (not current.job or current.job == spec.job):
                spec.task = self._ps_strategy(op)
            return spec.make_merged_spec(current).to_string()
        spec = pydev.DeviceSpec.from_string(self._worker_device or "")
        return spec.make_merged_spec(current).to_string()


def replica_device_setter(ps_tasks=0, ps_device="/job:ps",
                          worker_device="/job:worker", merge_devices=True,
                          cluster=None, ps_ops=None, ps_strategy=None):
    """A device function for `tf.device`, or None if there are no ps tasks."""
    if cluster is not None:
        if isinstance(cluster, server_lib.ClusterSpec):
            spec = cluster.as_dict()
        else:
            spec = server_lib.ClusterSpec(cluster).as_dict()
        job = pydev.DeviceSpec.from_string(ps_device).job
        if job not in spec or spec[job] is None:
            return None
        ps_tasks = len(spec[job])
    if ps_tasks == 0:
        return None
    if ps_ops is None:
        ps_ops = STANDARD_PS_OPS
    if not merge_devices:
        logging.warning(
            "DEPRECATION: It is recommended to set merge_devices=true in "
            "replica_device_setter")
    if ps_strategy is None:
        ps_strategy = _RoundRobinStrategy(ps_tasks)
    if not callable(ps_strategy):
        raise TypeError("ps_strategy must be callable")
    return _ReplicaDeviceChooser(ps_tasks, ps_device, worker_device,
                                 merge_devices, ps_ops,
                                 ps_strategy).device_function
