"""Prints the training stack's symbols and their arguments.

Run by TensorFlow 1.15.5, for tests/golden/training_signatures.txt. A line is a
symbol, a tab and one of

    (a, b=1, *args)   a function's arguments, or a class's when it is called;
                      `...` stands for a default that has no text
    property          an attribute that its class computes
    = 'variables'     a constant
    module            a module; its symbols have lines of their own
    -                 a spelling that 1.15 has no more
    # reason          a symbol that is left out on purpose

All public methods of a class follow it. python/tests/test_signatures.py holds
Sluice against the table.
"""

import enum
import importlib
import inspect
import sys

import tensorflow as tf

CLASSES = """
tf.Graph tf.GraphKeys tf.IndexedSlices tf.AggregationMethod
tf.UnconnectedGradients tf.RegisterGradient tf.Variable tf.VariableScope
tf.Session tf.InteractiveSession

tf.train.Optimizer tf.train.GradientDescentOptimizer
tf.train.MomentumOptimizer tf.train.AdagradOptimizer
tf.train.AdagradDAOptimizer tf.train.AdadeltaOptimizer tf.train.AdamOptimizer
tf.train.RMSPropOptimizer tf.train.FtrlOptimizer
tf.train.ProximalAdagradOptimizer tf.train.ProximalGradientDescentOptimizer
tf.train.SyncReplicasOptimizer
tf.ConditionalAccumulatorBase tf.ConditionalAccumulator
tf.SparseConditionalAccumulator

tf.train.Saver tf.train.SessionManager tf.train.Scaffold
tf.train.SessionCreator tf.train.ChiefSessionCreator
tf.train.WorkerSessionCreator tf.train.MonitoredSession
tf.train.SingularMonitoredSession tf.train.VocabInfo
tf.train.SessionRunHook tf.train.SessionRunArgs tf.train.SessionRunValues
tf.train.SessionRunContext
tf.train.SecondOrStepTimer tf.train.StopAtStepHook
tf.train.CheckpointSaverHook tf.train.CheckpointSaverListener
tf.train.StepCounterHook tf.train.LoggingTensorHook tf.train.NanTensorHook
tf.train.NanLossDuringTrainingError tf.train.SummarySaverHook
tf.train.GlobalStepWaiterHook tf.train.FinalOpsHook tf.train.FeedFnHook
tf.train.ProfilerHook
tf.train.Supervisor tf.train.Coordinator tf.train.LooperThread
tf.train.QueueRunner
tf.QueueBase tf.FIFOQueue tf.RandomShuffleQueue tf.PaddingFIFOQueue
tf.PriorityQueue
tf.summary.FileWriter tf.summary.FileWriterCache
tf.train.ExponentialMovingAverage tf.train.ClusterSpec tf.train.Server
tf.TensorArray

tf.estimator.Estimator tf.estimator.EstimatorSpec tf.estimator.RunConfig
tf.estimator.TrainSpec tf.estimator.EvalSpec tf.estimator.ModeKeys

tf.contrib.training.HParams tf.contrib.training.StopAfterNEvalsHook
tf.contrib.training.SummaryAtEndHook tf.contrib.training.FeedingQueueRunner
tf.contrib.training.GreedyLoadBalancingStrategy
tf.contrib.training.RandomStrategy
tf.contrib.opt.DropStaleGradientOptimizer
tf.contrib.opt.ElasticAverageOptimizer
tf.contrib.opt.ElasticAverageCustomGetter
tf.contrib.opt.ModelAverageOptimizer
tf.contrib.opt.ModelAverageCustomGetter tf.contrib.opt.AGNOptimizer
tf.contrib.opt.AGNCustomGetter tf.contrib.opt.LazyAdamOptimizer
tf.contrib.opt.MovingAverageOptimizer
tf.contrib.opt.VariableClippingOptimizer tf.contrib.opt.AdamWOptimizer
tf.contrib.opt.MomentumWOptimizer tf.contrib.opt.AdaMaxOptimizer
tf.contrib.opt.AddSignOptimizer tf.contrib.opt.PowerSignOptimizer
tf.contrib.opt.NadamOptimizer tf.contrib.opt.DecoupledWeightDecayExtension
""".split()

