#include "sluice/io/checkpoint_reader.h"

#include "sluice/base/logging.h"
#include "sluice/base/path.h"
#include "sluice/base/status.h"
#include "sluice/io/bundle_reader.h"
#include "sluice/io/v1_checkpoint.h"
#include "sluice/proto/saved_object.pb.h"

namespace sluice {

absl::StatusOr<std::unique_ptr<CheckpointReader>> CheckpointReader::Open(
    FileSystem& files, const std::string& prefix) {
  if (files.Exists(BundleIndexName(prefix))) {
    return BundleReader::Open(files, prefix);
  }
  const std::string dir(DirName(prefix));
  absl::StatusOr<std::vector<std::string>> paths = files.Glob(prefix);
  if (paths.ok() && paths->empty() && !dir.empty()) {
    const absl::StatusOr<FileStat> stat = files.Stat(dir);
    if (!stat.ok()) paths = stat.status();
  }
  constexpr std::string_view kFailed =
      "Unsuccessful TensorSliceReader constructor: ";
  if (absl::IsPermissionDenied(paths.status())) return paths.status();
  if (!paths.ok()) {
    return InvalidArgument(kFailed, "Failed to get matching files on ", prefix,
                           ": ", StatusText(paths.status()));
  }
  if (paths->empty()) {
    return NotFound(kFailed, "Failed to find any matching files for ", prefix);
  }
  return V1CheckpointReader::Open(files, *paths);
}

absl::Status CheckpointReader::ReadPiece(const Place&, int64_t, size_t, char*) {
  return Unimplemented("This checkpoint cannot be read in pieces");
}

absl::StatusOr<CheckpointReader::KeysByName> CheckpointReader::ObjectKeys() {
  if (!ObjectBased()) return KeysByName();
  SLUICE_ASSIGN_OR_RETURN(const Tensor bytes, Lookup(kObjectGraphKey));
  pb::TrackableObjectGraph graph;
  if (bytes.dtype() != DType::kString || bytes.size() != 1 ||
      !graph.ParseFromString(bytes.data<std::string>()[0])) {
    return DataLoss("The object graph of the checkpoint does not parse");
  }
  KeysByName keys;
  for (const auto& node : graph.nodes()) {
    for (const auto& tensor : node.attributes()) {
      keys[tensor.full_name()] = tensor.checkpoint_key();
    }
  }
  return keys;
}

absl::StatusOr<std::string> CheckpointReader::KeyOf(std::string_view name) {
  absl::StatusOr<CheckpointTensor> stored = Find(name);
  if (stored.ok()) return std::string(name);
  MutexLock lock(object_mu_);
  if (!object_keys_.has_value()) {
    SLUICE_ASSIGN_OR_RETURN(object_keys_, ObjectKeys());
    if (!object_keys_->empty()) {
      SLUICE_LOG(WARNING)
          << "Restoring an object-based checkpoint using a name-based saver. "
             "Variables are found by the names they had when it was written.";
    }
  }
  const auto found = object_keys_->find(name);
  if (found == object_keys_->end()) return stored.status();
  return found->second;
}

absl::StatusOr<Tensor> CheckpointReader::Restore(
    std::string_view name, std::string_view shape_and_slice, DType dtype) {
  std::string key(name);
  absl::StatusOr<CheckpointTensor> found = Find(key);
  if (absl::IsNotFound(found.status())) {
    SLUICE_ASSIGN_OR_RETURN(key, KeyOf(name));
    found = Find(key);
  }
  SLUICE_RETURN_IF_ERROR(found.status());
  const CheckpointTensor& stored = *found;
  if (stored.dtype != dtype) {
    return InvalidArgument("tensor_name = ", name, "; expected dtype ",
                           DTypeName(dtype), " does not equal original dtype ",
                           DTypeName(stored.dtype));
  }
  if (shape_and_slice.empty()) return Lookup(key);
  SLUICE_ASSIGN_OR_RETURN(const ShapeAndSlice wanted,
                          ParseShapeAndSlice(shape_and_slice));
  if (wanted.full != stored.shape) {
    return InvalidArgument("tensor_name = ", name,
                           "; shape in shape_and_slice spec ",
                           wanted.full.DebugString(),
                           " does not match the shape stored in checkpoint: ",
                           stored.shape.DebugString());
  }
  return LookupSlice(key, wanted.slice);
}

}  // namespace sluice
