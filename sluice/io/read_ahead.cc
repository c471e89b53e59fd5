#include "sluice/io/read_ahead.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "sluice/base/mutex.h"
#include "sluice/base/status.h"

namespace sluice {
namespace {

// Larger pieces are worth a call of their own.
constexpr size_t kSmall = 32 << 10;
constexpr size_t kWindow = 256 << 10;

class ReadAheadFile : public RandomAccessFile {
 public:
  explicit ReadAheadFile(std::unique_ptr<RandomAccessFile> file)
      : file_(std::move(file)) {}

  int64_t size() const override { return file_->size(); }

  absl::StatusOr<size_t> Read(uint64_t offset, size_t n,
                              char* scratch) const override {
    if (n > kSmall) return file_->Read(offset, n, scratch);
    bool follows;
    {
      MutexLock lock(mu_);
      follows = offset == next_;
      next_ = offset + n;
      if (offset >= start_ && offset + n <= start_ + window_.size()) {
        std::memcpy(scratch, window_.data() + (offset - start_), n);
        return n;
      }
    }
    // One that stands alone would pay for what nobody wants.
    if (!follows) return file_->Read(offset, n, scratch);
    std::string window(kWindow, '\0');
    SLUICE_ASSIGN_OR_RETURN(const size_t got,
                            file_->Read(offset, kWindow, window.data()));
    window.resize(got);
    const size_t done = std::min(n, got);
    std::memcpy(scratch, window.data(), done);
    MutexLock lock(mu_);
    start_ = offset;
    window_.swap(window);
    return done;
  }

 private:
  const std::unique_ptr<RandomAccessFile> file_;
  mutable Mutex mu_;
  mutable uint64_t next_ SLUICE_GUARDED_BY(mu_) = 0;  // Where a read ended.
  mutable uint64_t start_ SLUICE_GUARDED_BY(mu_) = 0;
  mutable std::string window_ SLUICE_GUARDED_BY(mu_);
};

}  // namespace

std::unique_ptr<RandomAccessFile> WithReadAhead(
    std::unique_ptr<RandomAccessFile> file) {
  return std::make_unique<ReadAheadFile>(std::move(file));
}

}  // namespace sluice
