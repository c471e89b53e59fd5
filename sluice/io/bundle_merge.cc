#include "sluice/base/path.h"
#include "sluice/base/status.h"
#include "sluice/io/bundle_writer.h"
#include "sluice/tensor/codec.h"

namespace sluice {
namespace {

absl::Status AddMerged(const std::string& key, pb::BundleEntryProto entry,
                       int first_shard, BundleEntries* merged) {
  if (entry.slices().empty())
    entry.set_shard_id(entry.shard_id() + first_shard);
  const auto [found, added] = merged->try_emplace(key, entry);
  if (added) return absl::OkStatus();
  pb::BundleEntryProto& there = found->second;
  if (there.slices().empty() || entry.slices().empty()) {
    return InvalidArgument("Two parts of a sharded checkpoint hold ", key);
  }
  if (there.dtype() != entry.dtype() ||
      there.shape().SerializeAsString() != entry.shape().SerializeAsString()) {
    return InvalidArgument("Parts of a sharded checkpoint disagree on ", key,
                           ": ", there.ShortDebugString(), " and ",
                           entry.ShortDebugString());
  }
  there.mutable_slices()->MergeFrom(entry.slices());
  return absl::OkStatus();
}

// What is left of the parts when the merged bundle stands.
void DeleteParts(FileSystem& files, const std::vector<std::string>& prefixes,
                 const std::string& merged_prefix, bool delete_old) {
  for (const std::string& prefix : prefixes) {
    if (prefix == merged_prefix) continue;
    // The checkpoint is good; rests only take room.
    files.Delete(BundleIndexName(prefix)).IgnoreError();
  }
  if (!delete_old) return;
  for (const std::string& prefix : prefixes) {
    const std::string dir(DirName(prefix));
    if (dir.empty() || dir == DirName(merged_prefix)) continue;
    const absl::StatusOr<std::vector<std::string>> names = files.List(dir);
    if (names.ok() && names->empty())
      files.DeleteRecursively(dir).IgnoreError();
  }
}

}  // namespace

absl::Status MergeBundles(FileSystem& files,
                          const std::vector<std::string>& prefixes,
                          const std::string& merged_prefix, bool delete_old,
                          BundleOptions options) {
  if (prefixes.empty()) return InvalidArgument("No checkpoints to merge");
  std::vector<std::string> data;
  BundleEntries merged;
  for (const std::string& prefix : prefixes) {
    SLUICE_ASSIGN_OR_RETURN(const BundleIndex part,
                            ReadBundleIndex(files, prefix));
    const int first_shard = static_cast<int>(data.size());
    for (int i = 0; i < part.num_shards; ++i) {
      data.push_back(BundleDataName(prefix, i, part.num_shards));
      // Before anything is renamed: a merge that cannot end must not begin.
      SLUICE_RETURN_IF_ERROR(files.Stat(data.back()).status());
    }
    for (const auto& [key, entry] : part.entries) {
      SLUICE_RETURN_IF_ERROR(AddMerged(key, entry, first_shard, &merged));
    }
  }
  const std::string index = BundleTempName(BundleIndexName(merged_prefix));
  absl::Status status = WriteBundleIndex(
      files, index, static_cast<int>(data.size()), merged, options.sync);
  if (status.ok()) {
    status = CommitBundle(files, merged_prefix, data, index, options.sync);
  }
  if (!status.ok()) {
    files.Delete(index).IgnoreError();
    return status;
  }
  DeleteParts(files, prefixes, merged_prefix, delete_old);
  return absl::OkStatus();
}

}  // namespace sluice
