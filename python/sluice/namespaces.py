"""Namespaces that only gather functions of the root: tf.math, tf.random, …

TensorFlow 1.13 began to give its functions a second name in a namespace. Here
is which; a function that Sluice has not is missing in both places.
"""

import sys
import types

# Namespace: names there that are the root's.
_SAME = {
    "math": """
        abs accumulate_n acos acosh add add_n angle argmax argmin asin asinh
        atan atan2 atanh betainc bincount ceil confusion_matrix conj cos
        cosh count_nonzero cumprod cumsum digamma divide equal erf erfc exp
        expm1 floor floordiv floormod greater greater_equal igamma igammac
        imag invert_permutation is_finite is_inf is_nan is_non_decreasing
        is_strictly_increasing lbeta less less_equal lgamma log log1p
        log_sigmoid logical_and logical_not logical_or logical_xor maximum
        minimum mod multiply negative not_equal polygamma pow real
        reciprocal reduce_all reduce_any reduce_logsumexp reduce_max
        reduce_mean reduce_min reduce_prod reduce_sum rint round rsqrt
        scalar_mul segment_max segment_mean segment_min segment_prod
        segment_sum sigmoid sign sin sinh sqrt square squared_difference
        subtract tan tanh truediv unsorted_segment_max unsorted_segment_mean
        unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n
        unsorted_segment_sum zeta""",
    "random": """
        get_seed multinomial set_random_seed truncated_normal""",
    "initializers": """
        tables_initializer""",
    "io": """
        FixedLenFeature FixedLenSequenceFeature PaddingFIFOQueue
        PriorityQueue QueueBase RandomShuffleQueue SparseFeature
        VarLenFeature decode_base64 decode_compressed decode_csv
        decode_json_example decode_raw deserialize_many_sparse encode_base64
        matching_files parse_example parse_single_example
        parse_single_sequence_example parse_tensor read_file
        serialize_many_sparse serialize_sparse serialize_tensor write_file""",
    "strings": """
        as_string reduce_join regex_replace""",
    "linalg": """
        cholesky cholesky_solve cross einsum eye global_norm matmul
        matrix_transpose norm qr svd tensordot trace""",
    "sparse": """
        SparseConditionalAccumulator SparseTensor""",
    "queue": """
        FIFOQueue PaddingFIFOQueue PriorityQueue QueueBase
        RandomShuffleQueue""",
    "debugging": """
        Assert assert_equal assert_greater assert_greater_equal
        assert_integer assert_less assert_less_equal assert_near
        assert_negative assert_non_negative assert_non_positive
        assert_none_equal assert_positive assert_proper_iterable assert_rank
        assert_rank_at_least assert_rank_in assert_same_float_dtype
        assert_scalar assert_type check_numerics is_finite is_inf is_nan
        is_non_decreasing is_numeric_tensor is_strictly_increasing""",
    "dtypes": """
        DType QUANTIZED_DTYPES as_dtype as_string bfloat16 bool cast complex
        complex128 complex64 double float16 float32 float64 half int16 int32
        int64 int8 qint16 qint32 qint8 quint16 quint8 resource saturate_cast
        string uint16 uint32 uint64 uint8 variant""",
}

