"""tf.python_io: record files (TFRecord), read and written outside of graphs."""

from sluice import _sluice
from sluice.platform import compat


class TFRecordCompressionType(object):
    """How a whole file is packed."""

    NONE = 0
    ZLIB = 1
    GZIP = 2


class TFRecordOptions(object):
    """How a record file is packed. zlib's other settings are its defaults."""

    compression_type_map = {
        TFRecordCompressionType.ZLIB: "ZLIB",
        TFRecordCompressionType.GZIP: "GZIP",
        TFRecordCompressionType.NONE: "",
    }

    def __init__(self, compression_type=None, flush_mode=None,
                 input_buffer_size=None, output_buffer_size=None,
                 window_bits=None, compression_level=None,
                 compression_method=None, mem_level=None,
                 compression_strategy=None):
        self.get_compression_type_string(compression_type)
        self.compression_type = compression_type

    @classmethod
    def get_compression_type_string(cls, options):
        """"ZLIB", "GZIP" or "", of options, a type or such a string."""
        if not options:
            return ""
        if isinstance(options, TFRecordOptions):
            return cls.get_compression_type_string(options.compression_type)
        if options in cls.compression_type_map:
            return cls.compression_type_map[options]
        if options in cls.compression_type_map.values():
            return options
        raise ValueError('Not a valid compression_type: "{}"'.format(options))


def tf_record_iterator(path, options=None):
    """The records of a file, as bytes."""
    reader = _sluice.RecordReader(
        compat.as_str_any(path),
        TFRecordOptions.get_compression_type_string(options))
    while True:
        record = reader.read()
        if record is None:
            return
        yield record


class TFRecordWriter(object):
    """Writes records to a file; also as `with TFRecordWriter(path) as w:`."""

    def __init__(self, path, options=None):
        self._writer = _sluice.RecordWriter(
            compat.as_str_any(path),
            TFRecordOptions.get_compression_type_string(options))

    def write(self, record):
        self._writer.write(compat.as_bytes(record))

    def flush(self):
        self._writer.flush()

    def close(self):
        """Writes what is left. Closing again does nothing."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()
