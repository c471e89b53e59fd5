"""How and where an Estimator runs; reads TF_CONFIG."""

import copy
import json
import os

from sluice.framework import protos
from sluice.platform import tf_logging as logging
from sluice.training import server_lib


class TaskType(object):
    MASTER = "master"
    PS = "ps"
    WORKER = "worker"
    CHIEF = "chief"
    EVALUATOR = "evaluator"


_BOTH = ("`save_checkpoints_steps` and `save_checkpoints_secs` cannot be both "
         "set.")
_FROM_TF_CONFIG = (
    "\n\nNote that these values may be coming from the TF_CONFIG environment "
    "variable.")
_UNSET = object()

# What `replace` may replace.
_REPLACEABLE = (
    "model_dir", "tf_random_seed", "save_summary_steps",
    "save_checkpoints_steps", "save_checkpoints_secs", "session_config",
    "keep_checkpoint_max", "keep_checkpoint_every_n_hours",
    "log_step_count_steps", "train_distribute", "device_fn", "protocol",
    "eval_distribute", "experimental_distribute",
    "experimental_max_worker_delay_secs", "session_creation_timeout_secs")

# Property: what must hold if it is set, and the text if it does not.
_CHECKS = {
    "model_dir": (bool, "model_dir should be non-empty"),
    "save_summary_steps":
        (lambda v: v >= 0, "save_summary_steps should be >= 0"),
    "save_checkpoints_steps":
        (lambda v: v >= 0, "save_checkpoints_steps should be >= 0"),
    "save_checkpoints_secs":
        (lambda v: v >= 0, "save_checkpoints_secs should be >= 0"),
    "session_config":
        (lambda v: isinstance(v, protos.ConfigProto),
         "session_config must be instance of ConfigProto"),
    "keep_checkpoint_max":
        (lambda v: v >= 0, "keep_checkpoint_max should be >= 0"),
    "keep_checkpoint_every_n_hours":
        (lambda v: v > 0, "keep_checkpoint_every_n_hours should be > 0"),
    "log_step_count_steps":
        (lambda v: v > 0, "log_step_count_steps should be > 0"),
    "tf_random_seed":
        (lambda v: isinstance(v, int), "tf_random_seed must be integer."),
    "experimental_max_worker_delay_secs":
        (lambda v: isinstance(v, int),
         "experimental_max_worker_delay_secs must be an integer if set."),
    "session_creation_timeout_secs":
        (lambda v: v > 0, "session_creation_timeout_secs should be > 0"),
    "device_fn": (callable, "device_fn must be callable with exactly one "
                            "argument \"op\"."),
    "protocol": (lambda v: v in ("grpc", "grpc+verbs"),
                 "protocol should be grpc or grpc+verbs"),
}


