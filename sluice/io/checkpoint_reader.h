// CheckpointReader: what is in a checkpoint, whatever its format.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/base/file.h"
#include "sluice/base/mutex.h"
#include "sluice/io/tensor_slice.h"
#include "sluice/tensor/tensor.h"

namespace sluice {

struct CheckpointTensor {
  std::string name;
  DType dtype = DType::kInvalid;
  Shape shape;  // Of the whole, also when it was saved in slices.
};

// Immutable, thread-safe. Calls block on the disk. A tensor that is not there
// is NOT_FOUND "Key <name> not found in checkpoint"; bytes that do not match
// their checksum are DATA_LOSS.
class CheckpointReader {
 public:
  // A V2 bundle if `<prefix>.index` exists, else a V1 file of that name or
  // pattern.
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(
      FileSystem& files, const std::string& prefix);
  virtual ~CheckpointReader() = default;

  virtual absl::StatusOr<CheckpointTensor> Find(std::string_view name) = 0;
  // All tensors, sorted by name.
  virtual absl::StatusOr<std::vector<CheckpointTensor>> List() = 0;
  // A tensor as a whole, put together if it was saved in slices.
  virtual absl::StatusOr<Tensor> Lookup(std::string_view name) = 0;
  // A part of one. It does not matter in which slices it was saved, if they
  // cover the part.
  virtual absl::StatusOr<Tensor> LookupSlice(std::string_view name,
                                             const TensorSlice& slice) = 0;

  // Where the bytes of a tensor lie as they are in memory, so that they can be
  // read in pieces; nothing if it can only be read as a whole.
  struct Place {
    int shard = 0;
    int64_t offset = 0;
    int64_t size = 0;
    uint32_t masked_crc = 0;
  };
  virtual std::optional<Place> Locate(std::string_view) { return std::nullopt; }
  // `n` bytes from `offset` of the place on. The caller checks the sum.
  virtual absl::Status ReadPiece(const Place& place, int64_t offset, size_t n,
                                 char* out);

  bool Contains(std::string_view name) { return Find(name).ok(); }
  // What RestoreV2 does for one tensor: `shape_and_slice` is "" for all of it
  // or "100 20 0,50:0,20" for a part, and the type and shape must be as said.
  // A variable of a TensorFlow 2 object checkpoint is found by its name too.
  absl::StatusOr<Tensor> Restore(std::string_view name,
                                 std::string_view shape_and_slice, DType dtype);

  // Whether TensorFlow 2 wrote it as a graph of objects (tf.train.Checkpoint).
  bool ObjectBased() { return Contains(kObjectGraphKey); }
  // The key under which a tensor called `name` is stored: that name, unless
  // only a variable of an object checkpoint has it.
  absl::StatusOr<std::string> KeyOf(std::string_view name);
  // The keys of an object checkpoint by the names its variables had; empty for
  // other checkpoints.
  using KeysByName = std::map<std::string, std::string, std::less<>>;
  absl::StatusOr<KeysByName> ObjectKeys();

 private:
  static constexpr char kObjectGraphKey[] = "_CHECKPOINTABLE_OBJECT_GRAPH";

  Mutex object_mu_;
  std::optional<KeysByName> object_keys_ SLUICE_GUARDED_BY(object_mu_);
};

}  // namespace sluice
