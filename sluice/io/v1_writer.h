// Writer of V1 checkpoints, for readers older than 2017: one table that holds
// the values of tensors themselves. docs/formats/checkpoint.md has the layout.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "sluice/base/file.h"
#include "sluice/io/tensor_slice.h"
#include "sluice/proto/bundle.pb.h"
#include "sluice/tensor/tensor.h"

namespace sluice {

// Keeps everything in memory until Finish, which puts the file in its place in
// one step. Thread-compatible.
class V1CheckpointWriter {
 public:
  V1CheckpointWriter(FileSystem& files, std::string path)
      : files_(files), path_(std::move(path)) {}

  // Adds a part of a tensor whose whole has shape `full`; the whole itself is
  // the full slice.
  absl::Status Add(std::string_view name, const Shape& full,
                   const TensorSlice& slice, const Tensor& part);
  absl::Status Finish();

 private:
  FileSystem& files_;
  const std::string path_;
  pb::SavedTensorSlices list_;
  std::map<std::string, int, std::less<>> places_;  // In list_, by name.
  std::map<std::string, std::string> records_;      // By key.
};

}  // namespace sluice
