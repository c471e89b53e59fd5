"""What a server does not let its clients do."""

import os
import pathlib
import re

import pytest

from conftest import ROOT

CLIENT = """
    import sys
    import numpy as np
    import tensorflow as tf
    def attempt(what, function):
        try:
            print(what, "gave", function())
        except tf.errors.OpError as e:
            print(what, "raised", type(e).__name__ + ":",
                  e.message.replace("\\n", " "))
    x = tf.placeholder(tf.float32)
    y = tf.reduce_sum(x)
    session = tf.Session("grpc://" + sys.argv[1])
    """


def server(processes, address, *options, **more):
    process = processes.sluice("server", "--cluster", "a=" + address, *options,
                               **more)
    process.expect("Started server")
    return process


def attempts(processes, address, text):
    client = processes.python(CLIENT + text, address)
    assert client.wait() == 0, client.output
    return client


def test_a_huge_message_is_refused(processes, addresses):
    address, = addresses(1)
    server(processes, address, "--limit", "message_bytes=1M")
    client = attempts(processes, address, """
    attempt("small", lambda: session.run(y, {x: np.ones(100)}))
    attempt("huge", lambda: session.run(y, {x: np.ones(1 << 20)}))
    attempt("again", lambda: session.run(y, {x: np.ones(100)}))
    """)
    client.expect("small gave 100")
    line = client.expect("huge raised ResourceExhaustedError")
    assert "limit message_bytes=1048576" in line
    assert "--limit message_bytes=N" in line
    client.expect("again gave 100")


def test_one_session_too_many_is_refused(processes, addresses):
    address, = addresses(1)
    server(processes, address,
           env=dict(os.environ, SLUICE_LIMITS="sessions=2"))
    client = attempts(processes, address, """
    second, third = [tf.Session("grpc://" + sys.argv[1]) for _ in range(2)]
    attempt("first", lambda: session.run(y, {x: [1]}))
    attempt("second", lambda: second.run(y, {x: [2]}))
    attempt("third", lambda: third.run(y, {x: [3]}))
    session.close()
    attempt("later", lambda: third.run(y, {x: [3]}))
    """)
    client.expect("first gave 1")
    client.expect("second gave 2")
    assert "limit sessions=2" in client.expect(
        "third raised ResourceExhaustedError")
    client.expect("later gave 3")


def test_a_large_graph_is_refused(processes, addresses):
    address, = addresses(1)
    server(processes, address, "--limit", "graph_nodes=50", "--limit",
           "graph_bytes=100K")
    client = attempts(processes, address, """
    attempt("small", lambda: session.run(y, {x: [1]}))
    with tf.Graph().as_default():
        many = [tf.constant(i) for i in range(60)]
        other = tf.Session("grpc://" + sys.argv[1])
        attempt("nodes", lambda: other.run(many[0]))
    with tf.Graph().as_default():
        big = tf.constant(np.ones(100000))
        other = tf.Session("grpc://" + sys.argv[1])
        attempt("bytes", lambda: other.run(big))
    """)
    client.expect("small gave 1")
    assert "limit graph_nodes=50" in client.expect(
        "nodes raised ResourceExhaustedError")
    assert "limit graph_bytes=102400" in client.expect(
        "bytes raised ResourceExhaustedError")


@pytest.mark.parametrize("limit, text", [
    ("seasons=3", "There is no limit 'seasons'"),
    ("sessions=many", "not 'many'"),
    ("sessions", "is a number from 1"),
])
def test_a_wrong_limit_is_told(processes, limit, text):
    process = processes.sluice("server", "--cluster", "a=localhost:0",
                               "--limit", limit)
    assert process.wait() == 2
    assert text in process.output


