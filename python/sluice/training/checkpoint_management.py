"""The `checkpoint` file of a directory, and what belongs to a checkpoint."""

import glob as _glob
import os
import re
import time

from google.protobuf import text_format

from sluice import _sluice
from sluice.framework import errors
from sluice.framework import protos
from sluice.platform import gfile
from sluice.platform import tf_logging as logging

CheckpointState = protos.CheckpointState
_V2 = 2


def _state_path(save_dir, latest_filename):
    return os.path.join(save_dir, latest_filename or "checkpoint")


def generate_checkpoint_state_proto(save_dir, model_checkpoint_path,
                                    all_model_checkpoint_paths=None,
                                    all_model_checkpoint_timestamps=None,
                                    last_preserved_timestamp=None):
    """Paths become relative to `save_dir` if that is relative itself."""
    paths = list(all_model_checkpoint_paths or [])
    times = all_model_checkpoint_timestamps
    if times and len(times) != len(paths):
        raise ValueError(
            "Checkpoint timestamps, if provided, must match checkpoint paths "
            "(got paths %s and timestamps %s)" % (paths, times))
    if not paths or paths[-1] != model_checkpoint_path:
        logging.info("%s is not in all_model_checkpoint_paths. Manually "
                     "adding it.", model_checkpoint_path)
        if model_checkpoint_path in paths:
            paths.remove(model_checkpoint_path)
            times = None
        paths.append(model_checkpoint_path)
        if times:
            times = list(times) + [time.time()]
    if not os.path.isabs(save_dir):
        def relative(path):
            return path if os.path.isabs(path) else os.path.relpath(path,
                                                                    save_dir)
        paths = [relative(p) for p in paths]
        model_checkpoint_path = relative(model_checkpoint_path)
    state = CheckpointState(model_checkpoint_path=model_checkpoint_path,
                            all_model_checkpoint_paths=paths)
    if times:
        state.all_model_checkpoint_timestamps.extend(times)
    if last_preserved_timestamp is not None:
        state.last_preserved_timestamp = last_preserved_timestamp
    return state


def update_checkpoint_state(save_dir, model_checkpoint_path,
                            all_model_checkpoint_paths=None,
                            latest_filename=None,
                            all_model_checkpoint_timestamps=None,
                            last_preserved_timestamp=None):
    update_checkpoint_state_internal(
        save_dir, model_checkpoint_path, all_model_checkpoint_paths,
        latest_filename, False, all_model_checkpoint_timestamps,
        last_preserved_timestamp)


def update_checkpoint_state_internal(save_dir, model_checkpoint_path,
                                     all_model_checkpoint_paths=None,
                                     latest_filename=None,
                                     save_relative_paths=False,
                                     all_model_checkpoint_timestamps=None,
                                     last_preserved_timestamp=None):
    path = _state_path(save_dir, latest_filename)
    all_paths = all_model_checkpoint_paths
    if save_relative_paths:
        def relative(p):
            return os.path.relpath(p, save_dir) if os.path.isabs(p) else \
                os.path.relpath(p, save_dir)
        model_checkpoint_path = relative(model_checkpoint_path)
        all_paths = [relative(p) for p in all_paths or []]
        state = CheckpointState(model_checkpoint_path=model_checkpoint_path,
                                all_model_checkpoint_paths=all_paths)
    else:
        state = generate_checkpoint_state_proto(
            save_dir, model_checkpoint_path, all_paths,
            all_model_checkpoint_timestamps, last_preserved_timestamp)
    if path == state.model_checkpoint_path:
        raise RuntimeError(
            "Save path '%s' conflicts with path used for checkpoint state.  "
            "Please use a different save path." % model_checkpoint_path)
    _sluice.write_file_atomically(
        path, text_format.MessageToString(state).encode("utf-8"))


def get_checkpoint_state(checkpoint_dir, latest_filename=None):
    """The CheckpointState of a directory, or None."""
    path = _state_path(checkpoint_dir, latest_filename)
    try:
        if not gfile.exists(path):
            return None
        state = CheckpointState()
        text_format.Parse(_sluice.read_file(path).decode("utf-8"), state)
        if not state.model_checkpoint_path:
            raise ValueError("Invalid checkpoint state loaded from " +
                             checkpoint_dir)

        def absolute(p):
            return p if os.path.isabs(p) else os.path.join(checkpoint_dir, p)
        state.model_checkpoint_path = absolute(state.model_checkpoint_path)
        for i, p in enumerate(state.all_model_checkpoint_paths):
            state.all_model_checkpoint_paths[i] = absolute(p)
        return state
    except errors.OpError as e:
        logging.warning("%s: %s", type(e).__name__, e)
        logging.warning("%s: Checkpoint ignored", path)
    except (text_format.ParseError, UnicodeDecodeError) as e:
        logging.warning("%s: %s", type(e).__name__, e)
        logging.warning("%s: Checkpoint ignored", path)
    return None