FUNCTIONS = """
tf.gradients tf.hessians tf.stop_gradient tf.custom_gradient
tf.NotDifferentiable tf.NoGradient tf.cond tf.while_loop
tf.convert_to_tensor tf.tuple tf.group tf.global_norm

tf.train.get_checkpoint_state tf.train.latest_checkpoint
tf.train.update_checkpoint_state tf.train.generate_checkpoint_state_proto
tf.train.checkpoint_exists tf.train.get_checkpoint_mtimes
tf.train.remove_checkpoint tf.train.NewCheckpointReader
tf.train.load_checkpoint tf.train.load_variable tf.train.list_variables
tf.train.checkpoints_iterator tf.train.init_from_checkpoint
tf.train.warm_start tf.train.export_meta_graph tf.train.import_meta_graph
tf.train.write_graph tf.report_uninitialized_variables
tf.train.MonitoredTrainingSession tf.train.basic_train_loop

tf.train.add_queue_runner tf.train.start_queue_runners tf.train.limit_epochs
tf.train.input_producer tf.train.string_input_producer
tf.train.range_input_producer tf.train.slice_input_producer
tf.train.match_filenames_once tf.train.batch tf.train.batch_join
tf.train.shuffle_batch tf.train.shuffle_batch_join tf.train.maybe_batch
tf.train.maybe_batch_join tf.train.maybe_shuffle_batch
tf.train.maybe_shuffle_batch_join

tf.summary.scalar tf.summary.histogram tf.summary.image tf.summary.audio
tf.summary.text tf.summary.tensor_summary tf.summary.merge
tf.summary.merge_all tf.summary.get_summary_description
tf.train.summary_iterator

tf.app.run tf.flags.DEFINE_string tf.flags.DEFINE_boolean
tf.flags.DEFINE_bool tf.flags.DEFINE_float tf.flags.DEFINE_integer
tf.flags.DEFINE_enum tf.flags.DEFINE_enum_class tf.flags.DEFINE_list
tf.flags.DEFINE_spaceseplist tf.flags.DEFINE_multi_string
tf.flags.DEFINE_multi_integer tf.flags.DEFINE_multi_float
tf.flags.DEFINE_multi_enum tf.flags.DEFINE_alias tf.flags.DEFINE_flag
tf.flags.mark_flag_as_required tf.flags.mark_flags_as_required
tf.flags.register_validator
tf.app.flags.DEFINE_string tf.app.flags.DEFINE_integer
tf.logging.debug tf.logging.info tf.logging.warn tf.logging.warning
tf.logging.error tf.logging.fatal tf.logging.log tf.logging.vlog
tf.logging.log_every_n tf.logging.log_first_n tf.logging.log_if
tf.logging.TaskLevelStatusMessage tf.logging.set_verbosity
tf.logging.get_verbosity

tf.train.get_global_step tf.train.create_global_step
tf.train.get_or_create_global_step tf.train.assert_global_step
tf.train.global_step
tf.train.exponential_decay tf.train.natural_exp_decay
tf.train.inverse_time_decay tf.train.polynomial_decay
tf.train.piecewise_constant tf.train.piecewise_constant_decay
tf.train.cosine_decay tf.train.cosine_decay_restarts
tf.train.linear_cosine_decay tf.train.noisy_linear_cosine_decay
tensorflow.python.training.moving_averages.assign_moving_average
tensorflow.python.training.moving_averages.weighted_moving_average
tf.clip_by_value tf.clip_by_norm tf.clip_by_global_norm
tf.clip_by_average_norm
tf.nn.embedding_lookup tf.nn.embedding_lookup_sparse
tf.nn.safe_embedding_lookup_sparse
tf.contrib.layers.safe_embedding_lookup_sparse
tf.train.replica_device_setter tf.contrib.training.byte_size_load_fn
tf.get_variable tf.get_local_variable tf.variable_scope
tf.get_variable_scope tf.fixed_size_partitioner
tf.variable_axis_size_partitioner tf.min_max_variable_partitioner
tf.create_partitioned_variables
tf.global_variables tf.local_variables tf.trainable_variables
tf.model_variables tf.moving_average_variables
tf.global_variables_initializer tf.local_variables_initializer
tf.variables_initializer tf.tables_initializer tf.is_variable_initialized
tf.assert_variables_initialized

tf.estimator.train_and_evaluate

tf.contrib.framework.get_or_create_global_step
tf.contrib.framework.create_global_step tf.contrib.framework.get_global_step
tf.contrib.framework.assert_global_step
tf.contrib.framework.assert_or_get_global_step
tf.contrib.framework.local_variable tf.contrib.framework.model_variable
tf.contrib.framework.variable tf.contrib.framework.global_variable
tf.contrib.framework.get_variables
tf.contrib.framework.get_variables_by_name
tf.contrib.framework.get_variables_by_suffix
tf.contrib.framework.get_variables_to_restore
tf.contrib.framework.get_local_variables
tf.contrib.framework.get_model_variables
tf.contrib.framework.get_trainable_variables
tf.contrib.framework.get_unique_variable
tf.contrib.framework.get_variable_full_name
tf.contrib.framework.add_model_variable
tf.contrib.framework.assign_from_checkpoint
tf.contrib.framework.assign_from_checkpoint_fn
tf.contrib.framework.assign_from_values
tf.contrib.framework.assign_from_values_fn
tf.contrib.framework.init_from_checkpoint
tf.contrib.framework.list_variables tf.contrib.framework.load_variable
tf.contrib.framework.load_checkpoint
tf.contrib.framework.filter_variables
tf.contrib.framework.arg_scope tf.contrib.framework.add_arg_scope
tf.contrib.framework.current_arg_scope
tf.contrib.framework.has_arg_scope tf.contrib.framework.arg_scoped_arguments
tf.contrib.training.create_train_op tf.contrib.training.train
tf.contrib.training.clip_gradient_norms
tf.contrib.training.clip_gradient_norms_fn
tf.contrib.training.multiply_gradients
tf.contrib.training.add_gradients_summaries
tf.contrib.training.evaluate_once tf.contrib.training.evaluate_repeatedly
tf.contrib.training.checkpoints_iterator
tf.contrib.training.wait_for_new_checkpoint
tf.contrib.training.get_or_create_eval_step
tf.contrib.training.bucket tf.contrib.training.bucket_by_sequence_length
tf.contrib.training.stratified_sample tf.contrib.training.rejection_sample
tf.contrib.training.weighted_resample tf.contrib.training.resample_at_rate
tf.contrib.slim.learning.create_train_op tf.contrib.slim.learning.train
tf.contrib.slim.learning.train_step
tf.contrib.slim.learning.clip_gradient_norms
tf.contrib.slim.learning.multiply_gradients
tf.contrib.slim.learning.add_gradients_summaries
tf.contrib.opt.extend_with_decoupled_weight_decay
tf.contrib.deprecated.scalar_summary tf.contrib.deprecated.histogram_summary
tf.contrib.deprecated.image_summary tf.contrib.deprecated.audio_summary
tf.contrib.deprecated.merge_summary
tf.contrib.deprecated.merge_all_summaries

tf.multiply tf.subtract tf.negative tf.reciprocal tf.stack tf.unstack
tf.concat tf.split tf.where tf.abs tf.setdiff1d tf.matmul tf.reverse tf.div
tf.mod tf.truncatediv tf.truncatemod
tf.reduce_sum tf.reduce_mean tf.reduce_prod tf.reduce_max tf.reduce_min
tf.reduce_all tf.reduce_any tf.reduce_logsumexp tf.count_nonzero
tf.reduce_join tf.argmax tf.argmin tf.expand_dims tf.squeeze
tf.reverse_sequence tf.sparse_concat tf.sparse_reduce_sum tf.sparse_split
tf.nn.softmax_cross_entropy_with_logits
tf.nn.softmax_cross_entropy_with_logits_v2
tf.nn.sparse_softmax_cross_entropy_with_logits
tf.nn.sigmoid_cross_entropy_with_logits
tf.nn.sampled_softmax_loss tf.nn.nce_loss tf.nn.dropout
tf.initialize_all_variables tf.initialize_variables
tf.initialize_local_variables tf.initialize_all_tables tf.all_variables
tf.op_scope tf.variable_op_scope
tf.zeros_initializer tf.SparseTensor tf.name_scope
tf.to_float tf.to_double tf.to_int32 tf.to_int64 tf.log tf.lin_space
tf.string_to_number tf.decode_raw tf.decode_csv tf.decode_base64
tf.decode_json_example tf.decode_compressed tf.read_file
tf.random_normal tf.random_uniform tf.random_shuffle tf.random_crop
tf.random_gamma tf.random_poisson tf.truncated_normal
tf.sparse_add tf.sparse_fill_empty_rows tf.sparse_mask tf.sparse_maximum
tf.sparse_merge tf.sparse_minimum tf.sparse_placeholder tf.sparse_reduce_max
tf.sparse_reduce_max_sparse tf.sparse_reduce_sum_sparse tf.sparse_reorder
tf.sparse_reset_shape tf.sparse_reshape tf.sparse_retain
tf.sparse_segment_mean tf.sparse_segment_sqrt_n tf.sparse_segment_sum
tf.sparse_slice tf.sparse_softmax tf.sparse_tensor_dense_matmul
tf.sparse_tensor_to_dense tf.sparse_to_dense tf.sparse_to_indicator
tf.sparse_transpose
tf.matrix_band_part tf.matrix_determinant tf.matrix_diag tf.matrix_diag_part
tf.matrix_inverse tf.matrix_set_diag tf.matrix_solve tf.matrix_solve_ls
tf.matrix_transpose tf.matrix_triangular_solve tf.cholesky
tf.cholesky_solve tf.self_adjoint_eig tf.self_adjoint_eigvals tf.svd
tf.fft tf.fft2d tf.fft3d tf.ifft tf.ifft2d tf.ifft3d
tf.assert_equal tf.assert_greater tf.assert_greater_equal tf.assert_integer
tf.assert_less tf.assert_less_equal tf.assert_negative
tf.assert_non_negative tf.assert_non_positive tf.assert_positive
tf.assert_proper_iterable tf.assert_rank tf.assert_rank_at_least
tf.assert_rank_in tf.assert_same_float_dtype tf.assert_scalar tf.assert_type
tf.assert_none_equal tf.assert_near
tf.gfile.Open tf.gfile.Exists tf.gfile.Glob tf.gfile.MakeDirs
tf.gfile.MkDir tf.gfile.ListDirectory tf.gfile.Remove tf.gfile.Rename
tf.gfile.Copy tf.gfile.DeleteRecursively tf.gfile.IsDirectory tf.gfile.Stat
tf.gfile.Walk
tf.python_io.tf_record_iterator
""".split()

