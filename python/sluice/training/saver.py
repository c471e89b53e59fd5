"""Saver: writes variables to checkpoints and reads them back."""

import os
import threading
import time

from sluice.platform.lazy_numpy import np

from sluice import _sluice
from sluice.client import session
from sluice.framework import errors
from sluice.framework import ops
from sluice.framework import protos
from sluice.ops import variables
from sluice.platform import gfile
from sluice.platform import tf_logging as logging
from sluice.training import checkpoint_management
from sluice.training import saver_builder
from sluice.training import session_layers
from sluice.training import training_util

BaseSaverBuilder = saver_builder.BaseSaverBuilder
BulkSaverBuilder = saver_builder.BulkSaverBuilder

SaverDef = protos.SaverDef
latest_checkpoint = checkpoint_management.latest_checkpoint
checkpoint_exists = checkpoint_management.checkpoint_exists
get_checkpoint_mtimes = checkpoint_management.get_checkpoint_mtimes
get_checkpoint_state = checkpoint_management.get_checkpoint_state
update_checkpoint_state = checkpoint_management.update_checkpoint_state
generate_checkpoint_state_proto = \
    checkpoint_management.generate_checkpoint_state_proto


_RESTORE_FAILED = (
    "Restoring from checkpoint failed. This is most likely due to %s%s the "
    "checkpoint. Please ensure that you have not altered the graph expected "
    "based on the checkpoint. Original error:\n\n%s")

_MISMATCH = "a mismatch between the current graph and the graph"


