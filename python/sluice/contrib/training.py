"""tf.contrib.training."""

from sluice.training.checkpoint_management import (  # noqa: F401
    checkpoints_iterator, wait_for_new_checkpoint)
from sluice.training.device_setter import (  # noqa: F401
    GreedyLoadBalancingStrategy, RandomStrategy, byte_size_load_fn)
from sluice.training.training_util import (  # noqa: F401
    get_or_create_global_step)
from sluice.training import monitored_session


def train(train_op, logdir, master="", is_chief=True, scaffold=None,
          hooks=None, chief_only_hooks=None, save_checkpoint_secs=600,
          save_summaries_steps=100, config=None, max_wait_secs=7200,
          run_metadata=None):
    """Runs `train_op` until a hook asks to stop; its last value."""
    if logdir is None and is_chief and (save_summaries_steps or
                                        save_checkpoint_secs):
        raise ValueError("logdir cannot be None when save_summaries_steps is "
                         "not None")
    loss = None
    with monitored_session.MonitoredTrainingSession(
            master=master, is_chief=is_chief, checkpoint_dir=logdir,
            scaffold=scaffold, hooks=hooks, chief_only_hooks=chief_only_hooks,
            save_checkpoint_secs=save_checkpoint_secs,
            save_summaries_steps=save_summaries_steps, config=config,
            max_wait_secs=max_wait_secs) as session:
        while not session.should_stop():
            loss = session.run(train_op, run_metadata=run_metadata)
    return loss


class HParams(object):
    """Named values of a model."""

    def __init__(self, hparam_def=None, model_structure=None, **kwargs):
        self._names = []
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name, value):
        if hasattr(self, name):
            raise ValueError("Hyperparameter name is reserved: %s" % name)
        self._names.append(name)
        setattr(self, name, value)

    def set_hparam(self, name, value):
        if name not in self._names:
            raise KeyError(name)
        setattr(self, name, value)

    def override_from_dict(self, values_dict):
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def get(self, key, default=None):
        return getattr(self, key) if key in self._names else default

    def values(self):
        return {name: getattr(self, name) for name in self._names}

    def __contains__(self, key):
        return key in self._names

    def __repr__(self):
        return "HParams(%s)" % ", ".join(
            "%s=%r" % item for item in sorted(self.values().items()))
