// Buffer: counted memory behind tensors. It is *pooled* (comes from and returns
// to the process's pool of warm pages), or *borrowed* (someone else's memory
// and a callback that gives it back), or a *view* of a part of another buffer.
//
// Fresh pages cost ten times a warm copy, so memory that a step gives back is
// kept for the next one; docs/architecture.md has the numbers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/functional/any_invocable.h"

namespace sluice {

inline constexpr size_t kBufferAlignment = 64;

// Thread-safe counting; what the bytes hold is the owner's business.
class Buffer {
 public:
  // A buffer of at least `size` bytes with one reference, contents undefined.
  // nullptr if there is no memory.
  static Buffer* Allocate(size_t size);
  // Wraps memory that `release` gives back when the last reference goes.
  static Buffer* Borrow(void* data, size_t size,
                        absl::AnyInvocable<void()> release);
  // A part of `parent`, which it keeps alive.
  static Buffer* View(Buffer* parent, size_t offset, size_t size);

  void* data() const { return data_; }
  size_t size() const { return size_; }
  bool borrowed() const { return borrowed_; }

  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() {
    // Sole owners skip the locked instruction: nobody else can add a reference.
    if (refs_.load(std::memory_order_acquire) == 1 ||
        refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      release_(this);
    }
  }
  bool unique() const { return refs_.load(std::memory_order_acquire) == 1; }

  // Called once with the buffer before its memory goes, to destroy elements
  // that are objects.
  using Destroy = void (*)(Buffer*);
  void set_destroy(Destroy destroy) { destroy_ = destroy; }
  void RunDestroy() {
    if (destroy_ != nullptr) destroy_(this);
  }

 private:
  friend struct BufferPool;
  Buffer() = default;

  std::atomic<int32_t> refs_{1};
  uint16_t size_class_ = 0;
  bool borrowed_ = false;
  void* data_ = nullptr;
  size_t size_ = 0;
  void (*release_)(Buffer*) = nullptr;
  Destroy destroy_ = nullptr;
  void* owner_ = nullptr;   // A view's parent, a borrowed buffer's callback.
  Buffer* next_ = nullptr;  // Link while in the pool.
};
static_assert(sizeof(Buffer) <= kBufferAlignment);

// Where in SharedArena other processes find [data, data + size), which must be
// part of a buffer that the caller keeps and that nobody writes to meanwhile.
// Nothing if it is small, borrowed, or the system has no room. The first time
// costs a copy; the memory stays where it is, and stays shared.
std::optional<size_t> ShareMemory(const void* data, size_t size);

// From here on buffers can be shared.
inline constexpr size_t kShareableBytes = 256 << 10;

struct BufferPoolStats {
  int64_t reuses = 0;              // Times the pool had a block.
  int64_t system_allocations = 0;  // Times the pool had to ask the system.
  int64_t bytes_in_use = 0;        // Held by buffers now.
  int64_t bytes_pooled = 0;        // Kept for reuse in the shared part.
};
BufferPoolStats GetBufferPoolStats();

}  // namespace sluice
