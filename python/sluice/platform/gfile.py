"""Files, with the errors of the library in place of Python's."""

import collections
import errno
import glob as _glob
import io
import os
import shutil

from sluice.framework import errors

_ERRORS = {
    errno.ENOENT: errors.NotFoundError,
    errno.ENOTDIR: errors.FailedPreconditionError,
    errno.EEXIST: errors.AlreadyExistsError,
    errno.ENOTEMPTY: errors.FailedPreconditionError,
    errno.EISDIR: errors.FailedPreconditionError,
    errno.EACCES: errors.PermissionDeniedError,
    errno.EPERM: errors.PermissionDeniedError,
    errno.ENOSPC: errors.ResourceExhaustedError,
}

FileStatistics = collections.namedtuple(
    "FileStatistics", ["length", "mtime_nsec", "is_directory"])


def _path(name):
    name = os.fspath(name)
    return name.decode() if isinstance(name, bytes) else name


class _translated(object):
    """Turns an OSError into the library's error, named after the path."""

    def __init__(self, path):
        self._path = path

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if isinstance(error, OSError):
            cls = _ERRORS.get(error.errno, errors.UnknownError)
            raise cls(None, None, "%s; %s" % (
                self._path, os.strerror(error.errno or 0))) from None
        return False


class GFile(object):
    """A file; opened when it is first read or written."""

    def __init__(self, name, mode="r"):
        if mode.replace("b", "").replace("+", "") not in ("r", "w", "a"):
            raise errors.InvalidArgumentError(
                None, None, "mode is not 'r' or 'w' or 'a'")
        self._name = name
        self._mode = mode
        self._binary = "b" in mode
        self._file = None

    @property
    def name(self):
        return self._name

    @property
    def mode(self):
        return self._mode

    def _open(self):
        if self._file is None:
            mode = self._mode.replace("b", "") + "b"
            with _translated(self._name):
                self._file = open(_path(self._name), mode)
        return self._file

    def _text(self, data):
        return data if self._binary else data.decode("utf-8")

    def read(self, n=-1):
        if self._mode[0] != "r" and "+" not in self._mode:
            raise errors.PermissionDeniedError(
                None, None, "File isn't open for reading")
        with _translated(self._name):
            return self._text(self._open().read(n))

    def write(self, file_content):
        if self._mode[0] == "r" and "+" not in self._mode:
            raise errors.PermissionDeniedError(
                None, None, "File isn't open for writing")
        if isinstance(file_content, str):
            file_content = file_content.encode("utf-8")
        with _translated(self._name):
            self._open().write(file_content)

    def readline(self):
        with _translated(self._name):
            return self._text(self._open().readline())

    def readlines(self):
        return list(self)

    def __iter__(self):
        return self

    def __next__(self):
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    next = __next__

    def seek(self, offset=None, whence=io.SEEK_SET, position=None):
        self._open().seek(offset if offset is not None else position, whence)

    def seekable(self):
        return True

    def tell(self):
        return self._open().tell()

    def size(self):
        return stat(self._name).length

    def flush(self):
        if self._file is not None:
            with _translated(self._name):
                self._file.flush()

    def close(self):
        if self._file is None and self._mode[0] in "wa":
            self._open()
        if self._file is not None:
            with _translated(self._name):
                self._file.close()
            self._file = None

    def __enter__(self):
        self._open()
        return self

    def __exit__(self, *_):
        self.close()


class FastGFile(GFile):
    pass


Open = FileIO = GFile


def exists(path):
    return os.path.exists(_path(path))


def isdir(path):
    return os.path.isdir(_path(path))


def listdir(path):
    if not isdir(path):
        raise errors.NotFoundError(None, None,
                                   "Could not find directory %s" % path)
    with _translated(path):
        return sorted(os.listdir(_path(path)))


def mkdir(path):
    with _translated(path):
        os.mkdir(_path(path))


def makedirs(path):
    with _translated(path):
        os.makedirs(_path(path), exist_ok=True)


def remove(path):
    with _translated(path):
        os.remove(_path(path))


def rmtree(path):
    path = _path(path)
    if not isdir(path):
        raise errors.NotFoundError(None, None,
                                   "%s; No such file or directory" % path)
    with _translated(path):
        shutil.rmtree(path)


def glob(pattern):
    if isinstance(pattern, (str, bytes, os.PathLike)):
        return sorted(_glob.glob(_path(pattern)))
    return [match for one in pattern for match in glob(one)]


def rename(src, dst, overwrite=False):
    if exists(dst) and not overwrite:
        raise errors.AlreadyExistsError(None, None, "file already exists")
    with _translated(src):
        os.replace(_path(src), _path(dst))


def copy(src, dst, overwrite=False):
    if exists(dst) and not overwrite:
        raise errors.AlreadyExistsError(None, None, "file already exists")
    with _translated(src):
        shutil.copyfile(_path(src), _path(dst))


def stat(path):
    with _translated(path):
        found = os.stat(_path(path))
    return FileStatistics(found.st_size, found.st_mtime_ns,
                          os.path.isdir(_path(path)))


def walk(top, topdown=True, onerror=None):
    return os.walk(_path(top), topdown, onerror)


def Rename(oldname, newname, overwrite=False):
    rename(oldname, newname, overwrite)


def Copy(oldpath, newpath, overwrite=False):
    copy(oldpath, newpath, overwrite)


def Exists(filename):
    return exists(filename)


def Walk(top, in_order=True):
    return walk(top, in_order)


def Glob(filename):
    return glob(filename)


def IsDirectory(dirname):
    return isdir(dirname)


def ListDirectory(dirname):
    return listdir(dirname)


def MkDir(dirname):
    mkdir(dirname)


def MakeDirs(dirname):
    makedirs(dirname)


def Remove(filename):
    remove(filename)


def DeleteRecursively(dirname):
    rmtree(dirname)


def Stat(filename):
    return stat(filename)
