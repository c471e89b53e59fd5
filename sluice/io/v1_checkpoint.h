// Reader of V1 checkpoints, which TensorFlow wrote before 2017: tables that
// hold the values of tensors themselves.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/io/checkpoint_reader.h"
#include "sluice/io/table.h"

namespace sluice {

// Immutable, thread-safe.
class V1CheckpointReader : public CheckpointReader {
 public:
  // `paths` are the shards, in any order.
  static absl::StatusOr<std::unique_ptr<V1CheckpointReader>> Open(
      FileSystem& files, const std::vector<std::string>& paths);

  absl::StatusOr<CheckpointTensor> Find(std::string_view name) override;
  absl::StatusOr<std::vector<CheckpointTensor>> List() override;
  absl::StatusOr<Tensor> Lookup(std::string_view name) override;
  absl::StatusOr<Tensor> LookupSlice(std::string_view name,
                                     const TensorSlice& slice) override;

 private:
  struct Stored {
    DType dtype = DType::kInvalid;
    Shape shape;
    std::vector<TensorSlice> slices;
    std::vector<const Table*> tables;  // Where each slice is.
  };

  V1CheckpointReader() = default;
  absl::Status AddTable(FileSystem& files, const std::string& path);
  absl::Status AddTensors(const Table* table, std::string_view meta,
                          const std::string& path);
  absl::StatusOr<Tensor> ReadSlice(std::string_view name, const Stored& stored,
                                   size_t i) const;

  std::vector<std::unique_ptr<Table>> tables_;
  std::map<std::string, Stored, std::less<>> tensors_;
};

}  // namespace sluice
