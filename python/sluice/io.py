"""tf.io: reading, writing, parsing."""

from sluice.ops.data_flow_ops import (  # noqa: F401
    PaddingFIFOQueue, PriorityQueue, QueueBase, RandomShuffleQueue)
from sluice.ops.io_ops import (  # noqa: F401
    matching_files, read_file, write_file)
from sluice.ops.parsing_ops import (  # noqa: F401
    FixedLenFeature, FixedLenSequenceFeature, SparseFeature, VarLenFeature,
    decode_compressed, decode_csv, decode_json_example, decode_raw,
    parse_example, parse_sequence_example, parse_single_example,
    parse_single_sequence_example, parse_tensor, serialize_tensor)
from sluice.ops.sparse_ops import (  # noqa: F401
    deserialize_many_sparse, serialize_many_sparse, serialize_sparse)
from sluice.platform import gfile  # noqa: F401
from sluice.python_io import (  # noqa: F401
    TFRecordCompressionType, TFRecordOptions, TFRecordWriter,
    tf_record_iterator)
from sluice.training.graph_io import write_graph  # noqa: F401
from sluice.training.input import match_filenames_once  # noqa: F401