@pytest.mark.parametrize("how", ["option", "environment"])
def test_files_outside_of_the_jail_are_denied(processes, addresses, tmp_path,
                                              how):
    address, = addresses(1)
    allowed, secret = tmp_path / "allowed", tmp_path / "secret"
    allowed.mkdir()
    secret.mkdir()
    (secret / "key").write_text("secret")
    (allowed / "data").write_text("data")
    (allowed / "link").symlink_to(secret)
    (allowed / "new").symlink_to(secret / "new")
    if how == "option":
        server(processes, address, "--allow-files", allowed)
    else:
        server(processes, address,
               env=dict(os.environ, SLUICE_ALLOW_FILES=str(allowed)))
    client = attempts(processes, address, """
    allowed, secret = %r, %r
    attempt("data", lambda: session.run(
        tf.raw_ops.ReadFile(filename=allowed + "/data")))
    for i, name in enumerate([secret + "/key", allowed + "/../secret/key",
                              allowed + "/link/key", "/etc/passwd"]):
        attempt("read %%d" %% i, lambda: session.run(
            tf.raw_ops.ReadFile(filename=name)))
    for i, name in enumerate([secret + "/new", allowed + "/link/new",
                              allowed + "/new"]):
        attempt("write %%d" %% i, lambda: session.run(
            tf.raw_ops.WriteFile(filename=name, contents="x")))
    attempt("match", lambda: session.run(
        tf.raw_ops.MatchingFiles(pattern=secret + "/*")))
    v = tf.Variable(1.0, name="v")
    saver = tf.train.Saver([v], write_version=tf.train.SaverDef.V2)
    session.run(v.initializer)
    names = saver.saver_def
    feed = lambda folder: {names.filename_tensor_name: folder + "/model"}
    attempt("save", lambda: session.run(names.save_tensor_name, feed(allowed)))
    attempt("restore", lambda: session.run(names.restore_op_name,
                                           feed(allowed)))
    attempt("save out", lambda: session.run(names.save_tensor_name,
                                            feed(secret)))
    attempt("restore out", lambda: session.run(names.restore_op_name,
                                               feed(secret)))
    """ % (str(allowed), str(secret)))
    client.expect("data gave b'data'")
    for what in ["read 0", "read 1", "read 2", "read 3", "write 0", "write 1",
                 "write 2", "match", "save out", "restore out"]:
        line = client.expect(what + " raised PermissionDeniedError")
        assert str(allowed) in line
    client.expect("save gave")
    client.expect("restore gave")
    assert os.listdir(str(secret)) == ["key"]


