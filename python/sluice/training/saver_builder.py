"""The operations of a Saver."""

import os
import uuid

from sluice.framework import constant_op
from sluice.framework import ops
from sluice.framework import protos
from sluice.framework.op_builder import apply_op
from sluice.ops import array_ops
from sluice.ops import control_flow_ops
from sluice.training import saveable_objects

SaverDef = protos.SaverDef


class BaseSaverBuilder(object):
    """Builds one save per task, and one restore per variable."""

    SaveSpec = saveable_objects.SaveSpec
    SaveableObject = saveable_objects.SaveableObject
    VariableSaveable = saveable_objects.ReferenceVariableSaveable
    ResourceVariableSaveable = saveable_objects.ResourceVariableSaveable

    def __init__(self, write_version=SaverDef.V2, gather_to=None):
        """`gather_to`: the task whose disk holds all, if they share none."""
        self._write_version = write_version
        self._gather_to = gather_to

    def save_op(self, filename_tensor, saveables):
        names, tensors, slices = [], [], []
        for saveable in saveables:
            for spec in saveable.specs:
                names.append(spec.name)
                tensors.append(spec.tensor)
                slices.append(spec.slice_spec)
        if self._write_version == SaverDef.V2:
            return apply_op("SaveV2", None, prefix=filename_tensor,
                            tensor_names=names, shape_and_slices=slices,
                            tensors=tensors)
        return apply_op("SaveSlices", "save", filename=filename_tensor,
                        tensor_names=names, shapes_and_slices=slices,
                        data=tensors)

    def restore_op(self, filename_tensor, saveable, preferred_shard):
        return _restore_v2(filename_tensor, saveable.specs)

    def bulk_restore(self, filename_tensor, saveables, preferred_shard,
                     restore_sequentially):
        restored = []
        for saveable in saveables:
            device = saveable.device and saveable_objects.set_cpu0(
                saveable.device)
            # One after the other: a machine may not hold all at once.
            before = restored[-1:] if restore_sequentially else []
            with ops.device(device), ops.control_dependencies(before):
                restored.extend(self.restore_op(filename_tensor, saveable,
                                                preferred_shard))
        return restored

    def sharded_filename(self, filename_tensor, shard, num_shards):
        return apply_op("ShardedFilename", None, basename=filename_tensor,
                        shard=shard, num_shards=num_shards)

    def _AddSaveOps(self, filename_tensor, saveables):
        save = self.save_op(filename_tensor, saveables)
        return control_flow_ops.with_dependencies([save], filename_tensor)

    def _AddShardedSaveOps(self, filename_tensor, per_device):
        if self._write_version == SaverDef.V2:
            return self._AddShardedSaveOpsForV2(filename_tensor, per_device)
        num_shards = constant_op.constant(len(per_device), name="num_shards")
        saves = []
        for shard, (device, saveables) in enumerate(per_device):
            with ops.device(saveable_objects.set_cpu0(device)):
                name = self.sharded_filename(filename_tensor, shard,
                                             num_shards)
                saves.append(self._AddSaveOps(name, saveables))
        with ops.control_dependencies([s.op for s in saves]):
            return apply_op("ShardedFilespec", None, basename=filename_tensor,
                            num_shards=num_shards)

    def _AddShardedSaveOpsForV2(self, checkpoint_prefix, per_device):
        # Each task writes a part of its own in a directory of this Saver; the
        # last step merges them under the prefix.
        suffix = "_temp_%s/part" % uuid.uuid4().hex
        temporary = apply_op("StringJoin", None,
                             inputs=[checkpoint_prefix, suffix])
        num_shards = constant_op.constant(len(per_device), name="num_shards")
        prefixes, saves = [], []
        for shard, (device, saveables) in enumerate(per_device):
            with ops.device(saveable_objects.set_cpu0(
                    self._gather_to or device)):
                name = self.sharded_filename(temporary, shard, num_shards)
                prefixes.append(name)
                saves.append(
                    self._AddGatheredSaveOps(name, device, saveables)
                    if self._gather_to else
                    self._AddSaveOps(name, saveables).op)
        last_device = self._gather_to or per_device[-1][0]
        with ops.control_dependencies(saves):
            with ops.device(saveable_objects.set_cpu0(last_device)):
                merge = apply_op("MergeV2Checkpoints", None,
                                 checkpoint_prefixes=prefixes,
                                 destination_prefix=checkpoint_prefix,
                                 delete_old_dirs=True)
                with ops.control_dependencies([merge]):
                    return array_ops.identity(checkpoint_prefix)

    def _AddRestoreOps(self, filename_tensor, saveables, restore_sequentially,
                       reshape, preferred_shard=-1, name="restore_all"):
        restored = self.bulk_restore(filename_tensor, saveables,
                                     preferred_shard, restore_sequentially)
        return self._AddAssignOps(saveables, restored, reshape, name)

    def _AddAssignOps(self, saveables, restored, reshape, name):
        assigns, at = [], 0
        for saveable in saveables:
            shapes = None
            if reshape:
                shapes = []
                for spec in saveable.specs:
                    shape = spec.tensor.get_shape()
                    if not shape.is_fully_defined():
                        shape = array_ops.shape(spec.tensor)
                    shapes.append(shape)
            tensors = restored[at:at + len(saveable.specs)]
            at += len(saveable.specs)
            assigns.append(saveable.restore(tensors, shapes))
        return control_flow_ops.group(*assigns, name=name)

    def _AddGatheredSaveOps(self, prefix, device, saveables):
        """The task of `device` sends its part, the one of now writes it."""
        specs = [spec for saveable in saveables for spec in saveable.specs]
        to = apply_op("_SluiceShardTicket", "ShardTicket")
        with ops.device(saveable_objects.set_cpu0(device)):
            sender = apply_op("_SluiceShardTicket", "ShardTicket")
            send = apply_op(
                "_SluiceSendShard", "SendShard", **{"from": sender}, to=to,
                tensor_names=[s.name for s in specs],
                shape_and_slices=[s.slice_spec for s in specs],
                tensors=[s.tensor for s in specs])
        with ops.control_dependencies([send]):
            return apply_op("_SluiceStoreShard", "StoreShard",
                            **{"from": sender}, to=to, prefix=prefix)

    def _AddScatteredRestoreOps(self, prefix, device, saveables, reshape):
        """The task that owns the files sends `device` its part."""
        specs = [spec for saveable in saveables for spec in saveable.specs]
        types = [saveable_objects.save_dtype(s) for s in specs]
        with ops.device(saveable_objects.set_cpu0(device)):
            to = apply_op("_SluiceShardTicket", "ShardTicket")
        with ops.device(saveable_objects.set_cpu0(self._gather_to)):
            sender = apply_op("_SluiceShardTicket", "ShardTicket")
            load = apply_op(
                "_SluiceLoadShard", "LoadShard", **{"from": sender}, to=to,
                prefix=prefix, tensor_names=[s.name for s in specs],
                shape_and_slices=[s.slice_spec for s in specs], dtypes=types)
        with ops.device(saveable_objects.set_cpu0(device)):
            restored = apply_op("_SluiceFetchShard", "FetchShard",
                                **{"from": sender}, to=to, dtypes=types)
            assign = self._AddAssignOps(saveables, restored, reshape,
                                        "restore_part")
            return control_flow_ops.group(load, assign, name="restore_shard")

    def _AddShardedRestoreOps(self, filename_tensor, per_device,
                              restore_sequentially, reshape):
        restores = []
        for shard, (device, saveables) in enumerate(per_device):
            if self._gather_to:
                restores.append(self._AddScatteredRestoreOps(
                    filename_tensor, device, saveables, reshape))
                continue
            with ops.device(device):
                restores.append(self._AddRestoreOps(
                    filename_tensor, saveables, restore_sequentially, reshape,
                    preferred_shard=shard, name="restore_shard"))
        return control_flow_ops.group(*restores, name="restore_all")

    @staticmethod
    def _GroupByDevices(saveables):
        per_device = {}
        for saveable in saveables:
            devices = {saveable_objects.pydev.canonical_name(s.device)
                       for s in saveable.specs}
            if len(devices) != 1:
                raise ValueError("All tensors of a saveable object must be on "
                                 "the same device: %s" % saveable.name)
            per_device.setdefault(devices.pop(), []).append(saveable)
        return sorted(per_device.items(), key=lambda item: item[0])

    def _build_internal(self, names_to_saveables, reshape=False, sharded=False,
                        max_to_keep=5, keep_checkpoint_every_n_hours=10000.0,
                        name=None, restore_sequentially=False,
                        filename="model", build_save=True, build_restore=True):
        saveables = saveable_objects.validate_and_slice_inputs(
            names_to_saveables)
        if max_to_keep is None:
            max_to_keep = 0
        if self._gather_to and self._write_version != SaverDef.V2:
            raise ValueError("Checkpoints that are gathered are written in "
                             "the V2 format only")
        sharded = sharded or bool(self._gather_to)
        with ops.name_scope(name, "save", [s.op for s in saveables]) as name:
            filename_tensor = array_ops.placeholder_with_default(
                filename or "model", shape=(), name="filename")
            # What is fed has had this name since the first release.
            filename_tensor = array_ops.placeholder_with_default(
                filename_tensor, shape=(), name="Const")
            if sharded:
                per_device = self._GroupByDevices(saveables)
                save_tensor = self._AddShardedSaveOps(filename_tensor,
                                                      per_device)
                restore_op = self._AddShardedRestoreOps(
                    filename_tensor, per_device, restore_sequentially,
                    reshape)
            else:
                save_tensor = self._AddSaveOps(filename_tensor, saveables)
                restore_op = self._AddRestoreOps(
                    filename_tensor, saveables, restore_sequentially, reshape)
        return SaverDef(
            filename_tensor_name=filename_tensor.name,
            save_tensor_name=save_tensor.name,
            restore_op_name=restore_op.name, max_to_keep=max_to_keep,
            sharded=sharded,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            version=self._write_version)

    build = _build_internal


