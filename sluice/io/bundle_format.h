// Names and shared steps of checkpoint bundles (V2 checkpoints), inside io/.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "sluice/base/file.h"
#include "sluice/io/table.h"
#include "sluice/proto/bundle.pb.h"

namespace sluice {

// "<prefix>.index", "<prefix>.data-00000-of-00001".
std::string BundleIndexName(std::string_view prefix);
std::string BundleDataName(std::string_view prefix, int shard, int num_shards);
// A name beside `path` that nobody else uses.
std::string BundleTempName(std::string_view path);

// Whether the key is that of a tensor, not the header's or a slice's.
inline bool IsTensorKey(std::string_view key) {
  return !key.empty() && key.front() != '\0';
}

using BundleEntries = std::map<std::string, pb::BundleEntryProto, std::less<>>;

// Writes an index file and closes it; syncs if asked to.
absl::Status WriteBundleIndex(FileSystem& files, const std::string& path,
                              int num_shards, const BundleEntries& entries,
                              bool sync);

struct BundleIndex {
  int num_shards = 0;
  BundleEntries entries;
};
// All of an index file, checked.
absl::StatusOr<BundleIndex> ReadBundleIndex(FileSystem& files,
                                            const std::string& prefix);
// Reads and checks the header of an index.
absl::StatusOr<pb::BundleHeaderProto> ReadBundleHeader(const Table& table,
                                                       const std::string& path);

// Puts finished files in their places. `data` are the data files in shard
// order. Whenever the process or the machine stops, the prefix holds the old
// bundle, if there was one, or the new one.
absl::Status CommitBundle(FileSystem& files, const std::string& prefix,
                          const std::vector<std::string>& data,
                          const std::string& index, bool sync);

}  // namespace sluice
