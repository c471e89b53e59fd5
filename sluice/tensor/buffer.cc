#include "sluice/tensor/buffer.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <new>
#include <vector>

#include "sluice/base/mutex.h"
#include "sluice/base/sanitizers.h"
#include "sluice/tensor/shared_arena.h"

namespace sluice {
namespace {

// The sanitizer is to see every life.
constexpr bool kPooling = !kAddressSanitizer;

// Block sizes (header included): four steps to each power of two, from 128
// bytes. So at most a fifth of a block is unused.
constexpr int kMinLog = 7;
constexpr int kClasses = 4 * (48 - kMinLog);
// A thread keeps this much of each small class to itself.
constexpr size_t kThreadCacheBytes = 256 << 10;
constexpr size_t kLargestCachedBlock = 64 << 10;
// The shared part keeps at most this much; more goes back to the system.
constexpr int64_t kMaxPooledBytes = int64_t{4} << 30;

int SizeClass(size_t bytes) {
  if (bytes <= (size_t{1} << kMinLog)) return 0;
  const int log = std::bit_width(bytes - 1) - 1;  // 2^log < bytes <= 2^(log+1)
  const size_t step = size_t{1} << (log - 2);
  const int quarter =
      static_cast<int>((bytes - 1 - (size_t{1} << log)) / step);  // 0…3
  return 4 * (log - kMinLog) + quarter + 1;
}

size_t ClassBytes(int size_class) {
  if (size_class == 0) return size_t{1} << kMinLog;
  const int log = kMinLog + (size_class - 1) / 4;
  const size_t base = size_t{1} << log;
  return base + (base / 4) * ((size_class - 1) % 4 + 1);
}

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = 2 << 20;

// The pages of large blocks are their own, so that they can be shared: first
// one with the header, then the data.
bool IsLarge(size_t block) { return block >= kShareableBytes; }
size_t LargeDataBytes(size_t block) {
  return (block - kBufferAlignment + kPage - 1) / kPage * kPage;
}

// Huge pages are asked for as such: random rows of a table then find their
// address without walking tables that are themselves not in the cache.
void* MapLarge(size_t bytes) {
  const size_t slack = bytes >= kHugePage ? kHugePage - kPage : 0;
  void* const mapped = mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* block = static_cast<char*>(mapped);
  if (slack > 0) {
    const size_t skipped = -reinterpret_cast<uintptr_t>(block) % kHugePage;
    if (skipped > 0) munmap(block, skipped);
    block += skipped;
    if (skipped < slack) munmap(block + bytes, slack - skipped);
    // A system without huge pages has small ones.
    madvise(block, bytes, MADV_HUGEPAGE);
  }
  return block;
}

void* MallocSmall(size_t bytes) {
  // Not aligned_alloc, which wants sizes that are multiples of the alignment.
  void* block = nullptr;
  return posix_memalign(&block, kBufferAlignment, bytes) == 0 ? block : nullptr;
}

// The large blocks there are, by where their data begins.
class LargeBlocks {
 public:
  void Add(void* data, size_t size) {
    MutexLock lock(mu_);
    blocks_[static_cast<char*>(data)] = {size, std::nullopt};
  }

  void Remove(void* data) {
    Block block;
    {
      MutexLock lock(mu_);
      const auto it = blocks_.find(static_cast<char*>(data));
      block = it->second;
      blocks_.erase(it);
    }
    if (block.shared) SharedArena::Get()->Give(*block.shared, block.size);
  }

  std::optional<size_t> Share(const void* data, size_t size) {
    // Only compared with where blocks begin.
    char* const at = static_cast<char*>(const_cast<void*>(data));
    std::optional<Found> found = Find(at, size);
    if (found && !found->block.shared) {
      // One at a time; the lock of the blocks is not held for that long.
      MutexLock sharing(sharing_mu_);
      found = Find(at, size);
      if (!found->block.shared) {
        found->block.shared = Move(found->begin, found->block.size);
        MutexLock lock(mu_);
        blocks_[found->begin].shared = found->block.shared;
      }
    }
    if (!found || !found->block.shared) return std::nullopt;
    return *found->block.shared + static_cast<size_t>(at - found->begin);
  }

