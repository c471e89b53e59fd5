"""tf.estimator: models as functions, trained on one machine or a cluster."""

from sluice.estimator.estimator import (  # noqa: F401
    Estimator, WarmStartSettings)
from sluice.estimator.model_fn import EstimatorSpec, ModeKeys  # noqa: F401
from sluice.estimator.run_config import RunConfig  # noqa: F401
from sluice.estimator.training import (  # noqa: F401
    EvalSpec, TrainSpec, train_and_evaluate)
from sluice.training.basic_session_run_hooks import (  # noqa: F401
    CheckpointSaverHook, CheckpointSaverListener, FeedFnHook, FinalOpsHook,
    GlobalStepWaiterHook, LoggingTensorHook, NanLossDuringTrainingError,
    NanTensorHook, ProfilerHook, SecondOrStepTimer, StepCounterHook,
    StopAtStepHook, SummarySaverHook)
from sluice.training.session_run_hook import (  # noqa: F401
    SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues)
from sluice.training.warm_starting_util import VocabInfo  # noqa: F401
