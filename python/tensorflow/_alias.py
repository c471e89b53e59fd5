"""Finds modules of TensorFlow's tree in Sluice's."""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types

# TensorFlow's module -> Sluice's, where the names differ.
_MOVED = {
    "contrib": "contrib",
    "contrib.framework.python.ops.variables": "contrib.framework",
    "contrib.framework.python.ops.arg_scope": "contrib.framework",
    "examples.tutorials.mnist.input_data": "contrib.mnist",
    "contrib.learn.python.learn.datasets.mnist": "contrib.mnist",
    "contrib.lookup.lookup_ops": "contrib.lookup",
    "python.client.timeline": "client.timeline",
    "python.framework.errors_impl": "framework.errors",
    "python.framework.graph_io": "training.graph_io",
    "python.framework.indexed_slices": "framework.ops",
    "python.framework.random_seed": "ops.random_ops",
    "python.framework.tensor_util": "framework.constant_op",
    "python.lib.io.file_io": "platform.gfile",
    "python.lib.io.tf_record": "python_io",
    "python.ops.gradients_impl": "ops.gradients",
    "python.ops.nn": "ops.nn_ops",
    "python.ops.nn_impl": "ops.nn_ops",
    "python.ops.resources": "training.resources",
    "python.platform.tf_logging": "platform.tf_logging",
    "python.summary.writer.writer": "summary.writer",
    "python.summary.writer.writer_cache": "summary.writer_cache",
    "python.summary.summary_iterator": "summary.summary_iterator",
    "python.training.training": "train",
    "python.training.session_run_hook": "training.session_run_hook",
    "python.training.queue_runner": "training.queue_runner_impl",
    "python.util.compat": "platform.compat",
}
# Folders that hold nothing but modules.
_FOLDERS = {
    "core", "core.framework", "core.protobuf", "core.util", "core.example",
    "contrib.framework.python", "contrib.framework.python.ops",
    "contrib.learn.python", "contrib.learn.python.learn",
    "contrib.learn.python.learn.datasets",
    "examples", "examples.tutorials", "examples.tutorials.mnist",
    "python", "python.client", "python.framework", "python.lib",
    "python.lib.io", "python.ops", "python.platform", "python.summary",
    "python.summary.writer", "python.training", "python.util",
}


def _target(name):
    """Sluice's module for one of TensorFlow's, without the package names."""
    if name in _MOVED:
        return _MOVED[name]
    if name.startswith("core.") and name.endswith("_pb2"):
        return "framework.protos"
    if name.startswith("python."):
        return name[len("python."):]
    if name.startswith("contrib."):
        return name
    if "." not in name:
        return name  # tensorflow.train and the like.
    return None


def _exists(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


class _Finder(importlib.abc.MetaPathFinder):

    def find_spec(self, fullname, path=None, target=None):
        package, _, name = fullname.partition(".")
        if package != "tensorflow" or not name or name.startswith("_"):
            return None
        if name in _FOLDERS:
            return importlib.machinery.ModuleSpec(
                fullname, _FolderLoader(), is_package=True)
        module = _target(name)
        if module is None:
            return None
        module = "sluice." + module
        if not _exists(module):
            return None
        return importlib.machinery.ModuleSpec(
            fullname, _SameLoader(module), is_package=True)


class _FolderLoader(importlib.abc.Loader):

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module):
        pass


class _SameLoader(importlib.abc.Loader):
    """Gives Sluice's module a second name."""

    def __init__(self, target):
        self._target = target

    def create_module(self, spec):
        module = importlib.import_module(self._target)
        self._spec = module.__spec__
        return module

    def exec_module(self, module):
        # The import machinery has put the alias's there.
        module.__spec__ = self._spec


def install():
    if not any(isinstance(f, _Finder) for f in sys.meta_path):
        # First: Sluice's packages have paths, by which the others would load
        # their modules a second time.
        sys.meta_path.insert(0, _Finder())
