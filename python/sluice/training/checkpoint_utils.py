"""Reading checkpoints without a graph."""

from sluice.platform.lazy_numpy import np

from sluice import _sluice
from sluice.framework import dtypes
from sluice.platform import gfile
from sluice.training import checkpoint_management


class CheckpointReader(object):
    """What is in a checkpoint."""

    def __init__(self, filepattern):
        if isinstance(filepattern, bytes):
            filepattern = filepattern.decode()
        self._reader = _sluice.CheckpointReader(filepattern)

    def has_tensor(self, tensor_str):
        return self._reader.has_tensor(_name(tensor_str))

    def get_tensor(self, tensor_str):
        return np.asarray(self._reader.get_tensor(_name(tensor_str)))[()]

    def get_variable_to_shape_map(self):
        return {name: list(shape) for name, _, shape in self._reader.list()}

    def get_variable_to_dtype_map(self):
        return {name: dtypes.as_dtype(dtype)
                for name, dtype, _ in self._reader.list()}

    def debug_string(self):
        return "".join("%s (%s) %s\n" % (
            name, dtypes.as_dtype(dtype).name, list(shape))
            for name, dtype, shape in self._reader.list()).encode()


def _name(name):
    return name.decode() if isinstance(name, bytes) else name


def NewCheckpointReader(filepattern):
    return CheckpointReader(filepattern)


def load_checkpoint(ckpt_dir_or_file):
    prefix = ckpt_dir_or_file
    if gfile.isdir(prefix):
        prefix = checkpoint_management.latest_checkpoint(prefix)
    if prefix is None:
        raise ValueError("Couldn't find 'checkpoint' file or checkpoints in "
                         "given directory %s" % ckpt_dir_or_file)
    return NewCheckpointReader(prefix)


def load_variable(ckpt_dir_or_file, name):
    if name.endswith(":0"):
        name = name[:-2]
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name)


def list_variables(ckpt_dir_or_file):
    shapes = load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map()
    return [(name, shapes[name]) for name in sorted(shapes)]
