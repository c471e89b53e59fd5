// BundleWriter: writes a checkpoint in TensorFlow's V2 format, byte for byte.
// docs/formats/checkpoint.md has the layout.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "sluice/base/file.h"
#include "sluice/io/bundle_format.h"
#include "sluice/io/tensor_slice.h"
#include "sluice/tensor/tensor.h"

namespace sluice {

struct BundleOptions {
  // Finish returns when the checkpoint would survive a power cut. Off, it
  // survives the end of the process only.
  bool sync = true;
};

// Writes `<prefix>.index` and `<prefix>.data-00000-of-00001` under temporary
// names; Finish puts them in place, and nothing shows before. The directory of
// the prefix is made if the one above it exists. After an error all further
// calls return it. Thread-compatible; calls block on the disk.
class BundleWriter {
 public:
  BundleWriter(FileSystem& files, std::string prefix,
               BundleOptions options = {});
  // Without Finish, nothing remains.
  ~BundleWriter();
  BundleWriter(const BundleWriter&) = delete;
  BundleWriter& operator=(const BundleWriter&) = delete;

  // Tensors lie in the data file in the order they are added. Large ones go
  // straight from their memory to the file.
  absl::Status Add(std::string_view key, const Tensor& tensor);
  // Adds a part of a tensor whose whole has shape `full`.
  absl::Status AddSlice(std::string_view key, const Shape& full,
                        const TensorSlice& slice, const Tensor& part);
  // Adds numbers whose bytes come piece by piece: Append until they are all
  // there, before anything else is added. `shape_and_slice` is as for SaveV2.
  absl::Status Begin(std::string_view key, std::string_view shape_and_slice,
                     DType dtype, const Shape& shape);
  absl::Status Append(std::string_view bytes);
  absl::Status Finish();

 private:
  // A tensor whose bytes are on their way.
  struct Incoming {
    pb::BundleEntryProto* entry = nullptr;
    int64_t missing = 0;
    uint32_t crc = 0;
  };

  absl::Status Open();
  absl::StatusOr<pb::BundleEntryProto*> NewEntry(std::string key, DType dtype,
                                                 const Shape& shape);
  // The key of a part, which is put on the list of its tensor.
  absl::StatusOr<std::string> KeyOfSlice(std::string_view key,
                                         const Shape& full,
                                         const TensorSlice& slice, DType dtype,
                                         const Shape& part);
  absl::Status DoBegin(std::string_view key, std::string_view shape_and_slice,
                       DType dtype, const Shape& shape);
  absl::Status DoAppend(std::string_view bytes);
  absl::Status AddEntry(std::string key, const Tensor& tensor);
  absl::Status DoFinish();

  FileSystem& files_;
  const std::string prefix_;
  const BundleOptions options_;
  const std::string data_temp_;
  const std::string index_temp_;
  std::unique_ptr<WritableFile> data_;
  int64_t offset_ = 0;
  BundleEntries entries_;
  Incoming incoming_;
  bool finished_ = false;
  absl::Status status_;
};

// Joins the bundles of `prefixes`, the parts of one sharded save, into one:
// their data files become its shards in that order, and their indexes go. With
// `delete_old` the directories they were in go too if nothing else is in them.
absl::Status MergeBundles(FileSystem& files,
                          const std::vector<std::string>& prefixes,
                          const std::string& merged_prefix, bool delete_old,
                          BundleOptions options = {});

}  // namespace sluice
