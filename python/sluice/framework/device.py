"""Device names as programs write them."""


class DeviceSpec(object):
    """The parts of a device name; any may be missing."""

    def __init__(self, job=None, replica=None, task=None, device_type=None,
                 device_index=None):
        self.job = job
        self.replica = replica if replica is None else int(replica)
        self.task = task if task is None else int(task)
        self.device_type = self._upper(device_type)
        self.device_index = device_index

    @staticmethod
    def _upper(device_type):
        if device_type is not None and device_type.lower() in ("cpu", "gpu"):
            return device_type.upper()
        return device_type

    @classmethod
    def from_string(cls, spec):
        return cls().parse_from_string(spec)

    def parse_from_string(self, spec):
        self.job = self.replica = self.task = None
        self.device_type = self.device_index = None
        for part in [p.split(":") for p in spec.split("/")]:
            kind = part[0]
            if len(part) == 2 and kind == "job":
                self.job = part[1]
            elif len(part) == 2 and kind == "replica":
                self.replica = int(part[1])
            elif len(part) == 2 and kind == "task":
                self.task = int(part[1])
            elif len(part) <= 2 and kind.lower() in ("cpu", "gpu"):
                if self.device_type is not None:
                    raise ValueError(
                        "Cannot specify multiple device types: %s" % spec)
                self.device_type = kind.upper()
                if len(part) == 2 and part[1] != "*":
                    self.device_index = int(part[1])
            elif len(part) == 3 and kind == "device":
                if self.device_type is not None:
                    raise ValueError(
                        "Cannot specify multiple device types: %s" % spec)
                self.device_type = self._upper(part[1])
                if part[2] != "*":
                    self.device_index = int(part[2])
            elif kind:
                raise ValueError("Unknown attribute: '%s' in '%s'" %
                                 (kind, spec))
        return self

    def merge_from(self, other):
        for field in ("job", "replica", "task", "device_type",
                      "device_index"):
            value = getattr(other, field)
            if value is not None:
                setattr(self, field, value)

    def make_merged_spec(self, other):
        merged = DeviceSpec()
        merged.merge_from(self)
        merged.merge_from(other)
        return merged

    def to_string(self):
        text = ""
        if self.job is not None:
            text += "/job:" + self.job
        if self.replica is not None:
            text += "/replica:%d" % self.replica
        if self.task is not None:
            text += "/task:%d" % self.task
        if self.device_type is not None:
            index = "*" if self.device_index is None else str(
                self.device_index)
            text += "/device:%s:%s" % (self.device_type, index)
        return text

    def _core(self):
        """The parts in the engine's order; '*' as a job means any."""
        job = None if self.job == "*" else self.job
        return (job, self.replica, self.task, self.device_type,
                self.device_index)

    def __str__(self):
        return self.to_string()

    __repr__ = __str__

    def __eq__(self, other):
        return isinstance(other, DeviceSpec) and str(self) == str(other)

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(str(self))


def canonical_name(device):
    if device is None:
        return ""
    if isinstance(device, DeviceSpec):
        return device.to_string()
    return DeviceSpec.from_string(device).to_string()
