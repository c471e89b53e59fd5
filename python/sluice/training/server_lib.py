"""ClusterSpec and Server: who is in a cluster, and one task of it."""

import json
import os

from sluice import _sluice
from sluice.framework import protos

ClusterDef = protos.ClusterDef
JobDef = protos.JobDef
ServerDef = protos.ServerDef


def _text(value, what):
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if isinstance(value, str):
        return value
    raise TypeError("%s %r must be bytes or unicode" % (what, value))


class ClusterSpec(object):
    """Jobs, their tasks, and the address of each task."""

    def __init__(self, cluster):
        if isinstance(cluster, dict):
            self._cluster_spec = {}
            for job_name, tasks in cluster.items():
                if isinstance(tasks, (list, tuple)):
                    job_tasks = dict(enumerate(tasks))
                elif isinstance(tasks, dict):
                    job_tasks = dict(tasks)
                else:
                    raise TypeError(
                        "The tasks for job %r must be a list or a dictionary "
                        "from integers to strings." % job_name)
                self._cluster_spec[job_name] = job_tasks
            self._make_cluster_def()
        elif isinstance(cluster, ClusterDef):
            self._cluster_def = cluster
            self._adopt(cluster)
        elif isinstance(cluster, ClusterSpec):
            self._cluster_def = ClusterDef()
            self._cluster_def.MergeFrom(cluster.as_cluster_def())
            self._adopt(self._cluster_def)
        else:
            raise TypeError(
                "`cluster` must be a dictionary mapping one or more job names "
                "to lists of network addresses, or a `ClusterDef` protocol "
                "buffer")

    def _adopt(self, cluster_def):
        self._cluster_spec = {
            job.name: {i: address for i, address in job.tasks.items()}
            for job in cluster_def.job}

    def _make_cluster_def(self):
        self._cluster_def = ClusterDef()
        for job_name, tasks in sorted(self._cluster_spec.items()):
            name = _text(job_name, "Job name")
            job = self._cluster_def.job.add()
            job.name = name
            for index, address in sorted(tasks.items()):
                job.tasks[index] = _text(address, "Task address")

    def __bool__(self):
        return bool(self._cluster_spec)

    __nonzero__ = __bool__

    def __eq__(self, other):
        return self._cluster_spec == other

    def __ne__(self, other):
        return not self == other

    __hash__ = None

    def __repr__(self):
        spec = self.as_dict()
        return "ClusterSpec({%s})" % ", ".join(
            "%r: %r" % (key, spec[key]) for key in sorted(spec))

    __str__ = __repr__

    def as_dict(self):
        """Lists for jobs without holes, dictionaries for the others."""
        spec = {}
        for job_name, tasks in self._cluster_spec.items():
            if tasks and max(tasks) + 1 == len(tasks):
                spec[job_name] = self.job_tasks(job_name)
            else:
                spec[job_name] = dict(tasks)
        return spec

    def as_cluster_def(self):
        return self._cluster_def

    @property
    def jobs(self):
        return list(self._cluster_spec)

    def _job(self, job_name):
        try:
            return self._cluster_spec[job_name]
        except KeyError:
            raise ValueError("No such job in cluster: %r" % job_name) from None

    def num_tasks(self, job_name):
        return len(self._job(job_name))

    def task_indices(self, job_name):
        return sorted(self._job(job_name))

    def task_address(self, job_name, task_index):
        tasks = self._job(job_name)
        try:
            return tasks[task_index]
        except KeyError:
            raise ValueError("No task with index %r in job %r" %
                             (task_index, job_name)) from None

    def job_tasks(self, job_name):
        tasks = self._job(job_name)
        return [tasks.get(i) for i in range(max(tasks) + 1)]


def _make_server_def(server_or_cluster_def, job_name, task_index, protocol,
                     config):
    server_def = ServerDef()
    if isinstance(server_or_cluster_def, ServerDef):
        server_def.CopyFrom(server_or_cluster_def)
        if job_name is not None:
            server_def.job_name = job_name
        if task_index is not None:
            server_def.task_index = task_index
        if protocol is not None:
            server_def.protocol = protocol
    else:
        try:
            cluster = ClusterSpec(server_or_cluster_def)
        except TypeError:
            raise TypeError(
                "Could not convert `server_or_cluster_def` to a "
                "`tf.train.ServerDef` or `tf.train.ClusterSpec`.") from None
        if job_name is None:
            if len(cluster.jobs) != 1:
                raise ValueError("Must specify an explicit `job_name`.")
            job_name = cluster.jobs[0]
        if task_index is None:
            indices = cluster.task_indices(job_name)
            if len(indices) != 1:
                raise ValueError("Must specify an explicit `task_index`.")
            task_index = indices[0]
        server_def.cluster.MergeFrom(cluster.as_cluster_def())
        server_def.job_name = job_name
        server_def.task_index = task_index
        server_def.protocol = "grpc" if protocol is None else protocol
    if config is not None:
        server_def.default_session_config.MergeFrom(config)
    return server_def


# "/job:worker/task:0" of the server made last.
_task = None


def task_of_this_process():
    """The task this process is, by its server or by TF_CONFIG, or None."""
    if _task is not None:
        return _task
    try:
        task = json.loads(os.environ.get("TF_CONFIG", "{}"))["task"]
        return "/job:%s/task:%d" % (task["type"], int(task["index"]))
    except (KeyError, TypeError, ValueError):
        return None


class Server(object):
    """One task of a cluster. Goes on serving when this object is dropped."""

    def __init__(self, server_or_cluster_def, job_name=None, task_index=None,
                 protocol=None, config=None, start=True):
        self._server_def = _make_server_def(
            server_or_cluster_def, job_name, task_index, protocol, config)
        self._server = _sluice.Server(self._server_def.SerializeToString(),
                                      bool(start))
        global _task
        _task = "/job:%s/task:%d" % (self._server_def.job_name,
                                     self._server_def.task_index)

    def start(self):
        self._server.start()

    def stop(self):
        """Ends the steps that run and frees the port; `join` returns."""
        self._server.stop()

    def join(self):
        """Blocks until the server is stopped; Ctrl-C comes through.

        In the main thread of a program that does not handle SIGTERM itself,
        that signal stops the server and ends the program with status 0.
        """
        self._server.join()

    @property
    def server_def(self):
        return self._server_def

    @property
    def target(self):
        """What to open a session on: "grpc://host:port"."""
        return self._server.target

    @staticmethod
    def create_local_server(config=None, start=True):
        return Server({"local": ["localhost:0"]}, protocol="grpc",
                      config=config, start=start)
