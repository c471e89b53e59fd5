"""Readers, parse_example with all kinds of features, sequences, decode ops, barrier, staging area."""
import tensorflow as tf

files = tf.train.string_input_producer(["a", "b"], shuffle=False)
r = tf.TFRecordReader(options=tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.GZIP))
k, v = r.read(files)
ks, vs = r.read_up_to(files, 3)
counts = [r.num_records_produced(), r.num_work_units_completed(), r.reset()]
w = tf.WholeFileReader(name="whole")
wk, wv = w.read(files)
fl = tf.FixedLengthRecordReader(4, header_bytes=1, encoding="ZLIB")
i = tf.IdentityReader()
st = i.serialize_state()
re = i.restore_state(st)
ser = tf.placeholder(tf.string, [None], name="ser")
ex = tf.parse_example(ser, {
    "f": tf.FixedLenFeature([2], tf.float32), "d": tf.FixedLenFeature([], tf.int64, default_value=3),
    "e": tf.FixedLenFeature([2, 2], tf.float32, default_value=[[1.0, 2.0], [3.0, 4.0]]),
    "v": tf.VarLenFeature(tf.string), "s": tf.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
    "s2": tf.FixedLenSequenceFeature([2], tf.float32, allow_missing=True, default_value=7.0),
    "sp": tf.SparseFeature("ix", "val", tf.float32, 10),
    "sp2": tf.SparseFeature(["ix", "iy"], "val", tf.float32, [10, 20], already_sorted=True)},
    example_names=tf.constant(["n"]), name="Batch")
one = tf.parse_single_example(v, {"a": tf.FixedLenFeature([], tf.string, default_value="x"), "b": tf.VarLenFeature(tf.int64), "c": tf.FixedLenFeature([3], tf.int64)})
named = tf.parse_single_example(v, {"a": tf.FixedLenFeature([], tf.string)}, name="One", example_names="ex")
ctx, seq = tf.parse_single_sequence_example(v, {"id": tf.FixedLenFeature([], tf.int64), "c": tf.VarLenFeature(tf.string)},
    {"t": tf.FixedLenSequenceFeature([2], tf.float32), "w": tf.VarLenFeature(tf.string), "m": tf.FixedLenSequenceFeature([], tf.int64, allow_missing=True)})
ctx2, seq2, lens = tf.io.parse_sequence_example(ser, {"id": tf.FixedLenFeature([], tf.int64, default_value=1)}, {"t": tf.FixedLenSequenceFeature([2], tf.float32)})
raw = tf.decode_raw(wv, tf.uint8)
raw2 = tf.decode_raw(wv, tf.int16, little_endian=False, name="big")
csv = tf.decode_csv(v, [[0.0], tf.constant(["x"]), [1]], field_delim=";", na_value="NA", select_cols=[0, 2, 3])
pt = tf.parse_tensor(v, tf.float32)
sert = tf.serialize_tensor(raw)
js = tf.decode_json_example(v)
rf = tf.read_file("x")
wf = tf.write_file("x", "y")
mf = tf.matching_files("*")
