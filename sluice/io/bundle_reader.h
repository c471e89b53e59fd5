// BundleReader: reads a checkpoint in TensorFlow's V2 format.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/mutex.h"
#include "sluice/io/bundle_format.h"
#include "sluice/io/checkpoint_reader.h"

namespace sluice {

// The index is checked when it is opened, data when they are read. Large
// tensors are read in parts on the compute pool. Thread-safe.
class BundleReader : public CheckpointReader {
 public:
  static absl::StatusOr<std::unique_ptr<BundleReader>> Open(
      FileSystem& files, const std::string& prefix,
      bool verify_checksums = true);

  absl::StatusOr<CheckpointTensor> Find(std::string_view name) override;
  absl::StatusOr<std::vector<CheckpointTensor>> List() override;
  absl::StatusOr<Tensor> Lookup(std::string_view name) override;
  absl::StatusOr<Tensor> LookupSlice(std::string_view name,
                                     const TensorSlice& slice) override;
  std::optional<Place> Locate(std::string_view name) override;
  absl::Status ReadPiece(const Place& place, int64_t offset, size_t n,
                         char* out) override;
  // Lookup into memory that is there already: `target` must have the stored
  // type, which has a fixed size, and shape, and nobody else may use it. After
  // an error its elements are undefined.
  absl::Status ReadInto(std::string_view name, Tensor* target);

  int num_shards() const { return num_shards_; }

 private:
  struct Entry;

  BundleReader(FileSystem& files, std::string prefix, bool verify_checksums)
      : files_(files), prefix_(std::move(prefix)), verify_(verify_checksums) {}
  absl::Status ReadIndex();
  absl::StatusOr<Entry> FindEntry(std::string_view key,
                                  std::string_view name) const;
  absl::StatusOr<Entry> FindTensor(std::string_view name) const;
  absl::StatusOr<std::shared_ptr<const RandomAccessFile>> Shard(int shard);
  absl::Status ReadBytes(const Entry& entry, char* out, uint32_t* crc);
  absl::Status ReadNumbers(const Entry& entry, Tensor* tensor);
  absl::StatusOr<Tensor> ReadStrings(const Entry& entry);
  absl::StatusOr<Tensor> ReadTensor(const Entry& entry);
  absl::StatusOr<Tensor> ReadWhole(const Entry& entry);
  absl::Status CheckCrc(const Entry& entry, uint32_t crc) const;

  FileSystem& files_;
  const std::string prefix_;
  const bool verify_;
  std::unique_ptr<Table> table_;  // Constant after Open, like the next two.
  int num_shards_ = 0;
  bool big_endian_ = false;

  Mutex mu_;
  std::map<int, std::shared_ptr<const RandomAccessFile>> shards_
      SLUICE_GUARDED_BY(mu_);
  // The last tensor that was read whole to give slices of it: its other slices
  // are asked for next.
  std::string last_whole_name_ SLUICE_GUARDED_BY(mu_);
  Tensor last_whole_ SLUICE_GUARDED_BY(mu_);
};

}  // namespace sluice