def _prefix_to_checkpoint_path(prefix, format_version):
    return prefix + ".index" if format_version == _V2 else prefix


def latest_checkpoint(checkpoint_dir, latest_filename=None):
    """The prefix of the newest checkpoint, or None."""
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if not state or not state.model_checkpoint_path:
        return None
    if checkpoint_exists(state.model_checkpoint_path):
        return state.model_checkpoint_path
    logging.error("Couldn't match files for checkpoint %s",
                  state.model_checkpoint_path)
    return None


def checkpoint_exists(checkpoint_prefix):
    """Whether there are files of this prefix, which may be a pattern."""
    return bool(_files(checkpoint_prefix))


def _files(prefix):
    """The index or the V1 files of a prefix. Its folder must be there."""
    prefix = os.fspath(prefix)
    folder = os.path.dirname(prefix)
    if folder and not os.path.isdir(folder) and not _glob.has_magic(folder):
        raise errors.NotFoundError(
            None, None, folder + "; No such file or directory")
    return (_exact(prefix + ".index") or _glob.glob(prefix + ".index") or
            _exact(prefix) or _glob.glob(prefix))


def _exact(path):
    # A prefix may hold characters that stand for others in a pattern.
    return [path] if os.path.exists(path) else []


def get_checkpoint_mtimes(checkpoint_prefixes):
    """When each was written, in seconds; those that are gone are left out."""
    times = []
    for prefix in checkpoint_prefixes:
        try:
            for path in _files(prefix)[:1]:
                times.append(os.stat(path).st_mtime)
        except (errors.NotFoundError, OSError):
            pass  # Gone with its folder, or just now.
    return times


def remove_checkpoint(checkpoint_prefix, checkpoint_format_version=_V2,
                      meta_graph_suffix="meta"):
    """Deletes all files of a checkpoint; it is none from the first one on."""
    plain = _glob.escape(checkpoint_prefix)
    if checkpoint_format_version == _V2:
        _delete_if_exists(plain + ".index")
        _delete_if_exists(plain + ".data-?????-of-?????")
    else:
        # The shards of V1 are a pattern themselves.
        _delete_if_exists(checkpoint_prefix)
    _delete_if_exists(_glob.escape(meta_graph_filename(checkpoint_prefix,
                                                       meta_graph_suffix)))


def _delete_if_exists(pattern):
    for path in _glob.glob(pattern):
        _sluice.delete_file(path)


def meta_graph_filename(checkpoint_filename, meta_graph_suffix="meta"):
    """The name of the file for a checkpoint's meta graph."""
    # V1 shards are named prefix-?????-of-nnnnn.
    base = re.sub(r"-[\d\?]+-of-\d+$", "", checkpoint_filename)
    return "%s.%s" % (base, meta_graph_suffix)


def checkpoints_iterator(checkpoint_dir, min_interval_secs=0, timeout=None,
                         timeout_fn=None):
    """Yields new checkpoints as they come."""
    checkpoint_path = None
    while True:
        new = wait_for_new_checkpoint(checkpoint_dir, checkpoint_path,
                                      timeout=timeout)
        if new is None:
            if not timeout_fn:
                logging.info("Timed-out waiting for a checkpoint.")
                return
            if timeout_fn():
                return
            continue
        start = time.time()
        checkpoint_path = new
        yield checkpoint_path
        left = start + min_interval_secs - time.time()
        if left > 0:
            time.sleep(left)


def wait_for_new_checkpoint(checkpoint_dir, last_checkpoint=None,
                            seconds_to_sleep=1, timeout=None):
    logging.info("Waiting for new checkpoint at %s", checkpoint_dir)
    stop = time.time() + timeout if timeout is not None else None
    while True:
        path = latest_checkpoint(checkpoint_dir)
        if path is not None and path != last_checkpoint:
            logging.info("Found new checkpoint at %s", path)
            return path
        if stop is not None and time.time() + seconds_to_sleep > stop:
            return None
        time.sleep(seconds_to_sleep)
