"""Sluice: distributed dataflow for machine learning.

`import sluice as tf` gives TensorFlow 1's graph-mode API.
"""

import sys as _sys

from sluice import _sluice  # noqa: F401
from sluice import namespaces as _namespaces
from sluice.framework import errors
from sluice.framework import protos as _protos
from sluice.framework.constant_op import constant  # noqa: F401
from sluice.framework.device import DeviceSpec  # noqa: F401
from sluice.framework.dtypes import (  # noqa: F401
    DType, as_dtype, bfloat16, complex128, complex64, double, float16,
    float32, float32_ref, float64, half, int16, int32, int64, int8, qint16,
    qint32, qint8, quint16, quint8, resource, string, uint16, uint32, uint64, uint8,
    variant)
from sluice.framework.dtypes import bool_ as bool  # noqa: F401
from sluice.framework.errors import OpError  # noqa: F401
from sluice.framework.op_builder import raw_ops  # noqa: F401
from sluice.framework.ops import (  # noqa: F401
    Graph, GraphKeys, IndexedSlices, NoGradient, NotDifferentiable, Operation,
    RegisterGradient, RegisterShape, Tensor, add_to_collection,
    add_to_collections, colocate_with, container, control_dependencies,
    convert_to_tensor, convert_to_tensor_or_indexed_slices, device,
    get_collection, get_collection_ref, get_default_graph,
    get_default_session, init_scope, name_scope, op_scope,
    register_tensor_conversion_function, reset_default_graph)
from sluice.framework.sparse_tensor import (  # noqa: F401
    SparseTensor, SparseTensorValue)
from sluice.framework.tensor_shape import Dimension, TensorShape  # noqa: F401
from sluice.framework.tensor_util import (  # noqa: F401
    make_ndarray, make_tensor_proto)
from sluice.ops import array_ops as _array_ops
from sluice.ops import check_ops as _check_ops
from sluice.ops import clip_ops as _clip_ops
from sluice.ops import control_flow_ops as _control_flow_ops
from sluice.ops import functional_ops as _functional_ops
from sluice.ops import init_ops as _init_ops
from sluice.ops import math_ops as _math_ops
from sluice.ops import partitioned_variables as _partitioned_variables
from sluice.ops import random_ops as _random_ops
from sluice.ops import (  # noqa: F401
    stateless_random_ops as _stateless_random_ops)
from sluice.ops import string_ops as _string_ops
from sluice.ops import variables as _variables
from sluice.ops.custom_gradient import custom_gradient  # noqa: F401
from sluice.ops.gradients import (  # noqa: F401
    AggregationMethod, UnconnectedGradients, gradients, hessians)
from sluice.ops.variable_scope import (  # noqa: F401
    AUTO_REUSE, VariableScope, get_local_variable, get_variable,
    get_variable_scope, no_regularizer, variable_op_scope, variable_scope)
from sluice.ops.linalg_ops import (  # noqa: F401
    diag, diag_part, eye, matrix_diag, matrix_diag_part, matrix_set_diag,
    matrix_transpose, qr)
from sluice.framework.importer import import_graph_def  # noqa: F401
from sluice.ops.data_flow_ops import (  # noqa: F401
    ConditionalAccumulator, ConditionalAccumulatorBase, FIFOQueue,
    PaddingFIFOQueue, PriorityQueue, QueueBase, RandomShuffleQueue,
    SparseConditionalAccumulator)
from sluice.ops.io_ops import (  # noqa: F401
    FixedLengthRecordReader, IdentityReader, LMDBReader, ReaderBase,
    TextLineReader, TFRecordReader, WholeFileReader, matching_files, read_file,
    write_file)
from sluice.ops.parsing_ops import (  # noqa: F401
    FixedLenFeature, FixedLenSequenceFeature, SparseFeature, VarLenFeature,
    decode_csv, decode_json_example, decode_raw, parse_example,
    parse_single_example, parse_single_sequence_example, parse_tensor,
    serialize_tensor)
from sluice.ops.logging_ops import Print  # noqa: F401
from sluice.ops.script_ops import numpy_function, py_func  # noqa: F401
from sluice.ops.session_ops import (  # noqa: F401
    delete_session_tensor, get_session_handle, get_session_tensor)
from sluice.ops.sparse_ops import (  # noqa: F401
    deserialize_many_sparse, serialize_many_sparse, serialize_sparse,
    sparse_fill_empty_rows, sparse_mask, sparse_merge, sparse_reorder,
    sparse_retain, sparse_tensor_dense_matmul, sparse_tensor_to_dense,
    sparse_to_dense, sparse_to_indicator, sparse_transpose)
from sluice.ops.state_ops import (  # noqa: F401
    assign, assign_add, assign_sub, batch_scatter_update, count_up_to,
    scatter_add, scatter_div, scatter_max, scatter_min, scatter_mul,
    scatter_nd_add, scatter_nd_sub, scatter_nd_update, scatter_sub,
    scatter_update)
from sluice.ops.tensor_array_ops import TensorArray  # noqa: F401
from sluice.client.session import InteractiveSession, Session  # noqa: F401


def _export(module, names):
    for name in names.split():
        globals()[name] = getattr(module, name)