class BulkSaverBuilder(BaseSaverBuilder):
    """Builds one save and one restore per task."""

    def bulk_restore(self, filename_tensor, saveables, preferred_shard,
                     restore_sequentially):
        # One op reads all, so there is no order to keep.
        del restore_sequentially
        specs = [spec for saveable in saveables for spec in saveable.specs]
        with ops.device("cpu:0"):
            return _restore_v2(filename_tensor, specs)


def _restore_v2(filename_tensor, specs):
    return apply_op("RestoreV2", None, prefix=filename_tensor,
                    tensor_names=[s.name for s in specs],
                    shape_and_slices=[s.slice_spec for s in specs],
                    dtypes=[saveable_objects.save_dtype(s) for s in specs])


def gather_device(gather_shards):
    """The task that a Saver gathers its shards at, or None.

    `gather_shards` is what the program gave: a device, True for the task of
    this process, False, or None for what SLUICE_GATHER_CHECKPOINTS says."""
    if gather_shards is None:
        gather_shards = os.environ.get("SLUICE_GATHER_CHECKPOINTS", "")
        if gather_shards.lower() in ("", "0", "false", "no"):
            return None
        if gather_shards.lower() in ("1", "true", "yes"):
            gather_shards = True
    if gather_shards is not True:
        return gather_shards or None
    from sluice.training import server_lib
    task = server_lib.task_of_this_process()
    if task is None:
        raise ValueError(
            "To gather checkpoints the task that owns their directory must be "
            "known, and this process has started no server and has no "
            "TF_CONFIG: say which it is, as in "
            "Saver(gather_shards='/job:worker/task:0') or "
            "SLUICE_GATHER_CHECKPOINTS=/job:worker/task:0")
    return task
