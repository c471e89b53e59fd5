#include "sluice/base/memory_file_system.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sluice/base/errno_status.h"
#include "sluice/base/path.h"
#include "sluice/base/status.h"

namespace sluice {

struct MemoryFileSystem::Node {
  bool is_dir = false;
  std::string data;
  std::string synced;
  int64_t mtime_nanos = 0;
};

namespace {

// Without empty and "." components.
std::string Normal(std::string_view path) {
  std::string normal = path.starts_with('/') ? "/" : "";
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (!part.empty() && part != ".") normal = JoinPath(normal, part);
  }
  return normal;
}

bool IsUnder(std::string_view path, std::string_view dir) {
  return path.size() > dir.size() && path.starts_with(dir) &&
         (dir.ends_with('/') || path[dir.size()] == '/');
}

bool IsChild(const std::string& path, const std::string& dir) {
  return path != dir && DirName(path) == dir;
}

}  // namespace

class MemoryWritableFile : public WritableFile {
 public:
  MemoryWritableFile(MemoryFileSystem* files,
                     std::shared_ptr<MemoryFileSystem::Node> node)
      : files_(files), node_(std::move(node)) {}

  absl::Status Append(std::string_view data) override {
    MutexLock lock(files_->mu_);
    node_->data.append(data);
    node_->mtime_nanos = ++files_->ticks_;
    return absl::OkStatus();
  }
  absl::Status Flush() override { return absl::OkStatus(); }
  absl::Status Sync() override {
    MutexLock lock(files_->mu_);
    node_->synced = node_->data;
    return absl::OkStatus();
  }
  absl::Status Close() override { return absl::OkStatus(); }

 private:
  MemoryFileSystem* const files_;
  const std::shared_ptr<MemoryFileSystem::Node> node_;
};

class MemoryRandomAccessFile : public RandomAccessFile {
 public:
  MemoryRandomAccessFile(MemoryFileSystem* files,
                         std::shared_ptr<MemoryFileSystem::Node> node,
                         int64_t size)
      : files_(files), node_(std::move(node)), size_(size) {}

  int64_t size() const override { return size_; }
  absl::StatusOr<size_t> Read(uint64_t offset, size_t n,
                              char* scratch) const override {
    MutexLock lock(files_->mu_);
    if (offset >= node_->data.size()) return size_t{0};
    n = std::min(n, node_->data.size() - static_cast<size_t>(offset));
    std::memcpy(scratch, node_->data.data() + offset, n);
    return n;
  }

 private:
  MemoryFileSystem* const files_;
  const std::shared_ptr<MemoryFileSystem::Node> node_;
  const int64_t size_;
};

MemoryFileSystem::MemoryFileSystem() {
  for (const char* root : {"", "/"}) {
    auto node = std::make_shared<Node>();
    node->is_dir = true;
    names_[root] = durable_[root] = node;
  }
}

MemoryFileSystem::~MemoryFileSystem() = default;

absl::StatusOr<std::shared_ptr<MemoryFileSystem::Node>>
MemoryFileSystem::FindFile(const std::string& path) {
  const auto found = names_.find(Normal(path));
  if (found == names_.end()) return ErrnoStatus(ENOENT, path);
  if (found->second->is_dir) return ErrnoStatus(EISDIR, path);
  return found->second;
}

absl::StatusOr<std::unique_ptr<WritableFile>> MemoryFileSystem::Open(
    const std::string& path, How how) {
  MutexLock lock(mu_);
  const std::string name = Normal(path);
  const auto parent = names_.find(std::string(DirName(name)));
  if (parent == names_.end()) return ErrnoStatus(ENOENT, path);
  if (!parent->second->is_dir) return ErrnoStatus(ENOTDIR, path);
  std::shared_ptr<Node>& node = names_[name];
  if (node != nullptr && how == How::kNew) return ErrnoStatus(EEXIST, path);
  if (node == nullptr) node = std::make_shared<Node>();
  if (node->is_dir) return ErrnoStatus(EISDIR, path);
  if (how == How::kEmpty) node->data.clear();
  node->mtime_nanos = ++ticks_;
  return std::make_unique<MemoryWritableFile>(this, node);
}

absl::StatusOr<std::unique_ptr<WritableFile>> MemoryFileSystem::NewWritable(
    const std::string& path) {
  return Open(path, How::kEmpty);
}

absl::StatusOr<std::unique_ptr<WritableFile>> MemoryFileSystem::NewExclusive(
    const std::string& path) {
  return Open(path, How::kNew);
}

absl::StatusOr<std::unique_ptr<WritableFile>> MemoryFileSystem::NewAppendable(
    const std::string& path) {
  return Open(path, How::kAppend);
}

absl::StatusOr<std::unique_ptr<RandomAccessFile>>
MemoryFileSystem::NewRandomAccess(const std::string& path) {
  MutexLock lock(mu_);
  SLUICE_ASSIGN_OR_RETURN(std::shared_ptr<Node> node, FindFile(path));
  const int64_t size = static_cast<int64_t>(node->data.size());
  return std::make_unique<MemoryRandomAccessFile>(this, std::move(node), size);
}