class Saver(object):
    """Saves variables, keeps the newest checkpoints, restores one."""

    def __init__(self, var_list=None, reshape=False, sharded=False,
                 max_to_keep=5, keep_checkpoint_every_n_hours=10000.0,
                 name=None, restore_sequentially=False, saver_def=None,
                 builder=None, defer_build=False, allow_empty=False,
                 write_version=SaverDef.V2, pad_step_number=False,
                 save_relative_paths=False, filename=None,
                 gather_shards=None):
        """`gather_shards`, which TensorFlow does not have: the tasks share no
        disk. Shards travel to the task that owns the checkpoint directory and
        back: a device such as "/job:worker/task:0", or True for the task of
        this process (docs/operations.md)."""
        if defer_build and var_list:
            raise ValueError(
                "If `var_list` is provided then build cannot be deferred. "
                "Either set defer_build=False or var_list=None.")
        self._var_list = var_list
        self._reshape = reshape
        self._sharded = sharded
        self._max_to_keep = max_to_keep
        self._keep_checkpoint_every_n_hours = keep_checkpoint_every_n_hours
        self._name = name
        self._restore_sequentially = restore_sequentially
        self.saver_def = saver_def
        self._builder = builder
        self._gather_shards = gather_shards
        self._restored = None
        self._is_built = False
        self._allow_empty = allow_empty
        self._is_empty = False
        self._write_version = write_version
        self._pad_step_number = pad_step_number
        self._filename = filename
        self._save_relative_paths = save_relative_paths
        self._last_checkpoints = []
        self._checkpoints_to_be_deleted = []
        # A supervisor saves on a thread of its own. In turns, from the reading
        # of the step on, the state file names the newest in the end.
        self._saving = threading.RLock()
        if not defer_build:
            self.build()
        if self.saver_def:
            self._check_saver_def()
            self._write_version = self.saver_def.version

    def build(self):
        if self._is_built:
            return
        self._is_built = True
        if not self.saver_def or self.saver_def == SaverDef():
            if self._builder is None:
                gather_to = saver_builder.gather_device(self._gather_shards)
                self._builder = BulkSaverBuilder(self._write_version,
                                                 gather_to)
            if self._var_list is None:
                self._var_list = variables.global_variables() + \
                    ops.get_collection(ops.GraphKeys.SAVEABLE_OBJECTS)
            if not self._var_list:
                if not self._allow_empty:
                    raise ValueError("No variables to save")
                self._is_empty = True
                return
            self.saver_def = self._builder._build_internal(
                self._var_list, reshape=self._reshape, sharded=self._sharded,
                max_to_keep=self._max_to_keep,
                keep_checkpoint_every_n_hours=(
                    self._keep_checkpoint_every_n_hours),
                name=self._name,
                restore_sequentially=self._restore_sequentially,
                filename=self._filename)
        elif self.saver_def and self._name:
            for field in ("filename_tensor_name", "save_tensor_name",
                          "restore_op_name"):
                setattr(self.saver_def, field, ops.prepend_name_scope(
                    getattr(self.saver_def, field), self._name))
        self._check_saver_def()
        self._next_checkpoint_time = (
            time.time() + self.saver_def.keep_checkpoint_every_n_hours * 3600)

    def _check_saver_def(self):
        if not isinstance(self.saver_def, SaverDef):
            raise ValueError("saver_def must be a saver_pb2.SaverDef: %s" %
                             self.saver_def)
        if not self.saver_def.save_tensor_name:
            raise ValueError("saver_def must specify the save_tensor_name: %s"
                             % self.saver_def)
        if not self.saver_def.restore_op_name:
            raise ValueError("saver_def must specify the restore_op_name: %s" %
                             self.saver_def)

    # ---- The newest checkpoints ----

    @property
    def last_checkpoints(self):
        return [path for path, _ in self._last_checkpoints]

    def set_last_checkpoints(self, last_checkpoints):
        # Of an unknown time: never deleted for their age.
        self._last_checkpoints = [(path, np.inf) for path in last_checkpoints]

    def set_last_checkpoints_with_time(self, last_checkpoints_with_time):
        self._last_checkpoints = list(last_checkpoints_with_time)

    def recover_last_checkpoints(self, checkpoint_paths):
        found = []
        for path in checkpoint_paths:
            times = checkpoint_management.get_checkpoint_mtimes([path])
            if times:
                found.append((path, times[0]))
        self.set_last_checkpoints_with_time(found)

    def _record(self, path):
        if not self.saver_def.max_to_keep:
            return
        self._last_checkpoints = [p for p in self._last_checkpoints
                                  if p[0] != path]
        self._last_checkpoints.append((path, time.time()))
        if len(self._last_checkpoints) > self.saver_def.max_to_keep:
            self._checkpoints_to_be_deleted.append(
                self._last_checkpoints.pop(0))

    def _delete_old(self, meta_graph_suffix="meta"):
        if not self._checkpoints_to_be_deleted:
            return
        path, saved_at = self._checkpoints_to_be_deleted.pop(0)
        if saved_at > self._next_checkpoint_time:
            # One is kept for good every so many hours.
            self._next_checkpoint_time += (
                self.saver_def.keep_checkpoint_every_n_hours * 3600)
            return
        if any(path == kept for kept, _ in self._last_checkpoints):
            return
        try:
            checkpoint_management.remove_checkpoint(
                path, self.saver_def.version, meta_graph_suffix)
        except Exception as e:  # An old file must not end the training.
            logging.warning("Ignoring: %s", str(e))

    def as_saver_def(self):
        return self.saver_def

    def to_proto(self, export_scope=None):
        if export_scope is None:
            return self.saver_def
        if not (self.saver_def.filename_tensor_name.startswith(export_scope)
                and self.saver_def.save_tensor_name.startswith(export_scope)
                and self.saver_def.restore_op_name.startswith(export_scope)):
            return None
        saver_def = SaverDef()
        saver_def.CopyFrom(self.saver_def)
        for field in ("filename_tensor_name", "save_tensor_name",
                      "restore_op_name"):
            setattr(saver_def, field, ops.strip_name_scope(
                getattr(saver_def, field), export_scope))
        return saver_def

    @staticmethod
    def from_proto(saver_def, import_scope=None):
        return Saver(saver_def=saver_def, name=import_scope)

    # ---- Saving ----

    def save(self, sess, save_path, global_step=None, latest_filename=None,
             meta_graph_suffix="meta", write_meta_graph=True, write_state=True,
             strip_default_attrs=False, save_debug_info=False):
        """Writes a checkpoint and returns its prefix."""
        if not self._is_built:
            raise RuntimeError(
                "`build()` should be called before save if defer_build==True")
        if latest_filename is None:
            latest_filename = "checkpoint"
        if os.path.split(latest_filename)[0]:
            raise ValueError("'latest_filename' must not contain path "
                             "components")
        save_path = os.fspath(save_path)
        if not save_path:
            raise ValueError("no path specified")
        with self._saving:
            return self._save(sess, save_path, global_step, latest_filename,
                              meta_graph_suffix, write_meta_graph, write_state,
                              strip_default_attrs, save_debug_info)

    def _save(self, sess, save_path, global_step, latest_filename,
              meta_graph_suffix, write_meta_graph, write_state,
              strip_default_attrs, save_debug_info):
        if global_step is not None:
            if not isinstance(global_step, (int, np.integer)):
                global_step = training_util.global_step(sess, global_step)
            checkpoint_file = "%s-%08d" % (save_path, global_step) if \
                self._pad_step_number else "%s-%d" % (save_path, global_step)
        else:
            checkpoint_file = save_path
            if os.path.basename(save_path) == latest_filename and \
                    not self._sharded:
                # The state file would take the place of the checkpoint.
                raise ValueError(
                    "'latest_filename' collides with 'save_path': '%s' and "
                    "'%s'" % (latest_filename, save_path))
        sess = session_layers.session_behind(sess)
        if not isinstance(sess, session.BaseSession):
            raise TypeError("'sess' must be a Session; %s" % sess)
        if self._write_version != SaverDef.V2:
            _warn_of_old_format()
        save_dir = os.path.dirname(save_path)
        prefix = checkpoint_file
        if not self._is_empty:
            try:
                prefix = sess.run(
                    self.saver_def.save_tensor_name,
                    {self.saver_def.filename_tensor_name: checkpoint_file})
                prefix = prefix.decode() if isinstance(prefix, bytes) else \
                    str(prefix)
            except (errors.FailedPreconditionError,
                    errors.NotFoundError) as e:
                if not gfile.isdir(save_dir or "."):
                    raise ValueError(
                        "Parent directory of {} doesn't exist, can't save."
                        .format(save_path)) from e
                raise
        if write_meta_graph:
            # Before the state file: what that names is complete.
            with sess.graph.as_default():
                self.export_meta_graph(
                    checkpoint_management.meta_graph_filename(
                        checkpoint_file, meta_graph_suffix),
                    strip_default_attrs=strip_default_attrs,
                    save_debug_info=save_debug_info)
        if self._is_empty:
            return None
        if write_state:
            self._record(prefix)
            checkpoint_management.update_checkpoint_state_internal(
                save_dir=save_dir, model_checkpoint_path=prefix,
                all_model_checkpoint_paths=self.last_checkpoints,
                latest_filename=latest_filename,
                save_relative_paths=self._save_relative_paths)
            self._delete_old(meta_graph_suffix)
        return prefix

    def export_meta_graph(self, filename=None, collection_list=None,
                          as_text=False, export_scope=None,
                          clear_devices=False, clear_extraneous_savers=False,
                          strip_default_attrs=False, save_debug_info=False):
        return export_meta_graph(
            filename=filename, saver_def=self.saver_def,
            collection_list=collection_list, as_text=as_text,
            export_scope=export_scope, clear_devices=clear_devices,
            clear_extraneous_savers=clear_extraneous_savers,
            strip_default_attrs=strip_default_attrs,
            save_debug_info=save_debug_info)

    # ---- Restoring ----

    def restore(self, sess, save_path):
        """Gives the variables the values of a checkpoint."""
        if self._is_empty:
            return
        if save_path is None:
            raise ValueError("Can't load save_path when it is None.")
        sess = session_layers.session_behind(sess)
        save_path = os.fspath(save_path)
        if not checkpoint_exists(save_path):
            raise ValueError("The passed save_path is not a valid "
                             "checkpoint: " + save_path)
        logging.info("Restoring parameters from %s", save_path)
        # Assigning to a resource takes any shape.
        mismatches = self._mismatches(sess, save_path, True)
        if mismatches:
            raise errors.InvalidArgumentError(
                None, None, _RESTORE_FAILED % (_MISMATCH, " from", mismatches))
        try:
            sess.run(self.saver_def.restore_op_name,
                     {self.saver_def.filename_tensor_name: save_path})
        except errors.NotFoundError as e:
            raise errors.NotFoundError(
                e.node_def, e.op, _RESTORE_FAILED % (
                    "a Variable name or other graph key that is missing",
                    " from", e.message)) from None
        except errors.InvalidArgumentError as e:
            # The op that assigns knows neither the tensor nor the file.
            mismatches = self._mismatches(sess, save_path, False)
            raise errors.InvalidArgumentError(
                e.node_def, e.op, _RESTORE_FAILED % (
                    _MISMATCH, " from", e.message + (
                        mismatches and "\n\n" + mismatches))) from None
        self._restored = save_path

    def _mismatches(self, sess, save_path, resources_only):
        return _sluice.restore_mismatches(
            sess.graph._core, self.saver_def.restore_op_name, save_path,
            resources_only)

    @property
    def last_restored(self):
        """The checkpoint this Saver restored last, or None."""
        return self._restored


