"""Reading event files and record files."""

from sluice import _sluice
from sluice.framework import protos


def tf_record_iterator(path, options=None):
    """The records of a file, as bytes."""
    reader = _sluice.RecordReader(
        path, TFRecordOptions.get_compression_type_string(options))
    while True:
        record = reader.read()
        if record is None:
            return
        yield record


def summary_iterator(path):
    """The events of an event file."""
    for record in tf_record_iterator(path):
        yield protos.Event.FromString(record)


class TFRecordCompressionType(object):
    NONE = 0
    ZLIB = 1
    GZIP = 2


class TFRecordOptions(object):

    _NAMES = {TFRecordCompressionType.NONE: "",
              TFRecordCompressionType.ZLIB: "ZLIB",
              TFRecordCompressionType.GZIP: "GZIP"}

    def __init__(self, compression_type=None, **unused):
        self.get_compression_type_string(compression_type)
        self.compression_type = compression_type

    @classmethod
    def get_compression_type_string(cls, options):
        if not options:
            return ""
        if isinstance(options, TFRecordOptions):
            return cls.get_compression_type_string(options.compression_type)
        if options in cls._NAMES:
            return cls._NAMES[options]
        if options in cls._NAMES.values():
            return options
        raise ValueError('Not a valid compression_type: "{}"'.format(options))


class TFRecordWriter(object):
    """Writes records to a file."""

    def __init__(self, path, options=None):
        self._writer = _sluice.RecordWriter(
            path, TFRecordOptions.get_compression_type_string(options))

    def write(self, record):
        self._writer.write(record)

    def flush(self):
        self._writer.flush()

    def close(self):
        self._writer.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()