# Namespace: name there, name in the root.
_RENAMED = {
    "math": """
        divide_no_nan:div_no_nan""",
    "random": """
        gamma:random_gamma normal:random_normal poisson:random_poisson
        shuffle:random_shuffle uniform:random_uniform""",
    "initializers": """
        constant:constant_initializer
        global_variables:global_variables_initializer
        glorot_normal:glorot_normal_initializer
        glorot_uniform:glorot_uniform_initializer
        local_variables:local_variables_initializer ones:ones_initializer
        orthogonal:orthogonal_initializer
        random_normal:random_normal_initializer
        random_uniform:random_uniform_initializer
        truncated_normal:truncated_normal_initializer
        uniform_unit_scaling:uniform_unit_scaling_initializer
        variables:variables_initializer
        variance_scaling:variance_scaling_initializer
        zeros:zeros_initializer""",
    "strings": """
        join:string_join strip:string_strip
        to_hash_bucket:string_to_hash_bucket
        to_hash_bucket_fast:string_to_hash_bucket_fast
        to_hash_bucket_strong:string_to_hash_bucket_strong
        to_number:string_to_number""",
    "linalg": """
        band_part:matrix_band_part det:matrix_determinant diag:matrix_diag
        diag_part:matrix_diag_part eigh:self_adjoint_eig
        eigvalsh:self_adjoint_eigvals inv:matrix_inverse
        lstsq:matrix_solve_ls set_diag:matrix_set_diag solve:matrix_solve
        sqrtm:matrix_square_root tensor_diag:diag tensor_diag_part:diag_part
        transpose:matrix_transpose triangular_solve:matrix_triangular_solve""",
    "sparse": """
        add:sparse_add concat:sparse_concat
        fill_empty_rows:sparse_fill_empty_rows mask:sparse_mask
        matmul:sparse_tensor_dense_matmul maximum:sparse_maximum
        merge:sparse_merge minimum:sparse_minimum
        placeholder:sparse_placeholder reduce_max:sparse_reduce_max
        reduce_max_sparse:sparse_reduce_max_sparse
        reduce_sum:sparse_reduce_sum
        reduce_sum_sparse:sparse_reduce_sum_sparse reorder:sparse_reorder
        reset_shape:sparse_reset_shape reshape:sparse_reshape
        retain:sparse_retain segment_mean:sparse_segment_mean
        segment_sqrt_n:sparse_segment_sqrt_n segment_sum:sparse_segment_sum
        slice:sparse_slice softmax:sparse_softmax
        sparse_dense_matmul:sparse_tensor_dense_matmul split:sparse_split
        to_dense:sparse_tensor_to_dense to_indicator:sparse_to_indicator
        transpose:sparse_transpose""",
    "debugging": """
        assert_all_finite:verify_tensor_all_finite""",
}
# Those that are in another namespace.
_ELSEWHERE = {
    "math": "nn:l2_normalize nn:log_softmax nn:softmax nn:softplus "
            "nn:softsign nn:top_k nn:in_top_k nn:zero_fraction",
    "linalg": "nn:l2_normalize",
    "random": "_random_ops:categorical "
              "_stateless_random_ops:stateless_categorical "
              "_stateless_random_ops:stateless_multinomial "
              "_stateless_random_ops:stateless_normal "
              "_stateless_random_ops:stateless_truncated_normal "
              "_stateless_random_ops:stateless_uniform",
    "io": "train:match_filenames_once train:write_graph "
          "python_io:TFRecordCompressionType python_io:TFRecordOptions "
          "python_io:TFRecordWriter python_io:tf_record_iterator",
}

NAMES = sorted(set(_SAME) | set(_RENAMED))


class _Namespace(types.ModuleType):

    def __init__(self, name, root):
        super().__init__("sluice." + name)
        self._root = root
        self._table = {n: (root, n) for n in _SAME.get(name, "").split()}
        for pair in _RENAMED.get(name, "").split():
            ours, theirs = pair.split(":")
            self._table[ours] = (root, theirs)
        for pair in _ELSEWHERE.get(name, "").split():
            module, theirs = pair.split(":")
            self._table[theirs] = (getattr(root, module), theirs)

    def __getattr__(self, name):
        place = self._table.get(name)
        if place is None or not hasattr(*place):
            raise AttributeError("%s has no %r" % (self.__name__, name))
        value = getattr(*place)
        setattr(self, name, value)
        return value

    def __dir__(self):
        return [n for n, place in self._table.items() if hasattr(*place)]


def make(name, root):
    """The namespace, also for `import sluice.math`."""
    module = _Namespace(name, root)
    sys.modules[module.__name__] = module
    return module