def restore_newest(saver, sess, state):
    """Restores the newest checkpoint of a CheckpointState that is whole.

    One that is damaged, cut short or not there is said and left out; the error
    of the newest is raised if none is whole. Returns the prefix."""
    newest = state.model_checkpoint_path
    older = [p for p in reversed(state.all_model_checkpoint_paths)
             if p != newest]
    first = None
    for prefix in [newest] + older:
        try:
            saver.restore(sess, prefix)
        except (errors.OpError, ValueError) as e:
            first = first or e
            if not _is_damaged(e, prefix):
                break
            logging.warning("Checkpoint %s is damaged, trying the one before "
                            "it: %s", prefix, e)
            continue
        if first is not None:
            logging.warning("Restored %s in place of %s, which is damaged.",
                            prefix, newest)
        return prefix
    raise first


def _is_damaged(error, prefix):
    """Whether the checkpoint is broken, and not what it is restored to."""
    if isinstance(error, (errors.DataLossError, errors.OutOfRangeError)):
        return True
    if isinstance(error, errors.NotFoundError):
        return "not found in checkpoint" not in str(error)
    return isinstance(error, ValueError) and not checkpoint_exists(prefix)


def _warn_of_old_format():
    for line in ("*******************************************************",
                 "TensorFlow's V1 checkpoint format has been deprecated.",
                 "Consider switching to the more efficient V2 format:",
                 "   `tf.train.Saver(write_version=tf.train.SaverDef.V2)`",
                 "now on by default.",
                 "*******************************************************"):
        logging.warning(line)