  bool IsShared(const void* data, size_t size) {
    const auto found = Find(static_cast<char*>(const_cast<void*>(data)), size);
    return found && found->block.shared;
  }

  // Around a fork nobody else changes anything, and the child can go on.
  void BeforeFork() SLUICE_NO_THREAD_SAFETY_ANALYSIS {
    sharing_mu_.Lock();
    mu_.Lock();
  }
  void AfterFork() SLUICE_NO_THREAD_SAFETY_ANALYSIS {
    mu_.Unlock();
    sharing_mu_.Unlock();
  }
  // What a child writes, also to blocks that wait in its pool, is its own.
  void AfterForkInChild() SLUICE_NO_THREAD_SAFETY_ANALYSIS {
    for (auto& [data, block] : blocks_) {
      if (!block.shared) continue;
      // Where this fails there is nobody to tell; it stays the parent's.
      (void)mmap(data, block.size, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
                 SharedArena::Get()->fd(), static_cast<off_t>(*block.shared));
      block.shared.reset();
    }
    AfterFork();
  }

 private:
  struct Block {
    size_t size = 0;
    std::optional<size_t> shared;  // Where in the arena.
  };
  struct Found {
    char* begin;
    Block block;
  };

  // The block that these bytes are part of.
  std::optional<Found> Find(char* data, size_t size) {
    MutexLock lock(mu_);
    auto it = blocks_.upper_bound(data);
    if (it == blocks_.begin()) return std::nullopt;
    --it;
    const auto offset = static_cast<size_t>(data - it->first);
    const Block& block = it->second;
    if (offset >= block.size || size > block.size - offset) return std::nullopt;
    return Found{it->first, block};
  }

  // Copies the bytes into the arena and puts its pages in the place of theirs.
  static std::optional<size_t> Move(char* data, size_t size) {
    SharedArena* const arena = SharedArena::Get();
    if (arena == nullptr) return std::nullopt;
    const std::optional<size_t> at = arena->Take(size);
    if (!at) return std::nullopt;
    size_t copied = 0;
    while (copied < size) {
      const ssize_t done = pwrite(arena->fd(), data + copied, size - copied,
                                  static_cast<off_t>(*at + copied));
      if (done <= 0 && errno != EINTR) break;
      copied += static_cast<size_t>(std::max<ssize_t>(done, 0));
    }
    if (copied == size &&
        mmap(data, size, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_FIXED | MAP_POPULATE, arena->fd(),
             static_cast<off_t>(*at)) != MAP_FAILED) {
      return at;
    }
    arena->Give(*at, size);
    return std::nullopt;
  }

  Mutex sharing_mu_;
  Mutex mu_;
  std::map<char*, Block> blocks_ SLUICE_GUARDED_BY(mu_);
};

LargeBlocks& TheLargeBlocks() {
  static LargeBlocks* blocks = [] {
    pthread_atfork([] { TheLargeBlocks().BeforeFork(); },
                   [] { TheLargeBlocks().AfterFork(); },
                   [] { TheLargeBlocks().AfterForkInChild(); });
    return new LargeBlocks;
  }();
  return *blocks;
}

struct FreeList {
  Buffer* head = nullptr;
  size_t bytes = 0;
};

}  // namespace

struct BufferPool {
  struct Shared {
    Mutex mu;
    Buffer* head SLUICE_GUARDED_BY(mu) = nullptr;
    int64_t reuses SLUICE_GUARDED_BY(mu) = 0;
  };
  std::array<Shared, kClasses> shared;
  std::atomic<int64_t> system_allocations{0};
  std::atomic<int64_t> bytes_in_use{0};
  std::atomic<int64_t> bytes_pooled{0};

  static BufferPool& Get() {
    static BufferPool* pool = new BufferPool;
    return *pool;
  }

  struct ThreadCache;
  // The caches of all threads, for those who count.
  Mutex caches_mu;
  std::vector<ThreadCache*> caches SLUICE_GUARDED_BY(caches_mu);
  int64_t reuses_of_ended_threads SLUICE_GUARDED_BY(caches_mu) = 0;

