#include "sluice/io/bundle_format.h"

#include "absl/strings/str_format.h"
#include "sluice/base/random.h"
#include "sluice/base/status.h"
#include "sluice/tensor/dtype.h"

namespace sluice {
namespace {

// The version of the format that we write and read.
constexpr int kBundleVersion = 1;
// What five digits can name. More is no header but garbage.
constexpr int kMaxShards = 100'000;

}  // namespace

std::string BundleIndexName(std::string_view prefix) {
  return StrCat(prefix, ".index");
}

std::string BundleDataName(std::string_view prefix, int shard, int num_shards) {
  return absl::StrFormat("%s.data-%05d-of-%05d", ToAbsl(prefix), shard,
                         num_shards);
}

std::string BundleTempName(std::string_view path) {
  return StrCat(path, ".tempstate", RandomId());
}

absl::Status WriteBundleIndex(FileSystem& files, const std::string& path,
                              int num_shards, const BundleEntries& entries,
                              bool sync) {
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                          files.NewWritable(path));
  TableBuilder builder(file.get());
  pb::BundleHeaderProto header;
  header.set_num_shards(num_shards);
  header.mutable_version()->set_producer(kBundleVersion);
  SLUICE_RETURN_IF_ERROR(builder.Add("", header.SerializeAsString()));
  for (const auto& [key, entry] : entries) {
    SLUICE_RETURN_IF_ERROR(builder.Add(key, entry.SerializeAsString()));
  }
  SLUICE_RETURN_IF_ERROR(builder.Finish());
  if (sync) SLUICE_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

absl::StatusOr<pb::BundleHeaderProto> ReadBundleHeader(
    const Table& table, const std::string& path) {
  const auto unreadable = [&](std::string_view where, std::string_view why) {
    return DataLoss("Unable to read file (", path,
                    "). Perhaps the file is corrupt or was produced by a newer "
                    "version of TensorFlow with format changes (",
                    where, "): ", why);
  };
  const absl::StatusOr<std::optional<std::string>> bytes = table.Find("");
  if (!bytes.ok()) {
    return unreadable("failed to seek to header entry",
                      ToStd(bytes.status().message()));
  }
  pb::BundleHeaderProto header;
  if (!bytes->has_value()) {
    return unreadable("failed to seek to header entry", "there is none");
  }
  if (!header.ParseFromString(**bytes) || header.num_shards() < 1 ||
      header.num_shards() > kMaxShards) {
    return unreadable("unable to parse header", "it holds something else");
  }
  if (header.version().min_consumer() > kBundleVersion) {
    return InvalidArgument("Checkpoint ", path, " needs a reader of version ",
                           header.version().min_consumer(),
                           " or newer; this is ", kBundleVersion);
  }
  return header;
}

absl::StatusOr<BundleIndex> ReadBundleIndex(FileSystem& files,
                                            const std::string& prefix) {
  const std::string path = BundleIndexName(prefix);
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file,
                          files.NewRandomAccess(path));
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<Table> table,
                          Table::Open(std::move(file)));
  SLUICE_ASSIGN_OR_RETURN(const pb::BundleHeaderProto header,
                          ReadBundleHeader(*table, path));
  BundleIndex index{.num_shards = header.num_shards(), .entries = {}};
  absl::Status status;
  SLUICE_RETURN_IF_ERROR(table->Scan("", [&](std::string_view key,
                                             std::string_view value) {
    if (key.empty()) return true;
    pb::BundleEntryProto entry;
    if (!entry.ParseFromArray(value.data(), static_cast<int>(value.size()))) {
      status = DataLoss("Entry of '", key, "' in ", path, " does not parse");
      return false;
    }
    index.entries.emplace(key, std::move(entry));
    return true;
  }));
  SLUICE_RETURN_IF_ERROR(status);
  return index;
}

}  // namespace sluice
