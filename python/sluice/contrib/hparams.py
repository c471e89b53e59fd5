"""Named values of a model (tf.contrib.training.HParams)."""


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
