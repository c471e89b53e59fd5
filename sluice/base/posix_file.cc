#include "sluice/base/posix_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "sluice/base/blocking_pool.h"
#include "sluice/base/errno_status.h"
#include "sluice/base/mutex.h"
#include "sluice/base/status.h"

namespace sluice {
namespace {

constexpr size_t kGather = 64 << 10;
// Linux moves at most 2 GiB less a page in one call.
constexpr size_t kLargestTransfer = size_t{1} << 30;
// What disks ask of memory, offset and size of a transfer past the cache.
constexpr int64_t kAlignment = 4096;
// Files of this size go past the cache, in such blocks: large enough for a
// disk's full rate, small enough to stay in the processor's cache.
constexpr int64_t kDirectFrom = 1 << 20;
constexpr size_t kBlock = 2 << 20;
constexpr size_t kDirectRead = 1 << 20;

// Memory for transfers past the cache, kBlock bytes of it. A block is a huge
// page where there are some: a disk gets it in one piece and not in 512, which
// is more than twice as fast. Blocks are kept for the next transfer: the first
// touch of memory costs more than a copy.
class AlignedBlock {
 public:
  AlignedBlock() : data_(Take()) {}
  ~AlignedBlock() {
    if (data_ != nullptr) Give(data_);
  }
  AlignedBlock(const AlignedBlock&) = delete;
  AlignedBlock& operator=(const AlignedBlock&) = delete;
  char* data() const { return data_; }  // nullptr if there is no memory.

 private:
  struct Idle {
    Mutex mu;
    std::vector<char*> blocks SLUICE_GUARDED_BY(mu);
  };
  static constexpr size_t kMostIdle = 4;

  static Idle& TheIdle() {
    static Idle* const idle = new Idle;
    return *idle;
  }
  static char* Take() {
    Idle& idle = TheIdle();
    {
      MutexLock lock(idle.mu);
      if (!idle.blocks.empty()) {
        char* const block = idle.blocks.back();
        idle.blocks.pop_back();
        return block;
      }
    }
    void* block = nullptr;
    if (posix_memalign(&block, kBlock, kBlock) != 0) return nullptr;
#ifdef MADV_HUGEPAGE
    madvise(block, kBlock, MADV_HUGEPAGE);
#endif
    return static_cast<char*>(block);
  }
  static void Give(char* block) {
    Idle& idle = TheIdle();
    {
      MutexLock lock(idle.mu);
      if (idle.blocks.size() < kMostIdle) {
        idle.blocks.push_back(block);
        return;
      }
    }
    std::free(block);
  }

  char* const data_;
};

// The same file past the cache; -1 where that does not work.
int OpenDirect(int fd, int flags) {
  const std::string same = StrCat("/proc/self/fd/", fd);
  return open(same.c_str(), flags | O_DIRECT | O_CLOEXEC);
}

absl::Status WriteAt(int fd, const std::string& path, std::string_view data,
                     int64_t offset) {
  while (!data.empty()) {
    const ssize_t n = pwrite(fd, data.data(),
                             std::min(data.size(), kLargestTransfer), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, path);
    data.remove_prefix(n);
    offset += n;
  }
  return absl::OkStatus();
}

// A file's blocks on their way to the disk, written one after the other by a
// thread of its own while the next ones are filled. It does not sleep between
// them as long as there are some: a wake takes a tenth of a block's time.
// Thread-safe.
class BlockQueue : public std::enable_shared_from_this<BlockQueue> {
 public:
  BlockQueue(int fd, std::string path, int direct)
      : fd_(fd), direct_(direct), path_(std::move(path)) {}
  ~BlockQueue() { close(direct_); }

  using Block = std::unique_ptr<AlignedBlock>;

  // An empty block; waits while too many are on their way.
  Block Take() {
    MutexLock lock(mu_);
    while (writing_ && queue_.size() >= kMostWaiting) changed_.Wait(mu_);
    if (empty_.empty()) return std::make_unique<AlignedBlock>();
    Block block = std::move(empty_.back());
    empty_.pop_back();
    return block;
  }

  // Has a full one written to `offset`; gives what went wrong with those before
  // it.
  absl::Status Put(Block block, int64_t offset) {
    bool start;
    absl::Status status;
    {
      MutexLock lock(mu_);
      queue_.push_back({std::move(block), offset});
      start = !std::exchange(writing_, true);
      status = status_;
    }
    if (start) RunBlocking([self = shared_from_this()] { self->Drain(); });
    return status;
  }

  // Returns when nothing is on its way.
  absl::Status Wait() {
    MutexLock lock(mu_);
    while (writing_) changed_.Wait(mu_);
    return status_;
  }

  // Size and offset are aligned.
  absl::Status Write(std::string_view data, int64_t offset) const {
    ssize_t n;
    do {
      n = pwrite(direct_, data.data(), data.size(), offset);
    } while (n < 0 && errno == EINTR);
    // A disk that is nearly full, or one that wants it otherwise: the cache
    // takes what it can, and tells what is wrong.
    data.remove_prefix(static_cast<size_t>(std::max<ssize_t>(n, 0)));
    return WriteAt(fd_, path_, data, offset + std::max<ssize_t>(n, 0));
  }

