// ReadAheadFile: a file whose small pieces, read one after the other, come out
// of larger ones: a call to the system costs as much as the bytes of a small
// tensor.
#pragma once

#include <memory>

#include "sluice/base/file.h"

namespace sluice {

// The same bytes as `file`, which must not change. Thread-safe as `file` is.
std::unique_ptr<RandomAccessFile> WithReadAhead(
    std::unique_ptr<RandomAccessFile> file);

}  // namespace sluice