# Given up before 1.15; Sluice takes them still.
OLD = """
tf.mul tf.sub tf.neg tf.inv tf.pack tf.unpack tf.select tf.complex_abs
tf.listdiff tf.list_diff tf.batch_matmul tf.batch_matrix_inverse
tf.batch_matrix_determinant tf.batch_cholesky tf.batch_cholesky_solve
tf.batch_matrix_solve tf.batch_matrix_triangular_solve
tf.batch_matrix_solve_ls tf.batch_self_adjoint_eig
tf.batch_self_adjoint_eigvals tf.batch_svd tf.batch_fft tf.batch_fft2d
tf.batch_fft3d tf.batch_ifft tf.batch_ifft2d tf.batch_ifft3d
tf.batch_matrix_diag tf.batch_matrix_diag_part tf.batch_matrix_transpose
tf.batch_matrix_band_part tf.batch_matrix_set_diag
tf.scalar_summary tf.histogram_summary tf.image_summary tf.audio_summary
tf.merge_summary tf.merge_all_summaries tf.train.SummaryWriter
tf.train.SummaryWriterCache tf.train.SyncReplicasOptimizerV2
tf.RegisterShape tf.float32_ref tf.VariableV2 tf.image.per_image_whitening
tf.examples.tutorials.mnist.input_data.read_data_sets
tensorflow.examples.tutorials.mnist.input_data.read_data_sets
""".split()