 private:
  struct Full {
    Block block;
    int64_t offset;
  };
  static constexpr size_t kMostWaiting = 2;

  void Drain() {
    mu_.Lock();
    while (!queue_.empty()) {
      Full full = std::move(queue_.front());
      queue_.pop_front();
      mu_.Unlock();
      absl::Status status = Write({full.block->data(), kBlock}, full.offset);
      mu_.Lock();
      if (status_.ok()) status_ = std::move(status);
      empty_.push_back(std::move(full.block));
      changed_.NotifyAll();
    }
    writing_ = false;
    changed_.NotifyAll();
    mu_.Unlock();
  }

  const int fd_;
  const int direct_;
  const std::string path_;
  Mutex mu_;
  CondVar changed_;
  std::deque<Full> queue_ SLUICE_GUARDED_BY(mu_);
  std::vector<Block> empty_ SLUICE_GUARDED_BY(mu_);
  bool writing_ SLUICE_GUARDED_BY(mu_) = false;
  absl::Status status_ SLUICE_GUARDED_BY(mu_);
};

// Cuts what is appended into blocks that go past the cache.
class DirectWriter {
 public:
  // nullptr where it does not work. `offset` is aligned.
  static std::unique_ptr<DirectWriter> Create(int fd, const std::string& path,
                                              int64_t offset) {
    const int direct = OpenDirect(fd, O_WRONLY);
    if (direct < 0) return nullptr;
    auto queue = std::make_shared<BlockQueue>(fd, path, direct);
    BlockQueue::Block first = queue->Take();
    if (first->data() == nullptr) return nullptr;
    return std::make_unique<DirectWriter>(fd, path, offset, std::move(queue),
                                          std::move(first));
  }
  DirectWriter(int fd, const std::string& path, int64_t offset,
               std::shared_ptr<BlockQueue> queue, BlockQueue::Block first)
      : fd_(fd),
        path_(path),
        queue_(std::move(queue)),
        block_(std::move(first)),
        offset_(offset) {}
  ~DirectWriter() { queue_->Wait().IgnoreError(); }  // Close has told.

  absl::Status Append(std::string_view data) {
    while (!data.empty()) {
      const size_t n = std::min(data.size(), kBlock - filled_);
      std::memcpy(block_->data() + filled_, data.data(), n);
      filled_ += n;
      data.remove_prefix(n);
      if (filled_ == kBlock) SLUICE_RETURN_IF_ERROR(NextBlock());
    }
    return absl::OkStatus();
  }

  // Everything is with the system. The part of a block stays here, to become a
  // whole one; on its way to the disk, most of it goes past the cache too.
  absl::Status Flush(bool to_disk) {
    SLUICE_RETURN_IF_ERROR(queue_->Wait());
    size_t from = std::exchange(flushed_, filled_);
    const size_t aligned = from / kAlignment * kAlignment;
    const size_t end = filled_ / kAlignment * kAlignment;
    if (to_disk && end - aligned >= kDirectTail) {
      SLUICE_RETURN_IF_ERROR(
          queue_->Write({block_->data() + aligned, end - aligned},
                        offset_ + static_cast<int64_t>(aligned)));
      from = end;
    }
    return WriteAt(fd_, path_, {block_->data() + from, filled_ - from},
                   offset_ + static_cast<int64_t>(from));
  }

 private:
  // Less than this at the end of a file is not worth a transfer of its own.
  static constexpr size_t kDirectTail = 64 << 10;

  absl::Status NextBlock() {
    SLUICE_RETURN_IF_ERROR(queue_->Put(std::move(block_), offset_));
    offset_ += static_cast<int64_t>(kBlock);
    filled_ = flushed_ = 0;
    block_ = queue_->Take();
    if (block_->data() != nullptr) return absl::OkStatus();
    return ResourceExhausted("No memory to write ", path_);
  }

  const int fd_;
  const std::string path_;
  const std::shared_ptr<BlockQueue> queue_;
  BlockQueue::Block block_;  // The one that is filled.
  size_t filled_ = 0;
  size_t flushed_ = 0;  // Of the block.
  int64_t offset_;      // Of the block.
};

class PosixWritableFile : public WritableFile {
 public:
  PosixWritableFile(std::string path, int fd, bool from_start)
      : path_(std::move(path)), fd_(fd), may_go_direct_(from_start) {}
  ~PosixWritableFile() override { Close().IgnoreError(); }

  absl::Status Append(std::string_view data) override {
    if (direct_ != nullptr) {
      if (status_.ok()) status_ = direct_->Append(data);
      return status_;
    }
    if (gathered_.size() + data.size() <= kGather) {
      gathered_.append(data);
      return status_;
    }
    SLUICE_RETURN_IF_ERROR(Flush());
    if (may_go_direct_ &&
        written_ + static_cast<int64_t>(data.size()) >= kDirectFrom) {
      return GoDirect(data);
    }
    if (data.size() >= kGather) return Write(data);
    gathered_.append(data);
    return status_;
  }

