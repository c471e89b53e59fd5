#include "sluice/base/posix_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

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
constexpr int64_t kDirectFrom = 8 << 20;
constexpr size_t kBlock = 4 << 20;
constexpr size_t kDirectRead = 1 << 20;

// Pages for transfers past the cache.
class AlignedBlock {
 public:
  explicit AlignedBlock(size_t size) : size_(size) {
    void* const data = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    data_ = data == MAP_FAILED ? nullptr : static_cast<char*>(data);
  }
  ~AlignedBlock() {
    if (data_ != nullptr) munmap(data_, size_);
  }
  AlignedBlock(const AlignedBlock&) = delete;
  AlignedBlock& operator=(const AlignedBlock&) = delete;
  char* data() const { return data_; }  // nullptr if there is no memory.

 private:
  const size_t size_;
  char* data_;
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

// Writes blocks past the cache while the next one is filled.
class DirectWriter {
 public:
  // nullptr where it does not work. `offset` is aligned.
  static std::unique_ptr<DirectWriter> Create(int fd, const std::string& path,
                                              int64_t offset) {
    const int direct = OpenDirect(fd, O_WRONLY);
    if (direct < 0) return nullptr;
    auto writer = std::make_unique<DirectWriter>(fd, direct, path, offset);
    const bool memory =
        writer->blocks_[0].data() != nullptr && writer->blocks_[1].data();
    return memory ? std::move(writer) : nullptr;
  }
  DirectWriter(int fd, int direct, const std::string& path, int64_t offset)
      : fd_(fd), direct_(direct), path_(path), offset_(offset) {}
  ~DirectWriter() {
    Wait().IgnoreError();  // Close has told.
    close(direct_);
  }

  absl::Status Append(std::string_view data) {
    while (!data.empty()) {
      const size_t n = std::min(data.size(), kBlock - filled_);
      std::memcpy(blocks_[current_].data() + filled_, data.data(), n);
      filled_ += n;
      data.remove_prefix(n);
      if (filled_ == kBlock) SLUICE_RETURN_IF_ERROR(Submit());
    }
    return absl::OkStatus();
  }

  // Everything is with the system. The part of a block goes through the cache
  // and stays here, to become a whole one.
  absl::Status Flush() {
    SLUICE_RETURN_IF_ERROR(Wait());
    const size_t from = std::exchange(flushed_, filled_);
    return WriteAt(fd_, path_,
                   {blocks_[current_].data() + from, filled_ - from},
                   offset_ + static_cast<int64_t>(from));
  }

 private:
  absl::Status Submit() {
    SLUICE_RETURN_IF_ERROR(Wait());
    pending_ = std::make_shared<Notification>();
    RunBlocking([this, block = blocks_[current_].data(), offset = offset_,
                 pending = pending_] {
      result_ = WriteBlock(block, offset);
      pending->Notify();
    });
    current_ = 1 - current_;
    filled_ = flushed_ = 0;
    offset_ += static_cast<int64_t>(kBlock);
    return absl::OkStatus();
  }

  absl::Status WriteBlock(const char* block, int64_t offset) {
    ssize_t n;
    do {
      n = pwrite(direct_, block, kBlock, offset);
    } while (n < 0 && errno == EINTR);
    if (n == static_cast<ssize_t>(kBlock)) return absl::OkStatus();
    // A disk that is nearly full, or one that wants it otherwise: the cache
    // takes what it can, and tells what is wrong.
    const size_t done = static_cast<size_t>(std::max<ssize_t>(n, 0));
    return WriteAt(fd_, path_, {block + done, kBlock - done},
                   offset + static_cast<int64_t>(done));
  }

  absl::Status Wait() {
    if (pending_ != nullptr) pending_->Wait();
    pending_ = nullptr;
    return result_;
  }

  const int fd_;
  const int direct_;
  const std::string path_;
  AlignedBlock blocks_[2]{AlignedBlock(kBlock), AlignedBlock(kBlock)};
  int current_ = 0;
  size_t filled_ = 0;
  size_t flushed_ = 0;                     // Of the current block.
  int64_t offset_;                         // Of the current block.
  std::shared_ptr<Notification> pending_;  // Shared with who notifies.
  absl::Status result_;
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

  absl::Status Flush() override {
    if (direct_ != nullptr) {
      if (status_.ok()) status_ = direct_->Flush();
      return status_;
    }
    const absl::Status status = Write(gathered_);
    gathered_.clear();
    return status;
  }

  absl::Status Sync() override {
    SLUICE_RETURN_IF_ERROR(Flush());
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
    // Warm pages: fresh ones cost more than the copy.
    static thread_local AlignedBlock block(kBlock);
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
