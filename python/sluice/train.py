"""tf.train."""

from sluice.framework.protos import (  # noqa: F401
    BytesList, ClusterDef, Example, Feature, FeatureList, FeatureLists,
    Features, FloatList, Int64List, JobDef, QueueRunnerDef, SaverDef,
    SequenceExample, ServerDef)
from sluice.summary.summary_iterator import summary_iterator  # noqa: F401
from sluice.training.adadelta import AdadeltaOptimizer  # noqa: F401
from sluice.training.adagrad import AdagradOptimizer  # noqa: F401
from sluice.training.adagrad_da import AdagradDAOptimizer  # noqa: F401
from sluice.training.adam import AdamOptimizer  # noqa: F401
from sluice.training.basic_session_run_hooks import (  # noqa: F401
    CheckpointSaverHook, CheckpointSaverListener, FeedFnHook, FinalOpsHook,
    GlobalStepWaiterHook, LoggingTensorHook, NanLossDuringTrainingError,
    NanTensorHook, ProfilerHook, SecondOrStepTimer, StepCounterHook,
    StopAtStepHook, SummarySaverHook)
from sluice.training.checkpoint_management import (  # noqa: F401
    checkpoint_exists, checkpoints_iterator, generate_checkpoint_state_proto,
    get_checkpoint_mtimes, get_checkpoint_state, latest_checkpoint,
    remove_checkpoint, update_checkpoint_state)
from sluice.training.checkpoint_utils import (  # noqa: F401
    NewCheckpointReader, init_from_checkpoint, list_variables,
    load_checkpoint, load_variable)
from sluice.training.coordinator import (  # noqa: F401
    Coordinator, LooperThread)
from sluice.training.device_setter import replica_device_setter  # noqa: F401
from sluice.training.ftrl import FtrlOptimizer  # noqa: F401
from sluice.training.gradient_descent import (  # noqa: F401
    GradientDescentOptimizer)
from sluice.training.graph_io import write_graph  # noqa: F401
from sluice.training.input import (  # noqa: F401
    batch, batch_join, input_producer, limit_epochs, match_filenames_once,
    maybe_batch, maybe_batch_join, maybe_shuffle_batch,
    maybe_shuffle_batch_join, range_input_producer, shuffle_batch,
    shuffle_batch_join, slice_input_producer, string_input_producer)
from sluice.training.learning_rate_decay import (  # noqa: F401
    cosine_decay, cosine_decay_restarts, exponential_decay,
    inverse_time_decay, linear_cosine_decay, natural_exp_decay,
    noisy_linear_cosine_decay, piecewise_constant, piecewise_constant_decay,
    polynomial_decay)
from sluice.training.momentum import MomentumOptimizer  # noqa: F401
from sluice.training.monitored_session import (  # noqa: F401
    ChiefSessionCreator, MonitoredSession, MonitoredTrainingSession, Scaffold,
    SessionCreator, SingularMonitoredSession, WorkerSessionCreator)
from sluice.training.moving_averages import (  # noqa: F401
    ExponentialMovingAverage)
from sluice.training.optimizer import Optimizer  # noqa: F401
from sluice.training.proximal_adagrad import (  # noqa: F401
    ProximalAdagradOptimizer)
from sluice.training.proximal_gradient_descent import (  # noqa: F401
    ProximalGradientDescentOptimizer)
from sluice.training.queue_runner_impl import (  # noqa: F401
    QueueRunner, add_queue_runner, start_queue_runners)
from sluice.training.rmsprop import RMSPropOptimizer  # noqa: F401
from sluice.training.saver import (  # noqa: F401
    Saver, export_meta_graph, import_meta_graph)
from sluice.training.server_lib import ClusterSpec, Server  # noqa: F401
from sluice.training.session_manager import SessionManager  # noqa: F401
from sluice.training.session_run_hook import (  # noqa: F401
    SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues)
from sluice.training.supervisor import (  # noqa: F401
    Supervisor, basic_train_loop)
from sluice.training.sync_replicas_optimizer import (  # noqa: F401
    SyncReplicasOptimizer, SyncReplicasOptimizerV2)
from sluice.training.training_util import (  # noqa: F401
    assert_global_step, create_global_step, get_global_step,
    get_or_create_global_step, global_step)
from sluice.training.warm_starting_util import (  # noqa: F401
    VocabInfo, warm_start)
from sluice.summary.writer import FileWriter as SummaryWriter  # noqa: F401
from sluice.summary.writer_cache import (  # noqa: F401
    FileWriterCache as SummaryWriterCache)
