"""Message classes, made at import from the descriptors the build embeds."""

import os
import sys

from google.protobuf import descriptor_pb2
from google.protobuf import descriptor_pool
from google.protobuf import message_factory


def _load():
    path = os.path.join(os.path.dirname(os.path.dirname(__file__)),
                        "descriptors.bin")
    files = descriptor_pb2.FileDescriptorSet()
    with open(path, "rb") as f:
        files.ParseFromString(f.read())
    # A pool of our own: another library in this process may have messages of
    # the same names.
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file) if hasattr(pool, "Add") else pool.AddSerializedFile(
            file.SerializeToString())
    names = {}
    for file in files.file:
        if not file.package.startswith("sluice.pb"):
            continue
        for message in file.message_type:
            descriptor = pool.FindMessageTypeByName(
                "%s.%s" % (file.package, message.name))
            names[message.name] = _class_of(descriptor, pool)
        for enum in file.enum_type:
            descriptor = pool.FindEnumTypeByName(
                "%s.%s" % (file.package, enum.name))
            for value in descriptor.values:
                names.setdefault(value.name, value.number)
    return names


def _class_of(descriptor, pool):
    if hasattr(message_factory, "GetMessageClass"):
        cls = message_factory.GetMessageClass(descriptor)
    else:
        cls = message_factory.MessageFactory(pool).GetPrototype(descriptor)
    cls.__module__ = __name__  # So that pickle finds it here.
    return cls


for _name, _value in _load().items():
    setattr(sys.modules[__name__], _name, _value)
