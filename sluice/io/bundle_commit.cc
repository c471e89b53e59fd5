// Putting a finished bundle in place of an older one.
//
// A bundle is several files and a rename moves one, so an older bundle of the
// same prefix would be broken between the renames. Therefore its data files get
// second names first, as the upper half of twice as many shards, and its index
// is replaced by one that says so. Then the plain names are free for the new
// data, and the rename of the new index turns old into new in one step.
#include "sluice/base/path.h"
#include "sluice/base/status.h"
#include "sluice/io/bundle_format.h"

namespace sluice {
namespace {

bool CannotLink(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnimplemented ||
         status.code() == absl::StatusCode::kPermissionDenied;
}

absl::Status LinkShards(FileSystem& files, const std::string& prefix, int n) {
  for (int i = 0; i < n; ++i) {
    const std::string plain = BundleDataName(prefix, i, n);
    const std::string second = BundleDataName(prefix, n + i, 2 * n);
    if (!files.Exists(plain)) continue;  // A shard that holds nothing.
    files.Delete(second).IgnoreError();  // Left by a commit that was cut off.
    SLUICE_RETURN_IF_ERROR(files.Link(plain, second));
  }
  return absl::OkStatus();
}

// Moves the bundle to the names of the upper half of 2n shards.
absl::Status MoveAside(FileSystem& files, const std::string& prefix,
                       BundleIndex* old, bool sync) {
  const int n = old->num_shards;
  const absl::Status linked = LinkShards(files, prefix, n);
  // Then the old bundle is at risk for a moment, as with TensorFlow always.
  if (CannotLink(linked)) return absl::OkStatus();
  SLUICE_RETURN_IF_ERROR(linked);
  for (auto& [key, entry] : old->entries) {
    if (entry.slices().empty()) entry.set_shard_id(entry.shard_id() + n);
  }
  const std::string index = BundleIndexName(prefix);
  const std::string temporary = BundleTempName(index);
  absl::Status status =
      WriteBundleIndex(files, temporary, 2 * n, old->entries, sync);
  const std::string dir(DirName(prefix));
  // The second names must be safe before an index counts on them.
  if (status.ok() && sync) status = files.SyncDir(dir);
  if (status.ok()) status = files.Rename(temporary, index);
  if (!status.ok()) {
    files.Delete(temporary).IgnoreError();
    return status;
  }
  old->num_shards = 2 * n;
  return sync ? files.SyncDir(dir) : absl::OkStatus();
}

}  // namespace

absl::Status CommitBundle(FileSystem& files, const std::string& prefix,
                          const std::vector<std::string>& data,
                          const std::string& index, bool sync) {
  const int n = static_cast<int>(data.size());
  const std::string dir(DirName(prefix));
  // An index that cannot be read has nothing worth keeping.
  absl::StatusOr<BundleIndex> old = ReadBundleIndex(files, prefix);
  if (old.ok() && old->num_shards == n) {
    SLUICE_RETURN_IF_ERROR(MoveAside(files, prefix, &*old, sync));
  }
  for (int i = 0; i < n; ++i) {
    SLUICE_RETURN_IF_ERROR(files.Rename(data[i], BundleDataName(prefix, i, n)));
  }
  // An index must never be there without its data, also after a power cut.
  if (sync) SLUICE_RETURN_IF_ERROR(files.SyncDir(dir));
  SLUICE_RETURN_IF_ERROR(files.Rename(index, BundleIndexName(prefix)));
  if (sync) SLUICE_RETURN_IF_ERROR(files.SyncDir(dir));
  if (old.ok() && old->num_shards != n) {
    // The new bundle stands; what is left of the old one only takes room.
    for (int i = 0; i < old->num_shards; ++i) {
      files.Delete(BundleDataName(prefix, i, old->num_shards)).IgnoreError();
    }
  }
  return absl::OkStatus();
}

}  // namespace sluice