# Every op that takes the name of a file, with one that is outside.
FILE_OPS = """
    out = %r
    raw = tf.raw_ops
    one = [1.0]

    def read(reader):
        queue = tf.FIFOQueue(1, tf.string)
        with tf.control_dependencies([queue.enqueue([out + "/key"])]):
            return reader.read(queue)[1]

    def table():
        table = tf.contrib.lookup.HashTable(
            tf.contrib.lookup.TextFileInitializer(
                out + "/key", tf.string, tf.contrib.lookup.TextFileIndex
                .WHOLE_LINE, tf.int64,
                tf.contrib.lookup.TextFileIndex.LINE_NUMBER), -1)
        return table.init

    def read_v2(make, **attributes):
        queue = tf.FIFOQueue(1, tf.string)
        with tf.control_dependencies([queue.enqueue([out + "/key"])]):
            return raw.ReaderReadV2(reader_handle=make(**attributes),
                                    queue_handle=queue.queue_ref)[1]

    # As left behind by a reader in the middle of the file.
    state = b"\\x08\\x01\\x22" + bytes([len(out) + 4]) + (
        out + "/key").encode()

    def restored(reader, queue, restore, read):
        queue = queue(component_types=[tf.string])
        with tf.control_dependencies([restore(reader_handle=reader,
                                              state=state)]):
            return read(reader_handle=reader, queue_handle=queue)[1]

    def op(kind, inputs, types=(), dtypes=None):
        attrs = {}
        if dtypes:
            attrs["dtypes"] = tf.AttrValue(list=tf.AttrValue.ListValue(
                type=[t.as_datatype_enum for t in dtypes]))
        return tf.get_default_graph().create_op(
            kind, [tf.convert_to_tensor(x) for x in inputs], list(types),
            name=kind.strip("_"), attrs=attrs)

    def ticket():
        return op("_SluiceShardTicket", [], [tf.string]).outputs[0]

    # `peer` is the other task.
    def store():
        with tf.device(peer):
            sender = ticket()
        receiver = ticket()
        with tf.device(peer):
            send = op("_SluiceSendShard",
                      [sender, receiver, ["a"], [""], one],
                      dtypes=[tf.float32])
        with tf.control_dependencies([send]):
            return op("_SluiceStoreShard", [sender, receiver, out + "/s"])

    def load():
        sender = ticket()
        with tf.device(peer):
            receiver = ticket()
        return op("_SluiceLoadShard",
                  [sender, receiver, out + "/s", ["a"], [""]],
                  dtypes=[tf.float32])

    ops = {
        "_SluiceStoreShard": store,
        "_SluiceLoadShard": load,
        "ReaderRestoreState": lambda: restored(
            raw.WholeFileReader(), raw.FIFOQueue, raw.ReaderRestoreState,
            raw.ReaderRead),
        "ReaderRestoreStateV2": lambda: restored(
            raw.WholeFileReaderV2(), raw.FIFOQueueV2,
            raw.ReaderRestoreStateV2, raw.ReaderReadV2),
        "WholeFileReaderV2": lambda: read_v2(raw.WholeFileReaderV2),
        "TextLineReaderV2": lambda: read_v2(raw.TextLineReaderV2),
        "FixedLengthRecordReaderV2":
            lambda: read_v2(raw.FixedLengthRecordReaderV2, record_bytes=1),
        "TFRecordReaderV2": lambda: read_v2(raw.TFRecordReaderV2),
        "InitializeTableFromTextFileV2":
            lambda: raw.InitializeTableFromTextFileV2(
                table_handle=raw.HashTableV2(key_dtype=tf.string,
                                             value_dtype=tf.int64),
                filename=out + "/key", key_index=-2, value_index=-1),
        "ReadFile": lambda: raw.ReadFile(filename=out + "/key"),
        "WriteFile": lambda: raw.WriteFile(filename=out + "/w", contents="x"),
        "MatchingFiles": lambda: raw.MatchingFiles(pattern=out + "/*"),
        "WholeFileReader": lambda: read(tf.WholeFileReader()),
        "TextLineReader": lambda: read(tf.TextLineReader()),
        "FixedLengthRecordReader":
            lambda: read(tf.FixedLengthRecordReader(1)),
        "TFRecordReader": lambda: read(tf.TFRecordReader()),
        "InitializeTableFromTextFile": table,
        "PrintV2": lambda: raw.PrintV2(input="x",
                                       output_stream="file://" + out + "/p"),
        "Save": lambda: raw.Save(filename=out + "/s", tensor_names=["a"],
                                 data=[one]),
        "SaveSlices": lambda: raw.SaveSlices(
            filename=out + "/s", tensor_names=["a"],
            shapes_and_slices=[""], data=[one]),
        "Restore": lambda: raw.Restore(file_pattern=out + "/key",
                                       tensor_name="a", dt=tf.float32),
        "RestoreSlice": lambda: raw.RestoreSlice(
            file_pattern=out + "/key", tensor_name="a", shape_and_slice="",
            dt=tf.float32),
        "SaveV2": lambda: raw.SaveV2(prefix=out + "/s", tensor_names=["a"],
                                     shape_and_slices=[""], tensors=[one]),
        "RestoreV2": lambda: raw.RestoreV2(
            prefix=out + "/s", tensor_names=["a"], shape_and_slices=[""],
            dtypes=[tf.float32]),
        "MergeV2Checkpoints": lambda: raw.MergeV2Checkpoints(
            checkpoint_prefixes=[out + "/s"], destination_prefix=out + "/m"),
        "GenerateVocabRemapping": lambda: raw.GenerateVocabRemapping(
            new_vocab_file=out + "/key", old_vocab_file=out + "/key",
            new_vocab_offset=0, num_new_vocab=1),
        "LoadAndRemapMatrix": lambda: raw.LoadAndRemapMatrix(
            ckpt_path=out + "/s", old_tensor_name="a",
            row_remapping=[0], col_remapping=[0], initializing_values=[],
            num_rows=1, num_cols=1),
    }
    isolated = tf.ConfigProto(isolate_session_state=True)
    own_cluster = tf.ConfigProto()
    job = own_cluster.cluster_def.job.add(name="other")
    job.tasks[3], job.tasks[4] = sys.argv[1:3]
    for kind, config, peer in (
            ("shared", tf.ConfigProto(), "/job:b"),
            ("isolated", isolated, "/job:b"),
            ("own_cluster", own_cluster, "/job:other/task:4")):
        for name, make in ops.items():
            with tf.Graph().as_default():
                target = make()
                with tf.Session("grpc://" + sys.argv[1],
                                config=config) as session:
                    attempt(kind + " " + name, lambda: session.run(target))
    print("ops:", *ops)
    """


