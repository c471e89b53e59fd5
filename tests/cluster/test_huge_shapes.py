"""A tensor without elements may have other sizes up to 2^62. No op trusts the
products of those, walks them, or makes memory of them: a client that sends such
tensors gets an error or an empty value, and the server goes on.

The shapes are hidden from the graph, so that only kernels can see them."""

import pytest
import sluice as tf
from sluice.framework import protos

from conftest import wait_until
from test_vanished import is_quiet

F, I32, I64, STRING = tf.float32, tf.int32, tf.int64, tf.string


class Nodes(object):
    """A GraphDef of nodes that Python's own checks have not seen."""

    def __init__(self):
        self.graph_def = protos.GraphDef()
        self.graph_def.versions.producer = 27

    def node(self, op, inputs=(), **attrs):
        made = self.graph_def.node.add()
        made.name = "n%d" % len(self.graph_def.node)
        made.op = op
        made.input.extend(inputs)
        for name, value in attrs.items():
            attr = made.attr[name]
            if isinstance(value, tf.DType):
                attr.type = value.as_datatype_enum
            elif isinstance(value, bool):
                attr.b = value
            elif isinstance(value, int):
                attr.i = value
            elif isinstance(value, bytes):
                attr.s = value
            elif value is None:
                attr.shape.unknown_rank = True
            elif isinstance(value, tuple):
                attr.shape.SetInParent()
                for size in value:
                    attr.shape.dim.add().size = size
            elif isinstance(value, list):
                attr.list.type.extend(t.as_datatype_enum for t in value)
            else:
                attr.tensor.CopyFrom(value)
        return made.name

    def const(self, value, dtype):
        return self.node("Const", dtype=dtype,
                         value=tf.make_tensor_proto(value, dtype=dtype))

    def empty(self, dtype, *sizes):
        proto = protos.TensorProto()
        proto.dtype = dtype.as_datatype_enum
        for size in sizes:
            proto.tensor_shape.dim.add().size = size
        seen = self.node("Const", dtype=dtype, value=proto)
        return self.node("PlaceholderWithDefault", [seen], dtype=dtype,
                         shape=None)

    def part(self, x, begin):
        """Reads where there is nothing, if somebody believes the shape."""
        sizes = [1] * (len(begin) - 1) + [4]
        return self.node("Slice", [x, self.const(begin, I64),
                                   self.const(sizes, I64)], T=F, Index=I64)

    def total(self, x, axes):
        return self.node("Sum", [x, self.const(axes, I32)], T=F, Tidx=I32)

    def array(self, size):
        return self.node("TensorArrayV3", [self.const(size, I32)], dtype=F,
                         element_shape=None, clear_after_read=False)

    def too_large(self):
        return self.node("MatMul", [self.empty(F, 2**32, 0),
                                    self.empty(F, 0, 2**32)], T=F)


def read_of_a_product(g):
    return g.part(g.too_large(), [2**20, 0])


def write_to_a_product(g):
    v = g.node("VarHandleOp", dtype=F, shape=None)
    assigned = g.node("AssignVariableOp", [v, g.too_large()], dtype=F)
    return g.node("ResourceScatterNdUpdate",
                  [v, g.const([[2**20, 7]], I32), g.const([41.], F),
                   "^" + assigned], T=F, Tindices=I32)


def diag(g):
    made = g.node("Diag", [g.empty(F, 2**40, 0)], T=F)
    return g.part(g.total(made, [1, 3]), [2**4, 0])


def matrix_diag(g):
    made = g.node("MatrixDiag", [g.empty(F, 0, 2**32)], T=F)
    return g.part(g.total(made, [0]), [2**20, 0])


def qr(g):
    made = g.node("Qr", [g.empty(F, 0, 2**32, 1)], T=F, full_matrices=True)
    return g.part(g.total(made, [0]), [2**20, 0])


def gather_of_an_array(g):
    array = g.array(4)
    written = g.node("TensorArrayWriteV3",
                     [array, g.const(0, I32), g.empty(F, 2**62, 0),
                      array + ":1"], T=F)
    made = g.node("TensorArrayGatherV3",
                  [array, g.const([0] * 4, I32), written], dtype=F)
    return g.part(g.total(made, [2]), [0, 2**43])


def concat_of_an_array(g):
    array = g.array(2)
    flow = array + ":1"
    for i in range(2):
        flow = g.node("TensorArrayWriteV3", [array, g.const(i, I32),
                                             g.empty(F, 2**62, 0), flow], T=F)
    made = g.node("TensorArrayConcatV3", [array, flow], dtype=F)
    return g.node("Shape", [made], T=F, out_type=I64)