CONSTANTS = """
tf.train.Optimizer.GATE_NONE tf.train.Optimizer.GATE_OP
tf.train.Optimizer.GATE_GRAPH tf.train.Supervisor.USE_DEFAULT
tf.AggregationMethod.ADD_N tf.AggregationMethod.DEFAULT
tf.AggregationMethod.EXPERIMENTAL_TREE
tf.AggregationMethod.EXPERIMENTAL_ACCUMULATE_N
tf.logging.DEBUG tf.logging.INFO tf.logging.WARN tf.logging.ERROR
tf.logging.FATAL
""".split()

MODULES = """
tf.train tf.summary tf.app tf.flags tf.app.flags tf.logging tf.gfile
tf.python_io tf.estimator tf.contrib.framework tf.contrib.training
tf.contrib.slim tf.contrib.slim.learning tf.contrib.layers tf.contrib.opt
tf.contrib.deprecated
tensorflow.python.training.moving_averages
tensorflow.python.training.training_util
tensorflow.python.training.session_run_hook
tensorflow.python.training.basic_session_run_hooks
tensorflow.python.training.monitored_session
tensorflow.python.training.supervisor tensorflow.python.training.saver
tensorflow.python.training.optimizer
tensorflow.python.training.checkpoint_management
tensorflow.python.training.coordinator
tensorflow.python.training.queue_runner_impl
tensorflow.python.training.sync_replicas_optimizer
tensorflow.python.platform.tf_logging tensorflow.python.platform.app
tensorflow.python.platform.flags tensorflow.python.platform.gfile
tensorflow.python.ops.gradients_impl tensorflow.python.ops.clip_ops
tensorflow.python.ops.embedding_ops tensorflow.python.summary.summary
""".split()

