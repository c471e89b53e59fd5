// Files of the machine, by system calls. Large ones go past the system's cache:
// a checkpoint would push everything else out of it, and copying into the cache
// and syncing it takes several times as long as the disk does
// (docs/formats/checkpoint.md has the numbers).
#pragma once

#include <memory>
#include <string>

#include "sluice/base/file.h"

namespace sluice {

// Takes `fd` over. `from_start`: the file is empty, and nobody else writes it.
std::unique_ptr<WritableFile> NewPosixWritable(std::string path, int fd,
                                               bool from_start);
// Takes `fd` over.
std::unique_ptr<RandomAccessFile> NewPosixRandomAccess(std::string path, int fd,
                                                       int64_t size);

}  // namespace sluice
