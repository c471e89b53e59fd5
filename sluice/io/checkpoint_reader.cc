#include "sluice/io/checkpoint_reader.h"

#include "sluice/base/path.h"
#include "sluice/base/status.h"
#include "sluice/io/bundle_reader.h"
#include "sluice/io/v1_checkpoint.h"

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

absl::StatusOr<Tensor> CheckpointReader::Restore(
    std::string_view name, std::string_view shape_and_slice, DType dtype) {
  SLUICE_ASSIGN_OR_RETURN(const CheckpointTensor stored, Find(name));
  if (stored.dtype != dtype) {
    return InvalidArgument("tensor_name = ", name, "; expected dtype ",
                           DTypeName(dtype), " does not equal original dtype ",
                           DTypeName(stored.dtype));
  }
  if (shape_and_slice.empty()) return Lookup(name);
  SLUICE_ASSIGN_OR_RETURN(const ShapeAndSlice wanted,
                          ParseShapeAndSlice(shape_and_slice));
  if (wanted.full != stored.shape) {
    return InvalidArgument("tensor_name = ", name,
                           "; shape in shape_and_slice spec ",
                           wanted.full.DebugString(),
                           " does not match the shape stored in checkpoint: ",
                           stored.shape.DebugString());
  }
  return LookupSlice(name, wanted.slice);
}

}  // namespace sluice