  absl::Status Flush() override { return Flush(/*to_disk=*/false); }

  absl::Status Sync() override {
    SLUICE_RETURN_IF_ERROR(Flush(/*to_disk=*/true));
    if (fdatasync(fd_) != 0) status_ = ErrnoStatus(errno, path_);
    return status_;
  }

  absl::Status Close() override {
    if (fd_ < 0) return status_;
    Flush().IgnoreError();  // It stays in status_.
    direct_.reset();
    if (close(fd_) != 0 && status_.ok()) status_ = ErrnoStatus(errno, path_);
    fd_ = -1;
    return status_;
  }

 private:
  absl::Status Flush(bool to_disk) {
    if (direct_ != nullptr) {
      if (status_.ok()) status_ = direct_->Flush(to_disk);
      return status_;
    }
    const absl::Status status = Write(gathered_);
    gathered_.clear();
    return status;
  }

  absl::Status GoDirect(std::string_view data) {
    may_go_direct_ = false;  // Asked once.
    const size_t rest = (kAlignment - written_ % kAlignment) % kAlignment;
    if (data.size() < rest) {
      may_go_direct_ = true;
      gathered_.append(data);
      return status_;
    }
    SLUICE_RETURN_IF_ERROR(Write(data.substr(0, rest)));
    data.remove_prefix(rest);
    direct_ = DirectWriter::Create(fd_, path_, written_);
    return direct_ == nullptr ? Write(data) : Append(data);
  }

  absl::Status Write(std::string_view data) {
    if (fd_ < 0 && status_.ok()) {
      status_ = FailedPrecondition(path_, "; the file is closed");
    }
    while (status_.ok() && !data.empty()) {
      const ssize_t n =
          write(fd_, data.data(), std::min(data.size(), kLargestTransfer));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        status_ = ErrnoStatus(errno, path_);
        break;
      }
      data.remove_prefix(n);
      written_ += n;
    }
    return status_;
  }

  const std::string path_;
  int fd_;
  bool may_go_direct_;
  std::string gathered_;
  absl::Status status_;
  int64_t written_ = 0;
  std::unique_ptr<DirectWriter> direct_;
};

class PosixRandomAccessFile : public RandomAccessFile {
 public:
  PosixRandomAccessFile(std::string path, int fd, int64_t size)
      : path_(std::move(path)), fd_(fd), size_(size) {
    if (size >= kDirectFrom) direct_ = OpenDirect(fd, O_RDONLY);
  }
  ~PosixRandomAccessFile() override {
    close(fd_);
    if (direct_ >= 0) close(direct_);
  }

  int64_t size() const override { return size_; }

  absl::StatusOr<size_t> Read(uint64_t offset, size_t n,
                              char* scratch) const override {
    size_t done = 0;
    if (n >= kDirectRead && direct_ >= 0) {
      done = ReadCached(offset, n, scratch);
      if (done < n) done += ReadDirect(offset + done, n - done, scratch + done);
    }
    while (done < n) {
      const ssize_t got =
          pread(fd_, scratch + done, std::min(n - done, kLargestTransfer),
                static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return ErrnoStatus(errno, path_);
      if (got == 0) break;
      done += got;
    }
    return done;
  }

 private:
  // As much as is in the system's cache; that is faster than any disk.
  size_t ReadCached(uint64_t offset, size_t n, char* out) const {
    size_t done = 0;
    while (done < n) {
      const iovec part = {out + done, std::min(n - done, kLargestTransfer)};
      const ssize_t got =
          preadv2(fd_, &part, 1, static_cast<off_t>(offset + done), RWF_NOWAIT);
      if (got <= 0) break;
      done += got;
    }
    return done;
  }

  // As much as comes past the cache; the caller reads the rest otherwise.
  size_t ReadDirect(uint64_t offset, size_t n, char* out) const {
    const AlignedBlock block;
    if (block.data() == nullptr) return 0;
    size_t done = 0;
    while (done < n) {
      const uint64_t at = offset + done;
      const size_t skip = at % kAlignment;
      const size_t wanted = std::min(kBlock, n - done + skip);
      const size_t size = (wanted + kAlignment - 1) / kAlignment * kAlignment;
      const ssize_t got =
          pread(direct_, block.data(), size, static_cast<off_t>(at - skip));
      if (got <= static_cast<ssize_t>(skip)) break;
      const size_t useful = std::min(static_cast<size_t>(got) - skip, n - done);
      std::memcpy(out + done, block.data() + skip, useful);
      done += useful;
    }
    return done;
  }

  const std::string path_;
  const int fd_;
  const int64_t size_;
  int direct_ = -1;
};

}  // namespace

std::unique_ptr<WritableFile> NewPosixWritable(std::string path, int fd,
                                               bool from_start) {
  return std::make_unique<PosixWritableFile>(std::move(path), fd, from_start);
}

std::unique_ptr<RandomAccessFile> NewPosixRandomAccess(std::string path, int fd,
                                                       int64_t size) {
  return std::make_unique<PosixRandomAccessFile>(std::move(path), fd, size);
}

}  // namespace sluice