LATER = {
    "objects": ("tf.train.Checkpoint tf.train.CheckpointManager",
                "object checkpoints are read, not written"),
    "layers": ("tf.contrib.slim.fully_connected tf.contrib.slim.conv2d "
               "tf.contrib.layers.flatten tf.contrib.layers.fully_connected "
               "tf.contrib.layers.conv2d tf.contrib.layers.optimize_loss "
               "tf.contrib.layers.xavier_initializer "
               "tf.contrib.layers.l2_regularizer", "layers come later"),
    "cells": ("tf.nn.rnn_cell tf.nn.rnn tf.nn.seq2seq tf.contrib.rnn",
              "cells come later"),
    "learn": ("tf.contrib.learn.RunConfig tf.contrib.learn.Experiment "
              "tf.contrib.learn.learn_runner",
              "the core replacement is tf.estimator"),
    "distribute": ("tf.contrib.distribute", "out of scope"),
    "images": ("tf.image.per_image_standardization tf.image.resize_images",
               "images come with the vision ops"),
}

# Attributes of Python's and of TensorFlow's own bookkeeping.
SKIPPED = {"SaveSliceInfo", "DType"}


def find(path):
    """The symbol at `path`: below the package, or of a module by its name."""
    words = path.split(".")
    if words[0] == "tf":
        value = tf
        for word in words[1:]:
            value = getattr(value, word)
        return value
    for n in range(len(words), 0, -1):
        try:
            value = importlib.import_module(".".join(words[:n]))
        except ImportError:
            continue
        for word in words[n:]:
            value = getattr(value, word)
        return value
    raise AttributeError(path)


def plain(value):
    """A default's text, the same in both packages; `...` if it has none."""
    if isinstance(value, (list, tuple)):
        texts = [plain(v) for v in value]
        if "..." in texts:
            return "..."
        form = "[%s]" if isinstance(value, list) else "(%s)"
        return form % ", ".join(texts)
    if isinstance(value, tf.DType):
        return "tf." + value.name
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return repr(value)
    return "..."


def arguments(function, bound=False):
    """What a function takes, as text; without the first if it is `bound`."""
    parameters = list(inspect.signature(function).parameters.values())
    words = []
    for p in parameters[1:] if bound else parameters:
        word = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        word += p.name
        if p.kind == p.KEYWORD_ONLY and not any(
                w.startswith("*") for w in words):
            words.append("*")
        if p.default is not p.empty:
            word += "=" + plain(p.default)
        words.append(word)
    return "(%s)" % ", ".join(words)


def members(cls):
    """(name, text) of each public member that the class itself tells of."""
    for name in sorted(dir(cls)):
        if name.startswith("_") or name in SKIPPED:
            continue
        value = inspect.getattr_static(cls, name)
        if isinstance(value, property):
            yield name, "property"
        elif isinstance(value, (staticmethod, classmethod)):
            bound = isinstance(value, classmethod)
            yield name, arguments(value.__func__, bound)
        elif inspect.isfunction(value):
            if value.__module__.split(".")[0].startswith("tensorflow"):
                yield name, arguments(value, bound=True)
            elif inspect.isfunction(getattr(value, "__wrapped__", None)):
                yield name, arguments(value, bound=True)
        elif isinstance(value, (bool, int, float, str, enum.Enum)):
            yield name, "= " + plain(value)


def describe(value):
    if inspect.isclass(value) and issubclass(value, enum.Enum):
        return "(value)"
    if inspect.isclass(value):
        if value.__init__ is not object.__init__:
            return arguments(value.__init__, bound=True)
        if value.__new__ is not object.__new__:
            return arguments(value.__new__, bound=True)
        return "()"
    return arguments(value)


def main():
    out = {}
    for name in CLASSES:
        cls = find(name)
        out[name] = describe(cls)
        for member, text in members(cls):
            out[name + "." + member] = text
    for name in FUNCTIONS:
        out[name] = describe(find(name))
    for name in CONSTANTS:
        out[name] = "= " + plain(find(name))
    for name in MODULES:
        find(name)
        out[name] = "module"
    for name in OLD:
        out[name] = "-"
    for names, reason in LATER.values():
        for name in names.split():
            out[name] = "# " + reason
    for name in sorted(out):
        print("%s\t%s" % (name, out[name]))


if __name__ == "__main__":
    sys.exit(main())