absl::Status MemoryFileSystem::Rename(const std::string& from,
                                      const std::string& to) {
  MutexLock lock(mu_);
  const std::string source = Normal(from), target = Normal(to);
  const auto found = names_.find(source);
  if (found == names_.end() || !names_.contains(std::string(DirName(target)))) {
    return ErrnoStatus(ENOENT, from);
  }
  if (source == target) return absl::OkStatus();
  const auto there = names_.find(target);
  if (there != names_.end() && there->second->is_dir) {
    return ErrnoStatus(EISDIR, from);
  }
  Names moved;
  for (auto it = names_.begin(); it != names_.end();) {
    if (it->first == source || IsUnder(it->first, source)) {
      moved[target + it->first.substr(source.size())] = it->second;
      it = names_.erase(it);
    } else {
      ++it;
    }
  }
  for (auto& [name, node] : moved) names_[name] = std::move(node);
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::Link(const std::string& path,
                                    const std::string& second) {
  MutexLock lock(mu_);
  SLUICE_ASSIGN_OR_RETURN(std::shared_ptr<Node> node, FindFile(path));
  const std::string name = Normal(second);
  if (!names_.contains(std::string(DirName(name)))) {
    return ErrnoStatus(ENOENT, second);
  }
  if (!names_.emplace(name, std::move(node)).second) {
    return ErrnoStatus(EEXIST, second);
  }
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::Delete(const std::string& path) {
  MutexLock lock(mu_);
  SLUICE_RETURN_IF_ERROR(FindFile(path).status());
  names_.erase(Normal(path));
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::DeleteRecursively(const std::string& path) {
  MutexLock lock(mu_);
  const std::string root = Normal(path);
  const size_t erased = std::erase_if(names_, [&](const auto& entry) {
    return entry.first == root || IsUnder(entry.first, root);
  });
  return erased > 0 ? absl::OkStatus() : ErrnoStatus(ENOENT, path);
}

absl::StatusOr<std::vector<std::string>> MemoryFileSystem::List(
    const std::string& dir) {
  MutexLock lock(mu_);
  const std::string parent = Normal(dir);
  const auto found = names_.find(parent);
  if (found == names_.end()) return ErrnoStatus(ENOENT, dir);
  if (!found->second->is_dir) return ErrnoStatus(ENOTDIR, dir);
  std::vector<std::string> children;
  for (const auto& [name, node] : names_) {
    if (IsChild(name, parent)) children.emplace_back(BaseName(name));
  }
  std::sort(children.begin(), children.end());
  return children;
}

absl::Status MemoryFileSystem::MkDirs(const std::string& dir) {
  MutexLock lock(mu_);
  const std::string path = Normal(dir);
  for (size_t end = 1; end <= path.size(); ++end) {
    if (end < path.size() && path[end] != '/') continue;
    const std::string part = path.substr(0, end);
    std::shared_ptr<Node>& node = names_[part];
    if (node == nullptr) {
      node = std::make_shared<Node>();
      node->is_dir = true;
      node->mtime_nanos = ++ticks_;
      durable_[part] = node;
    }
    if (!node->is_dir) return ErrnoStatus(ENOTDIR, dir);
  }
  return absl::OkStatus();
}

absl::StatusOr<FileStat> MemoryFileSystem::Stat(const std::string& path) {
  MutexLock lock(mu_);
  const auto found = names_.find(Normal(path));
  if (found == names_.end()) return ErrnoStatus(ENOENT, path);
  const Node& node = *found->second;
  return FileStat{.size = static_cast<int64_t>(node.data.size()),
                  .mtime_nanos = node.mtime_nanos,
                  .is_dir = node.is_dir};
}

absl::Status MemoryFileSystem::SyncDir(const std::string& dir) {
  MutexLock lock(mu_);
  const std::string parent = Normal(dir);
  if (!names_.contains(parent)) return ErrnoStatus(ENOENT, dir);
  std::erase_if(durable_, [&](const auto& entry) {
    return IsChild(entry.first, parent) && !entry.second->is_dir;
  });
  for (const auto& [name, node] : names_) {
    if (IsChild(name, parent)) durable_[name] = node;
  }
  return absl::OkStatus();
}

void MemoryFileSystem::CutPower(PowerCut what) {
  MutexLock lock(mu_);
  if (what == PowerCut::kLosesAll || what == PowerCut::kKeepsBytes) {
    names_ = durable_;
  }
  for (auto& [name, node] : names_) {
    if (what == PowerCut::kTearsBytes) {
      const size_t same =
          std::mismatch(node->data.begin(), node->data.end(),
                        node->synced.begin(), node->synced.end())
              .first -
          node->data.begin();
      node->data.resize(same + (node->data.size() - same) / 2);
    } else if (what != PowerCut::kKeepsBytes) {
      node->data = node->synced;
    }
    node->synced = node->data;
  }
  durable_ = names_;
}

}  // namespace sluice
