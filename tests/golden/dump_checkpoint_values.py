"""Turns the expected tensors of golden checkpoints (.npz, string values in
.json) into the text file that the C++ tests read, one tensor a line:

  checkpoint <tab> tensor <tab> dtype <tab> dims by comma <tab> bytes in hex

Of a string tensor the hex of each element follows, by comma.
Usage: dump_checkpoint_values.py DIRECTORY > checkpoints/values.tsv
"""
import ast
import base64
import json
import struct
import sys
import zipfile

CHECKPOINTS = ["dtypes", "partitioned-1", "sharded", "training/model.ckpt-12",
               "v1_legacy"]
TYPES = {"f2": "half", "f4": "float", "f8": "double", "c8": "complex64",
         "c16": "complex128", "b1": "bool", "i1": "int8", "i2": "int16",
         "i4": "int32", "i8": "int64", "u1": "uint8", "u2": "uint16",
         "u4": "uint32", "u8": "uint64"}


def read_npy(data):
    length_size = 2 if data[6] == 1 else 4
    start = 8 + length_size
    length = int.from_bytes(data[8:start], "little")
    header = ast.literal_eval(data[start:start + length].decode())
    assert not header["fortran_order"]
    return header["descr"], header["shape"], data[start + length:]


def line(checkpoint, name, dtype, shape, text):
    print(checkpoint, name, dtype, ",".join(map(str, shape)), text, sep="\t")


for checkpoint in CHECKPOINTS:
    path = f"{sys.argv[1]}/{checkpoint}"
    archive = zipfile.ZipFile(path + ".npz")
    for member in sorted(archive.namelist()):
        name = member[:-len(".npy")].replace("|", "/")
        descr, shape, data = read_npy(archive.read(member))
        dtype = TYPES[descr[1:]]
        if "bfloat16" in name:  # Given as float32: keep the upper halves.
            dtype = "bfloat16"
            words = struct.unpack(f"<{len(data) // 4}I", data)
            data = b"".join(struct.pack("<H", word >> 16) for word in words)
        line(checkpoint, name, dtype, shape, data.hex())
    with open(path + ".json") as file:
        strings = json.load(file).get("strings", {})
    for name, value in strings.items():
        elements = [base64.b64decode(text).hex() for text in value["base64"]]
        line(checkpoint, name, "string", value["shape"], ",".join(elements))