_export(_array_ops, """
    boolean_mask broadcast_to check_numerics concat dynamic_partition
    dynamic_stitch expand_dims fill gather gather_nd identity
    invert_permutation listdiff newaxis one_hot ones ones_like pack pad
    parallel_stack placeholder placeholder_with_default rank reshape reverse
    select setdiff1d shape shape_n size slice sparse_placeholder split
    squeeze stack stop_gradient strided_slice tile transpose unique unpack
    unstack where where_v2 zeros zeros_like""")
_export(_math_ops, """
    abs accumulate_n add add_n arg_max arg_min argmax argmin batch_matmul cast
    ceil cos count_nonzero cumsum div div_no_nan divide equal erf exp expm1
    floor floor_div floordiv floormod greater greater_equal inv is_finite
    is_inf is_nan less less_equal lin_space linspace log log1p logical_and
    logical_not logical_or logical_xor matmul maximum minimum mod mul multiply
    neg negative not_equal pow range reciprocal reduce_all reduce_any
    reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_sum
    rint round rsqrt saturate_cast segment_sum sigmoid sign sin
    sparse_segment_mean sparse_segment_sqrt_n sparse_segment_sum sqrt square
    squared_difference sub subtract tanh to_double to_float to_int32 to_int64
    truediv truncatediv truncatemod unsorted_segment_sum""")
_export(_check_ops, """
    assert_equal assert_greater assert_greater_equal assert_integer
    assert_less assert_less_equal assert_near assert_negative
    assert_non_negative assert_non_positive assert_none_equal assert_positive
    assert_proper_iterable assert_rank assert_rank_at_least assert_rank_in
    assert_same_float_dtype assert_scalar assert_type is_non_decreasing
    is_numeric_tensor is_strictly_increasing""")
_export(_string_ops, """
    as_string decode_base64 decode_compressed encode_base64 reduce_join
    string_join string_strip string_to_hash_bucket string_to_hash_bucket_fast
    string_to_hash_bucket_strong string_to_number""")
_export(_clip_ops, """
    clip_by_average_norm clip_by_global_norm clip_by_norm clip_by_value
    global_norm""")
_export(_check_ops, """
    assert_equal assert_greater assert_greater_equal assert_integer assert_less
    assert_less_equal assert_near assert_negative assert_non_negative
    assert_non_positive assert_none_equal assert_positive
    assert_proper_iterable assert_rank assert_rank_at_least assert_rank_in
    assert_same_float_dtype assert_scalar assert_type is_non_decreasing
    is_numeric_tensor is_strictly_increasing verify_tensor_all_finite""")
_export(_control_flow_ops, "Assert case cond group no_op tuple while_loop")
_export(_partitioned_variables, """
    create_partitioned_variables fixed_size_partitioner min_max_variable_partitioner
    variable_axis_size_partitioner""")
_export(_functional_ops, "foldl foldr map_fn scan")
_export(_random_ops, """
    get_seed multinomial random_crop random_gamma random_normal random_poisson
    random_shuffle random_uniform set_random_seed truncated_normal""")
_export(_init_ops, """
    constant_initializer glorot_normal_initializer glorot_uniform_initializer
    ones_initializer orthogonal_initializer random_normal_initializer
    random_uniform_initializer
    truncated_normal_initializer uniform_unit_scaling_initializer
    variance_scaling_initializer zeros_initializer""")
_export(_variables, """
    Variable VariableAggregation VariableSynchronization all_variables
    assert_variables_initialized variable_creator_scope
    disable_resource_variables enable_resource_variables global_variables
    global_variables_initializer initialize_all_variables
    initialize_local_variables initialize_variables is_variable_initialized
    local_variables local_variables_initializer model_variables
    moving_average_variables report_uninitialized_variables
    resource_variables_enabled trainable_variables variables_initializer""")
_export(_protos, """
    AttrValue ConfigProto Event GPUOptions GraphDef GraphOptions
    MetaGraphDef NodeDef OptimizerOptions RunMetadata RunOptions Summary
    SessionLog SummaryMetadata HistogramProto LogMessage TensorInfo""")

from sluice.ops import nn_ops as nn  # noqa: E402,F401
from sluice import initializers  # noqa: E402,F401
from sluice import summary  # noqa: E402,F401
from sluice import train  # noqa: E402,F401
from sluice.platform import app  # noqa: E402,F401
from sluice.platform import flags  # noqa: E402,F401
from sluice.platform import gfile  # noqa: E402,F401
from sluice.platform import tf_logging as logging  # noqa: E402,F401
from sluice.platform import compat  # noqa: E402,F401
from sluice import io  # noqa: E402,F401
from sluice import lookup  # noqa: E402,F401
from sluice import python_io  # noqa: E402,F401
from sluice import legacy as _legacy  # noqa: E402
from sluice import contrib  # noqa: E402,F401


def __getattr__(name):
    # Loaded by those who use it: a parameter server does not.
    if name in ("estimator", "losses", "metrics"):
        import importlib
        return importlib.import_module("sluice." + name)
    if name in _namespaces.NAMES:
        globals()[name] = _namespaces.make(name, _sys.modules[__name__])
        return globals()[name]
    raise AttributeError("module %r has no attribute %r" % (__name__, name))


def disable_control_flow_v2():
    """Control flow is always TensorFlow 1's: Switch, Merge and Enter."""


for _name, _value in _legacy.names(_sys.modules[__name__]).items():
    globals()[_name] = _value

__version__ = VERSION = "1.15.5"
GIT_VERSION = "sluice"
COMPILER_VERSION = "gcc"
