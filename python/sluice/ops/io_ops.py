"""Readers, and files read and written as a whole."""

from sluice.framework import ops
from sluice.framework.op_builder import apply_op
from sluice.python_io import TFRecordOptions


def read_file(filename, name=None):
    return apply_op("ReadFile", name, filename=filename)


def write_file(filename, contents, name=None):
    return apply_op("WriteFile", name, filename=filename, contents=contents)


def matching_files(pattern, name=None):
    return apply_op("MatchingFiles", name, pattern=pattern)


def _handle(queue):
    """Of a queue, or what is a handle already."""
    return queue if isinstance(queue, ops.Tensor) else queue.queue_ref


class ReaderBase(object):
    """Gives the records of files whose names come from a queue."""

    def __init__(self, reader_ref, supports_serialize=False):
        self._reader_ref = reader_ref
        self._supports_serialize = supports_serialize

    reader_ref = property(lambda self: self._reader_ref)
    supports_serialize = property(lambda self: self._supports_serialize)

    def read(self, queue, name=None):
        """(key, value) of the next record; takes a name when it needs one."""
        return apply_op("ReaderReadV2", name, reader_handle=self._reader_ref,
                        queue_handle=_handle(queue))

    def read_up_to(self, queue, num_records, name=None):
        """(keys, values): up to so many records of one file."""
        return apply_op("ReaderReadUpToV2", name,
                        reader_handle=self._reader_ref,
                        queue_handle=_handle(queue), num_records=num_records)

    def _about(self, op_type, name, **inputs):
        return apply_op(op_type, name, reader_handle=self._reader_ref,
                        **inputs)

    def num_records_produced(self, name=None):
        return self._about("ReaderNumRecordsProducedV2", name)

    def num_work_units_completed(self, name=None):
        return self._about("ReaderNumWorkUnitsCompletedV2", name)

    def serialize_state(self, name=None):
        return self._about("ReaderSerializeStateV2", name)

    def restore_state(self, state, name=None):
        return self._about("ReaderRestoreStateV2", name, state=state)

    def reset(self, name=None):
        return self._about("ReaderResetV2", name)


class WholeFileReader(ReaderBase):
    """A file is one record; its key is the name."""

    def __init__(self, name=None):
        super().__init__(apply_op("WholeFileReaderV2", name),
                         supports_serialize=True)


class TextLineReader(ReaderBase):
    """A line is a record."""

    def __init__(self, skip_header_lines=None, name=None):
        super().__init__(apply_op("TextLineReaderV2", name,
                                  skip_header_lines=skip_header_lines))


class FixedLengthRecordReader(ReaderBase):
    """So many bytes are a record."""

    def __init__(self, record_bytes, header_bytes=None, footer_bytes=None,
                 hop_bytes=None, name=None, encoding=None):
        super().__init__(apply_op(
            "FixedLengthRecordReaderV2", name, record_bytes=record_bytes,
            header_bytes=header_bytes, footer_bytes=footer_bytes,
            hop_bytes=hop_bytes, encoding=encoding))


class TFRecordReader(ReaderBase):
    """The records of record files."""

    def __init__(self, name=None, options=None):
        super().__init__(apply_op(
            "TFRecordReaderV2", name,
            compression_type=TFRecordOptions.get_compression_type_string(
                options)))


class IdentityReader(ReaderBase):
    """A name is the record; no file is read."""

    def __init__(self, name=None):
        super().__init__(apply_op("IdentityReaderV2", name),
                         supports_serialize=True)


class LMDBReader(ReaderBase):

    def __init__(self, name=None, options=None):
        raise NotImplementedError(
            "LMDB files are not read; write them as record files "
            "(tf.python_io.TFRecordWriter)")
