// SharedArena: memory of this process that others on the machine can map, to
// read large tensors where they are. One file without a name for the process,
// far larger than memory; only what is in use takes room. A process that is
// forked has no part in its parent's.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "sluice/base/mutex.h"

namespace sluice {

// Thread-safe.
class SharedArena {
 public:
  static constexpr size_t kBytes = size_t{1} << 38;

  // Made at the first call; nullptr if the system gives none, or files may not
  // be that large.
  static SharedArena* Get();

  int fd() const { return fd_; }
  // For other processes: by it nothing can be written. -1 if there is none.
  int reader_fd() const { return reader_fd_; }
  // Where `size` bytes, a multiple of the page's, are free; nothing if nowhere.
  std::optional<size_t> Take(size_t size);
  // Gives the memory back to the system.
  void Give(size_t at, size_t size);

 private:
  explicit SharedArena(int fd);
  const int fd_;
  const int reader_fd_;
  Mutex mu_;
  size_t end_ SLUICE_GUARDED_BY(mu_) = 0;
  // Given back, by size: blocks come in few sizes.
  std::map<size_t, std::vector<size_t>> free_ SLUICE_GUARDED_BY(mu_);
};

// Whether these bytes stand in the arena, so that a process which is forked
// sees what this one writes to them later.
bool IsShared(const void* data, size_t size);

// Another process's arena, to read. Immutable.
class MappedArena {
 public:
  // Takes the descriptor. What cannot be mapped has no memory.
  explicit MappedArena(int fd);
  ~MappedArena();
  MappedArena(const MappedArena&) = delete;
  MappedArena& operator=(const MappedArena&) = delete;

  // nullptr if it has no such bytes.
  const char* Find(size_t at, size_t size) const;

  // Whether this process has its own arena mapped, as if it were another.
  static bool ReadsOwn();

 private:
  const char* bytes_ = nullptr;
  bool own_ = false;  // It is this process's.
};

}  // namespace sluice