def split_into_an_array(g):
    most, array = 2**63 - 1, g.array(4)
    split = g.node("TensorArraySplitV3",
                   [array, g.const([1., 2., 3., 4.], F),
                    g.const([1, most, most - 15, 20], I64), array + ":1"],
                   T=F)
    return g.node("TensorArrayReadV3", [array, g.const(3, I32), split],
                  dtype=F)


def export_of_a_table(g):
    table = g.node("MutableHashTableOfTensorsV2", key_dtype=I64,
                   value_dtype=F, value_shape=(2**62, 0))
    inserted = ["^" + g.node("LookupTableInsertV2",
                             [table, g.const([key], I64),
                              g.empty(F, 1, 2**62, 0)], Tin=I64, Tout=F)
                for key in range(4)]
    made = g.node("LookupTableExportV2", [table] + inserted, Tkeys=I64,
                  Tvalues=F)
    return g.part(g.total(made + ":1", [2]), [0, 2**43])


def bitcast(g):
    made = g.node("Bitcast", [g.empty(tf.float64, 2**62, 0)], T=tf.float64,
                  type=F)
    return g.node("Shape", [made], T=F, out_type=I64)


def enqueue_many(g):
    queue = g.node("FIFOQueueV2", component_types=[F])
    return g.node("QueueEnqueueManyV2", [queue, g.empty(F, 2**62, 0)],
                  Tcomponents=[F])


REFUSED = [read_of_a_product, write_to_a_product, diag, matrix_diag, qr,
           gather_of_an_array, concat_of_an_array, split_into_an_array,
           export_of_a_table, bitcast, enqueue_many]