class RunConfig(object):
    """Settings of an Estimator's runs.

    The cluster and this process's place in it come from the environment
    variable TF_CONFIG, a JSON object with `cluster` (job: addresses) and `task`
    (type and index).
    """

    def __init__(self, model_dir=None, tf_random_seed=None,
                 save_summary_steps=100, save_checkpoints_steps=_UNSET,
                 save_checkpoints_secs=_UNSET, session_config=None,
                 keep_checkpoint_max=5, keep_checkpoint_every_n_hours=10000,
                 log_step_count_steps=100, train_distribute=None,
                 device_fn=None, protocol=None, eval_distribute=None,
                 experimental_distribute=None,
                 experimental_max_worker_delay_secs=None,
                 session_creation_timeout_secs=7200):
        for name, value in (("train_distribute", train_distribute),
                            ("eval_distribute", eval_distribute),
                            ("experimental_distribute",
                             experimental_distribute)):
            if value is not None:
                raise NotImplementedError(
                    "%s: distribution strategies are not part of Sluice; a "
                    "cluster in TF_CONFIG trains with parameter servers." %
                    name)
        if save_checkpoints_steps is _UNSET and save_checkpoints_secs is _UNSET:
            save_checkpoints_steps, save_checkpoints_secs = None, 600
        elif save_checkpoints_secs is _UNSET:
            save_checkpoints_secs = None
        elif save_checkpoints_steps is _UNSET:
            save_checkpoints_steps = None
        elif save_checkpoints_steps is not None and \
                save_checkpoints_secs is not None:
            raise ValueError(_BOTH)
        environment = json.loads(os.environ.get("TF_CONFIG") or "{}")
        if environment:
            logging.info("TF_CONFIG environment variable: %s", environment)
        self._service = environment.get("service")
        if self._service is not None and not isinstance(self._service, dict):
            raise ValueError('If "service" is set in TF_CONFIG, it must be a '
                             "dict. Given %s" % type(self._service))
        self._init_cluster(environment)
        self._set(dict(
            model_dir=_model_dir(model_dir, environment),
            tf_random_seed=tf_random_seed,
            save_summary_steps=save_summary_steps,
            save_checkpoints_steps=save_checkpoints_steps,
            save_checkpoints_secs=save_checkpoints_secs,
            session_config=session_config,
            keep_checkpoint_max=keep_checkpoint_max,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            log_step_count_steps=log_step_count_steps, train_distribute=None,
            device_fn=device_fn, protocol=protocol, eval_distribute=None,
            experimental_distribute=None,
            experimental_max_worker_delay_secs=(
                experimental_max_worker_delay_secs),
            session_creation_timeout_secs=session_creation_timeout_secs))

    def _set(self, properties):
        for name, value in properties.items():
            if name not in _REPLACEABLE:
                raise ValueError(
                    "Replacing {} is not supported. Allowed properties are {}."
                    .format(name, list(_REPLACEABLE)))
            check, text = _CHECKS.get(name, (None, None))
            if check is not None and value is not None and not check(value):
                raise ValueError(text)
        for name, value in properties.items():
            setattr(self, "_" + name, value)
        if self._session_config is None:
            self._session_config = self._default_session_config()

    # ---- This process's place ----

    def _init_cluster(self, environment):
        cluster = environment.get("cluster") or {}
        task = environment.get("task") or {}
        self._cluster_spec = server_lib.ClusterSpec(cluster)
        self._task_type = task.get("type")
        self._task_id = task.get("index")
        self._evaluation_master = ""
        if not cluster:
            self._init_single(environment)
            return
        if TaskType.MASTER in cluster:
            if TaskType.CHIEF in cluster:
                raise ValueError("If `master` node exists in `cluster`, job "
                                 "`chief` is not supported.")
            if self._task_type == TaskType.EVALUATOR:
                raise ValueError("If `master` node exists in `cluster`, "
                                 "task_type `evaluator` is not supported.")
            chief = TaskType.MASTER
        else:
            chief = TaskType.CHIEF
        if chief not in cluster:
            raise ValueError('If "cluster" is set in TF_CONFIG, it must have '
                             'one "%s" node.' % chief)
        if len(cluster[chief]) > 1:
            raise ValueError('The "cluster" in TF_CONFIG must have only one '
                             '"%s" node.' % chief)
        if not self._task_type:
            raise ValueError('If "cluster" is set in TF_CONFIG, task type must '
                             "be set.")
        if self._task_id is None:
            raise ValueError('If "cluster" is set in TF_CONFIG, task index '
                             "must be set.")
        self._task_id = int(self._task_id)
        if self._task_id < 0:
            raise ValueError("Task index must be non-negative number.")
        self._num_ps = len(cluster.get(TaskType.PS, ()))
        self._num_workers = len(cluster.get(TaskType.WORKER, ())) + 1
        self._is_chief = self._task_type == chief
        if self._task_type == TaskType.EVALUATOR:
            # It stands beside the cluster and reads its checkpoints.
            self._cluster_spec = server_lib.ClusterSpec({})
            self._global_id = None
            self._master = ""
            self._num_ps = 0
            self._num_workers = 0
            return
        self._check_task(cluster)
        jobs = [chief] + sorted(j for j in cluster
                                if j not in (chief, TaskType.PS)) + \
            [j for j in (TaskType.PS,) if j in cluster]
        before = jobs[:jobs.index(self._task_type)]
        self._global_id = sum(len(cluster[j]) for j in before) + self._task_id
        if sum(len(addresses) for addresses in cluster.values()) == 1:
            # Nobody to speak with: a session in this process will do.
            self._master = environment.get("session_master", "")
        else:
            address = cluster[self._task_type][self._task_id]
            self._master = environment.get(
                "session_master", "%s://%s" % ("grpc", address))
        self._evaluation_master = environment.get("eval_session_master", "")

    def _check_task(self, cluster):
        if self._task_type not in cluster:
            raise ValueError(
                "%s is not a valid task_type in the cluster_spec:\n%s%s" %
                (self._task_type, self._cluster_spec, _FROM_TF_CONFIG))
        if self._task_id >= len(cluster[self._task_type]):
            raise ValueError(
                "%d is not a valid task_id for task_type %s in the "
                "cluster_spec:\n%s%s" %
                (self._task_id, self._task_type, self._cluster_spec,
                 _FROM_TF_CONFIG))

    def _init_single(self, environment):
        self._task_type = self._task_type or TaskType.WORKER
        self._task_id = int(self._task_id or 0)
        if self._task_type != TaskType.WORKER:
            raise ValueError('If "cluster" is not set in TF_CONFIG, task type '
                             "must be WORKER.")
        if self._task_id != 0:
            raise ValueError('If "cluster" is not set in TF_CONFIG, task index '
                             "must be 0.")
        self._master = environment.get("session_master", "")
        self._evaluation_master = environment.get("eval_session_master", "")
        self._is_chief = True
        self._num_ps = 0
        self._num_workers = 1
        self._global_id = 0

    def _default_session_config(self):
        config = protos.ConfigProto(allow_soft_placement=True)
        config.device_filters.extend(self._device_filters())
        return config

    def _device_filters(self):
        """A worker waits for no other worker: it sees the ps and itself."""
        if not self._master or not self._cluster_spec.as_dict():
            return []
        if self._task_type in (TaskType.CHIEF, TaskType.MASTER):
            return ["/job:ps", "/job:" + self._task_type]
        if self._task_type == TaskType.WORKER:
            return ["/job:ps", "/job:worker/task:%d" % self._task_id]
        return ["/job:ps", "/job:worker", "/job:chief", "/job:master"]

    # ---- What it says ----

    @property
    def is_chief(self):
        return self._is_chief

    @property
    def num_ps_replicas(self):
        return self._num_ps

    @property
    def num_worker_replicas(self):
        return self._num_workers

    @property
    def global_id_in_cluster(self):
        return self._global_id

    def replace(self, **kwargs):
        """A copy with some properties replaced."""
        steps = kwargs.get("save_checkpoints_steps")
        secs = kwargs.get("save_checkpoints_secs")
        if steps is not None and secs is not None:
            raise ValueError(_BOTH)
        if steps is not None:
            kwargs["save_checkpoints_secs"] = None
        elif secs is not None:
            kwargs["save_checkpoints_steps"] = None
        other = copy.copy(self)
        other._set(kwargs)
        return other


for _name in _REPLACEABLE + ("cluster_spec", "task_type", "task_id", "master",
                             "evaluation_master", "service"):
    setattr(RunConfig, _name,
            property(lambda self, _field="_" + _name: getattr(self, _field)))


def _model_dir(given, environment):
    if given == "":
        raise ValueError("model_dir should be non-empty.")
    named = environment.get("model_dir")
    if named == "":
        raise ValueError("model_dir in TF_CONFIG should be non-empty.")
    if named:
        if given and given != named:
            raise ValueError(
                "`model_dir` provided in RunConfig construct, if set, must "
                "have the same value as the model_dir in TF_CONFIG. "
                "model_dir: {}\nTF_CONFIG[\"model_dir\"]: {}.\n".format(
                    given, named))
        logging.info("Using model_dir in TF_CONFIG: %s", named)
    return given or named