  struct ThreadCache {
    std::array<FreeList, kClasses> lists;
    // Written by its thread alone, so that counting costs an ordinary addition.
    std::atomic<int64_t> reuses{0};

    ThreadCache() {
      BufferPool& pool = Get();
      MutexLock lock(pool.caches_mu);
      pool.caches.push_back(this);
    }
    ~ThreadCache() {
      BufferPool& pool = Get();
      {
        MutexLock lock(pool.caches_mu);
        std::erase(pool.caches, this);
        pool.reuses_of_ended_threads += reuses.load();
      }
      for (int c = 0; c < kClasses; ++c) {
        while (Buffer* buffer = lists[c].head) {
          lists[c].head = buffer->next_;
          Get().GiveShared(buffer);
        }
      }
    }
  };
  static ThreadCache& Cache() {
    thread_local ThreadCache cache;
    return cache;
  }

  Buffer* FromSystem(int size_class) {
    system_allocations.fetch_add(1, std::memory_order_relaxed);
    const size_t size = ClassBytes(size_class);
    const bool large = IsLarge(size);
    void* const block =
        large ? MapLarge(kPage + LargeDataBytes(size)) : MallocSmall(size);
    if (block == nullptr) return nullptr;
    Buffer* buffer = new (block) Buffer;
    buffer->size_class_ = static_cast<uint16_t>(size_class);
    buffer->data_ =
        static_cast<char*>(block) + (large ? kPage : kBufferAlignment);
    buffer->release_ = [](Buffer* b) { Get().Give(b); };
    if (large) TheLargeBlocks().Add(buffer->data_, LargeDataBytes(size));
    return buffer;
  }

  static void ToSystem(Buffer* buffer) {
    const size_t size = ClassBytes(buffer->size_class_);
    if (IsLarge(size)) {
      TheLargeBlocks().Remove(buffer->data_);
      munmap(static_cast<void*>(buffer), kPage + LargeDataBytes(size));
    } else {
      std::free(buffer);
    }
  }

  Buffer* Take(int size_class) {
    if (!kPooling) return FromSystem(size_class);
    const size_t block = ClassBytes(size_class);
    if (block <= kLargestCachedBlock) {
      ThreadCache& cache = Cache();
      FreeList& list = cache.lists[size_class];
      if (Buffer* buffer = list.head) {
        list.head = buffer->next_;
        list.bytes -= block;
        cache.reuses.store(cache.reuses.load(std::memory_order_relaxed) + 1,
                           std::memory_order_relaxed);
        return buffer;
      }
    }
    {
      MutexLock lock(shared[size_class].mu);
      if (Buffer* buffer = shared[size_class].head) {
        shared[size_class].head = buffer->next_;
        ++shared[size_class].reuses;
        bytes_pooled.fetch_sub(block, std::memory_order_relaxed);
        return buffer;
      }
    }
    return FromSystem(size_class);
  }

  void Give(Buffer* buffer) {
    buffer->RunDestroy();
    buffer->destroy_ = nullptr;
    const size_t block = ClassBytes(buffer->size_class_);
    if (block > kLargestCachedBlock) {
      bytes_in_use.fetch_sub(block, std::memory_order_relaxed);
    }
    if (!kPooling) {
      ToSystem(buffer);
      return;
    }
    if (block <= kLargestCachedBlock) {
      FreeList& list = Cache().lists[buffer->size_class_];
      if (list.bytes + block <= kThreadCacheBytes) {
        buffer->next_ = list.head;
        list.head = buffer;
        list.bytes += block;
        return;
      }
    }
    GiveShared(buffer);
  }

  void GiveShared(Buffer* buffer) {
    const int64_t block = static_cast<int64_t>(ClassBytes(buffer->size_class_));
    if (bytes_pooled.load(std::memory_order_relaxed) + block >
        kMaxPooledBytes) {
      ToSystem(buffer);
      return;
    }
    bytes_pooled.fetch_add(block, std::memory_order_relaxed);
    Shared& part = shared[buffer->size_class_];
    MutexLock lock(part.mu);
    buffer->next_ = part.head;
    part.head = buffer;
  }