# Rows of nothing: nothing is to be done, however many there are.
EMPTY = {
    "sparse_to_dense": lambda g: g.node(
        "SparseToDense", [g.empty(I64, 2**62, 0), g.empty(I64, 0),
                          g.const(1., F), g.const(0., F)],
        T=F, Tindices=I64, validate_indices=False),
    "gather_nd": lambda g: g.node(
        "GatherNd", [g.empty(F, 0), g.empty(I32, 2**62, 0)], Tparams=F,
        Tindices=I32),
    "scatter_nd": lambda g: g.node(
        "ScatterNd", [g.empty(I32, 2**62, 0), g.empty(F, 2**62, 0),
                      g.const([0], I32)], T=F, Tindices=I32),
    "cumsum": lambda g: g.node(
        "Cumsum", [g.empty(F, 2**62, 0), g.const(1, I32)], T=F, Tidx=I32),
    "set_diag": lambda g: g.node(
        "MatrixSetDiag", [g.empty(F, 2**60, 0, 3), g.empty(F, 2**60, 0)], T=F),
    "diag_part": lambda g: g.node(
        "MatrixDiagPart", [g.empty(F, 2**60, 0, 3)], T=F),
    "matrix_diag": lambda g: g.node("MatrixDiag", [g.empty(F, 2**62, 0)], T=F),
    "qr": lambda g: g.node("Qr", [g.empty(F, 2**40, 0, 1)], T=F),
    "one_hot": lambda g: g.node(
        "OneHot", [g.empty(I32, 2**60, 0), g.const(4, I32), g.const(1., F),
                   g.const(0., F)], T=F, TI=I32, axis=1),
    "set_operation": lambda g: g.node(
        "DenseToDenseSetOperation", [g.empty(I64, 2**40, 0)] * 2, T=I64,
        set_operation=b"union"),
    "audio": lambda g: g.node(
        "AudioSummaryV2", [g.const(b"t", STRING), g.empty(F, 2**40, 0, 1),
                           g.const(8000., F)], max_outputs=2**40),
    "where": lambda g: g.node("Where", [g.empty(tf.bool, 2**60, 0)],
                              T=tf.bool),
    "log_softmax": lambda g: g.node("LogSoftmax", [g.empty(F, 2**62, 0)], T=F),
    "unpack": lambda g: g.node("Unpack", [g.empty(F, 2**60, 2, 0)], num=2,
                               T=F, axis=1),
    "pack": lambda g: g.node("Pack", [g.empty(F, 2**60, 0)] * 2, N=2, T=F,
                             axis=1),
    "as_string": lambda g: g.node("AsString", [g.empty(F, 2**62, 0)], T=F),
    "broadcast_to": lambda g: g.node(
        "BroadcastTo", [g.empty(F, 1, 0), g.const([2**62, 0], I64)], T=F,
        Tidx=I64),
    "select": lambda g: g.node(
        "SelectV2", [g.empty(tf.bool, 2**61, 1, 0), g.empty(F, 1, 1, 0),
                     g.empty(F, 1, 1, 0)], T=F),
    "decode_padded_raw": lambda g: g.node(
        "DecodePaddedRaw", [g.empty(STRING, 2**40, 0), g.const(8, I32)],
        out_type=F),
    "reduce_join": lambda g: g.node(
        "ReduceJoin", [g.empty(STRING, 2**60, 0), g.const([1], I32)]),
    "reverse": lambda g: g.node(
        "ReverseV2", [g.empty(F, 2**30, 2**30, 0), g.const([1], I32)], T=F,
        Tidx=I32),
    "transpose": lambda g: g.node(
        "Transpose", [g.empty(F, 2**30, 2**30, 0), g.const([1, 0, 2], I32)],
        T=F, Tperm=I32),
    "strided_slice": lambda g: g.node(
        "StridedSlice", [g.empty(F, 2**30, 2**30, 0), g.const([0, 0, 0], I32),
                         g.const([2**30, 2**30, 0], I32),
                         g.const([2, 2, 1], I32)], T=F, Index=I32),
    "tile": lambda g: g.node(
        "Tile", [g.empty(F, 2, 2, 0), g.const([2**30, 2**30, 1], I64)], T=F,
        Tmultiples=I64),
    "add": lambda g: g.node(
        "Add", [g.empty(F, 2**30, 2**30, 0), g.empty(F, 1, 2**30, 0)], T=F),
    "split_into_an_array": lambda g: g.node(
        "TensorArraySplitV3",
        [g.array(0), g.empty(F, 2**62, 0), g.const([2**62], I64),
         g.const(0., F)], T=F),
    "split": lambda g: g.node(
        "Split", [g.const(1, I32), g.empty(F, 2**60, 2, 0)], num_split=2, T=F),
    "concat": lambda g: g.node(
        "ConcatV2", [g.empty(F, 2**60, 1, 0)] * 2 + [g.const(1, I32)], N=2,
        T=F, Tidx=I32),
    "gather": lambda g: g.node(
        "GatherV2", [g.empty(F, 2**60, 1, 0), g.const([0, 0], I32),
                     g.const(1, I32)], Tparams=F, Tindices=I32, Taxis=I32),
    "bias_add": lambda g: g.node(
        "BiasAdd", [g.empty(F, 2**60, 2, 0), g.const([1., 2.], F)], T=F,
        data_format=b"NCHW"),
    "batch_matmul": lambda g: g.node(
        "BatchMatMulV2", [g.empty(F, 2**60, 0, 0)] * 2, T=F),
    "table_find": lambda g: g.node(
        "LookupTableFindV2",
        [g.node("MutableHashTableOfTensorsV2", key_dtype=I64, value_dtype=F,
                value_shape=(0,)), g.empty(I64, 2**60, 0), g.empty(F, 0)],
        Tin=I64, Tout=F),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    from conftest import Processes, free_ports
    processes = Processes(tmp_path_factory.mktemp("server"))
    address = "localhost:%d" % free_ports(1)[0]
    processes.server({"local": [address]}, "local")
    yield address
    processes.end_all()


def run(address, make):
    nodes = Nodes()
    name = make(nodes)
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(nodes.graph_def, name="")
        op = graph.get_operation_by_name(name)
        config = tf.ConfigProto(operation_timeout_in_ms=20000)
        with tf.Session("grpc://" + address, config=config) as session:
            session.run(op)  # The value need not come back.


def still_serves(address):
    with tf.Graph().as_default(), tf.Session("grpc://" + address) as session:
        assert session.run(tf.constant(1.0) + 1.0) == 2.0
    wait_until(lambda: is_quiet(address), "the server is quiet")


@pytest.mark.parametrize("make", REFUSED, ids=lambda make: make.__name__)
def test_a_shape_that_cannot_be_is_refused(server, make):
    with pytest.raises((tf.errors.ResourceExhaustedError,
                        tf.errors.InvalidArgumentError)):
        run(server, make)
    still_serves(server)


@pytest.mark.parametrize("name", sorted(EMPTY))
def test_rows_of_nothing_take_no_time(server, name):
    try:
        run(server, EMPTY[name])
    except (tf.errors.ResourceExhaustedError, tf.errors.InvalidArgumentError):
        pass
    still_serves(server)