def test_no_op_leaves_the_jail(processes, addresses, tmp_path):
    tasks = addresses(2)
    allowed, secret = tmp_path / "allowed", tmp_path / "secret"
    allowed.mkdir()
    secret.mkdir()
    (secret / "key").write_text("secret")
    for job in "ab":
        processes.sluice("server", "--cluster", "a=%s;b=%s" % tuple(tasks),
                         "--job", job, "--task", "0", "--allow-files",
                         allowed).expect("Started server")
    client = processes.python(CLIENT + FILE_OPS % str(secret), *tasks)
    assert client.wait() == 0, client.output
    ops = client.expect("ops: ").split()[1:]
    assert len(ops) == 27
    for kind in ("shared", "isolated", "own_cluster"):
        for op in ops:
            line = client.expect("%s %s raised " % (kind, op))
            assert "PermissionDeniedError" in line
            assert "is outside of what this server may touch" in line
    assert os.listdir(str(secret)) == ["key"]


def test_no_op_opens_files_but_by_its_device():
    """An op that is not in the list above must not forget the jail either."""
    past_the_device = re.compile(
        r"RealFileSystem|fstream|\bfopen\(|\bopenat?\(|std::filesystem|"
        r"\bopendir\(|\bpopen\(|\bsystem\(")
    looked = 0
    for folder in ("ops", "kernel", "executor", "io"):
        for path in pathlib.Path(ROOT, "sluice", folder).rglob("*.cc"):
            if "testing" in path.parts or re.search("_(test|bench|fuzz)$",
                                                    path.stem):
                continue
            looked += 1
            assert not past_the_device.search(path.read_text()), path
    assert looked > 150


@pytest.mark.parametrize("allowed", ["", ":"])
def test_a_jail_without_a_folder_is_refused(processes, allowed):
    process = processes.sluice(
        "server", "--cluster", "a=localhost:0",
        env=dict(os.environ, SLUICE_ALLOW_FILES=allowed))
    assert process.wait() == 2
    assert "SLUICE_ALLOW_FILES is set and names no folder" in process.output


def test_an_empty_jail_is_refused(processes):
    process = processes.sluice("server", "--cluster", "a=localhost:0",
                               "--allow-files", "")
    assert process.wait() == 2
    assert "--allow-files" in process.output


def test_a_jail_that_is_no_folder_is_told(processes):
    process = processes.sluice("server", "--cluster", "a=localhost:0",
                               "--allow-files", "nowhere")
    assert process.wait() == 2
    assert "nowhere" in process.output