  int64_t Reuses() {
    int64_t reuses = 0;
    for (Shared& part : shared) {
      MutexLock lock(part.mu);
      reuses += part.reuses;
    }
    MutexLock lock(caches_mu);
    for (const ThreadCache* cache : caches) {
      reuses += cache->reuses.load(std::memory_order_relaxed);
    }
    return reuses + reuses_of_ended_threads;
  }

  static Buffer* Header() {
    Buffer* buffer = Get().Take(0);
    if (buffer == nullptr) return nullptr;
    return buffer;
  }

  // A header from the pool whose data lies elsewhere goes back as a header.
  static void GiveHeader(Buffer* buffer) {
    buffer->data_ = reinterpret_cast<char*>(buffer) + kBufferAlignment;
    buffer->borrowed_ = false;
    buffer->owner_ = nullptr;
    buffer->destroy_ = nullptr;
    buffer->release_ = [](Buffer* b) { Get().Give(b); };
    Get().Give(buffer);
  }

  static Buffer* Allocate(size_t size) {
    if (size > (size_t{1} << 46)) return nullptr;
    const int size_class = SizeClass(size + kBufferAlignment);
    Buffer* buffer = Get().Take(size_class);
    if (buffer == nullptr) return nullptr;
    const size_t block = ClassBytes(size_class);
    if (block > kLargestCachedBlock) {
      Get().bytes_in_use.fetch_add(block, std::memory_order_relaxed);
    }
    buffer->size_ = size;
    buffer->refs_.store(1, std::memory_order_relaxed);
    return buffer;
  }

  static Buffer* Borrow(void* data, size_t size,
                        absl::AnyInvocable<void()> release) {
    Buffer* buffer = Header();
    if (buffer == nullptr) return nullptr;
    buffer->refs_.store(1, std::memory_order_relaxed);
    buffer->data_ = data;
    buffer->size_ = size;
    buffer->borrowed_ = true;
    buffer->owner_ = new absl::AnyInvocable<void()>(std::move(release));
    buffer->release_ = [](Buffer* b) {
      b->RunDestroy();
      auto* callback = static_cast<absl::AnyInvocable<void()>*>(b->owner_);
      (*callback)();
      delete callback;
      GiveHeader(b);
    };
    return buffer;
  }

  static Buffer* View(Buffer* parent, size_t offset, size_t size) {
    Buffer* buffer = Header();
    if (buffer == nullptr) return nullptr;
    parent->Ref();
    buffer->refs_.store(1, std::memory_order_relaxed);
    buffer->data_ = static_cast<char*>(parent->data_) + offset;
    buffer->size_ = size;
    buffer->borrowed_ = true;
    buffer->owner_ = parent;
    buffer->release_ = [](Buffer* b) {
      Buffer* parent = static_cast<Buffer*>(b->owner_);
      GiveHeader(b);
      parent->Unref();
    };
    return buffer;
  }
};

Buffer* Buffer::Allocate(size_t size) { return BufferPool::Allocate(size); }

Buffer* Buffer::Borrow(void* data, size_t size,
                       absl::AnyInvocable<void()> release) {
  return BufferPool::Borrow(data, size, std::move(release));
}

Buffer* Buffer::View(Buffer* parent, size_t offset, size_t size) {
  return BufferPool::View(parent, offset, size);
}

std::optional<size_t> ShareMemory(const void* data, size_t size) {
  if (size < kShareableBytes) return std::nullopt;
  return TheLargeBlocks().Share(data, size);
}

bool IsShared(const void* data, size_t size) {
  return TheLargeBlocks().IsShared(data, size);
}

BufferPoolStats GetBufferPoolStats() {
  BufferPool& pool = BufferPool::Get();
  return {pool.Reuses(), pool.system_allocations.load(),
          pool.bytes_in_use.load(), pool.bytes_pooled.load()};
}

}  // namespace sluice
