#include "sluice/tensor/shared_arena.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "sluice/base/logging.h"

namespace sluice {
namespace {

// A file that could shrink would kill whoever reads it.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// The arena is that of the process that this one was forked from.
std::atomic<bool> is_parents{false};

std::atomic<ino_t> own_file{0};
std::atomic<int> own_mappings{0};

// To be asked before: a file that goes beyond its limit ends the process, by
// SIGXFSZ, unless somebody has said otherwise.
bool FilesMayHave(size_t bytes) {
  rlimit most;
  return getrlimit(RLIMIT_FSIZE, &most) != 0 || most.rlim_cur >= bytes;
}

}  // namespace

SharedArena::SharedArena(int fd)
    : fd_(fd),
      reader_fd_(open(("/proc/self/fd/" + std::to_string(fd)).c_str(),
                      O_RDONLY | O_CLOEXEC)) {}

SharedArena* SharedArena::Get() {
  static SharedArena* const arena = []() -> SharedArena* {
    if (!FilesMayHave(kBytes)) {
      SLUICE_LOG(INFO) << "Large tensors are copied to other processes of this "
                          "machine: files may not have "
                       << kBytes << " bytes (ulimit -f)";
      return nullptr;
    }
    const int fd =
        memfd_create("sluice-tensors", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return nullptr;
    if (ftruncate(fd, kBytes) != 0 || fcntl(fd, F_ADD_SEALS, kSeals) != 0) {
      close(fd);
      return nullptr;
    }
    if (struct stat file; fstat(fd, &file) == 0) own_file = file.st_ino;
    pthread_atfork(nullptr, nullptr, [] { is_parents = true; });
    return new SharedArena(fd);
  }();
  return arena;
}

std::optional<size_t> SharedArena::Take(size_t size) {
  if (is_parents) return std::nullopt;
  MutexLock lock(mu_);
  if (const auto it = free_.find(size); it != free_.end()) {
    const size_t at = it->second.back();
    it->second.pop_back();
    if (it->second.empty()) free_.erase(it);
    return at;
  }
  if (size > kBytes - end_) return std::nullopt;
  const size_t at = end_;
  end_ += size;
  return at;
}

void SharedArena::Give(size_t at, size_t size) {
  if (is_parents) return;
  fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            static_cast<off_t>(at), static_cast<off_t>(size));
  MutexLock lock(mu_);
  free_[size].push_back(at);
}

MappedArena::MappedArena(int fd) {
  struct stat file;
  // There may be more seals: with vm.memfd_noexec the system adds one.
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals >= 0 && (seals & kSeals) == kSeals && fstat(fd, &file) == 0 &&
      static_cast<size_t>(file.st_size) == SharedArena::kBytes) {
    void* const bytes = mmap(nullptr, SharedArena::kBytes, PROT_READ,
                             MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (bytes != MAP_FAILED) {
      bytes_ = static_cast<const char*>(bytes);
      own_ = file.st_ino == own_file;
      if (own_) ++own_mappings;
      // A core dump would look at every page of it.
      madvise(bytes, SharedArena::kBytes, MADV_DONTDUMP);
    }
  }
  close(fd);
}

MappedArena::~MappedArena() {
  if (bytes_ != nullptr) {
    munmap(const_cast<char*>(bytes_), SharedArena::kBytes);
  }
  if (own_) --own_mappings;
}

bool MappedArena::ReadsOwn() { return own_mappings > 0; }

const char* MappedArena::Find(size_t at, size_t size) const {
  if (bytes_ == nullptr || at > SharedArena::kBytes ||
      size > SharedArena::kBytes - at) {
    return nullptr;
  }
  return bytes_ + at;
}

}  // namespace sluice