def export_meta_graph(filename=None, meta_info_def=None, graph_def=None,
                      saver_def=None, collection_list=None, as_text=False,
                      graph=None, export_scope=None, clear_devices=False,
                      clear_extraneous_savers=False,
                      strip_default_attrs=False, save_debug_info=False,
                      **kwargs):
    from sluice.framework import meta_graph
    return meta_graph.export_scoped_meta_graph(
        filename=filename, meta_info_def=meta_info_def, graph_def=graph_def,
        saver_def=saver_def, collection_list=collection_list,
        as_text=as_text, graph=graph, export_scope=export_scope,
        clear_devices=clear_devices,
        clear_extraneous_savers=clear_extraneous_savers,
        strip_default_attrs=strip_default_attrs)


def import_meta_graph(meta_graph_or_file, clear_devices=False,
                      import_scope=None, **kwargs):
    """Adds the nodes of a meta graph; returns a Saver for it, or None."""
    from sluice.framework import meta_graph
    return _import_meta_graph(meta_graph, meta_graph_or_file, clear_devices,
                              import_scope, **kwargs)


def _import_meta_graph(meta_graph, meta_graph_or_file, clear_devices,
                       import_scope, **kwargs):
    if not isinstance(meta_graph_or_file, protos.MetaGraphDef):
        meta_graph_def = meta_graph.read_meta_graph_file(meta_graph_or_file)
    else:
        meta_graph_def = meta_graph_or_file
    imported = meta_graph.import_scoped_meta_graph(
        meta_graph_def, clear_devices=clear_devices,
        import_scope=import_scope, **kwargs)
    if meta_graph_def.HasField("saver_def"):
        # The scope may have got a number.
        scope = import_scope
        if scope and imported:
            name = sorted(imported)[0]
            at = imported[name].op.name.find(name.split(":")[0])
            scope = imported[name].op.name[:at].rstrip("/") or import_scope
        return Saver(saver_def=meta_graph_def.saver_def, name=scope)
    if variables.global_variables(scope=import_scope):
        return Saver()
    logging.info("Saver not created because there are no variables in the "
                 "graph to restore")
    return None
