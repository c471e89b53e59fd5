"""The MNIST digits, from files on this machine."""

import collections
import gzip
import os
import struct

from sluice.platform.lazy_numpy import np

from sluice.framework import dtypes

Datasets = collections.namedtuple("Datasets", ["train", "validation", "test"])
_FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte",
          "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def _read_idx(directory, name):
    """An array from a file in the IDX format, packed or not."""
    for path, opener in ((os.path.join(directory, name + ".gz"), gzip.open),
                         (os.path.join(directory, name), open)):
        if os.path.exists(path):
            with opener(path, "rb") as f:
                data = f.read()
            break
    else:
        raise FileNotFoundError(
            "No %s[.gz] in %s. Nothing is downloaded: put the four MNIST "
            "files (%s) there." % (name, os.path.abspath(directory),
                                   ", ".join(_FILES)))
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] != 8:
        raise ValueError("%s is no IDX file of bytes" % path)
    rank = data[3]
    shape = struct.unpack(">%dI" % rank, data[4:4 + 4 * rank])
    values = np.frombuffer(data, np.uint8, offset=4 + 4 * rank)
    if values.size != int(np.prod(shape)):
        raise ValueError("%s is cut short: %d bytes of %s" %
                         (path, values.size, shape))
    return values.reshape(shape)


class DataSet(object):
    """Images and labels, in batches."""

    def __init__(self, images, labels, fake_data=False, one_hot=False,
                 dtype=dtypes.float32, reshape=True, seed=None):
        dtype = dtypes.as_dtype(dtype).base_dtype
        if dtype not in (dtypes.uint8, dtypes.float32):
            raise TypeError("Invalid image dtype %r, expected uint8 or "
                            "float32" % dtype)
        self._random = np.random.RandomState(seed)
        if reshape:
            images = images.reshape(images.shape[0], -1)
        if dtype == dtypes.float32:
            images = images.astype(np.float32) * (1.0 / 255.0)
        self._images = images
        self._labels = labels
        self._num_examples = images.shape[0]
        self._epochs_completed = 0
        self._at = 0

    images = property(lambda self: self._images)
    labels = property(lambda self: self._labels)
    num_examples = property(lambda self: self._num_examples)
    epochs_completed = property(lambda self: self._epochs_completed)

    def _shuffle(self):
        order = self._random.permutation(self._num_examples)
        self._images = self._images[order]
        self._labels = self._labels[order]

    def next_batch(self, batch_size, fake_data=False, shuffle=True):
        """The next examples; goes on with the next epoch at the end."""
        start = self._at
        if self._epochs_completed == 0 and start == 0 and shuffle:
            self._shuffle()
        if start + batch_size <= self._num_examples:
            self._at = start + batch_size
            return (self._images[start:self._at],
                    self._labels[start:self._at])
        images, labels = self._images[start:], self._labels[start:]
        self._epochs_completed += 1
        if shuffle:
            self._shuffle()
        self._at = batch_size - len(images)
        return (np.concatenate([images, self._images[:self._at]]),
                np.concatenate([labels, self._labels[:self._at]]))


def read_data_sets(train_dir, fake_data=False, one_hot=False,
                   dtype=dtypes.float32, reshape=True, validation_size=5000,
                   seed=None, source_url=None):
    """Training, validation and test data from the files in `train_dir`."""
    arrays = [_read_idx(train_dir, name) for name in _FILES]
    images, labels, test_images, test_labels = arrays
    images, test_images = images[..., np.newaxis], test_images[..., np.newaxis]
    if one_hot:
        labels, test_labels = np.eye(10)[labels], np.eye(10)[test_labels]
    if not 0 <= validation_size <= len(images):
        raise ValueError("Validation size should be between 0 and %d. "
                         "Received: %d." % (len(images), validation_size))
    options = dict(dtype=dtype, reshape=reshape, seed=seed)
    return Datasets(
        train=DataSet(images[validation_size:], labels[validation_size:],
                      **options),
        validation=DataSet(images[:validation_size],
                           labels[:validation_size], **options),
        test=DataSet(test_images, test_labels, **options))
