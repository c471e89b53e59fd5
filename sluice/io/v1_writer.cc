#include "sluice/io/v1_writer.h"

#include "sluice/base/path.h"
#include "sluice/base/status.h"
#include "sluice/io/bundle_format.h"
#include "sluice/io/table.h"
#include "sluice/tensor/codec.h"

namespace sluice {
namespace {

// The version of the format.
constexpr int kVersion = 1;
// A record is one message, and messages end at 2 GiB. A number takes at most
// ten bytes in it.
constexpr int64_t kLargestRecord = int64_t{1} << 31;
constexpr int64_t kBytesPerNumber = 10;

absl::Status CheckSize(std::string_view name, const Tensor& part) {
  int64_t bytes = part.size() * kBytesPerNumber;
  if (part.dtype() == DType::kString) {
    for (const std::string& text : part.data<std::string>()) {
      bytes += static_cast<int64_t>(text.size());
    }
  }
  if (bytes < kLargestRecord) return absl::OkStatus();
  return InvalidArgument(
      "Tensor slice is too large to serialize (conservative "
      "estimate: ",
      bytes, " bytes): ", name, ". The V2 format has no such limit.");
}

absl::Status WriteTable(FileSystem& files, const std::string& path,
                        const std::string& list,
                        const std::map<std::string, std::string>& records) {
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                          files.NewWritable(path));
  TableBuilder builder(file.get());
  SLUICE_RETURN_IF_ERROR(builder.Add("", list));
  for (const auto& [key, record] : records) {
    SLUICE_RETURN_IF_ERROR(builder.Add(key, record));
  }
  SLUICE_RETURN_IF_ERROR(builder.Finish());
  SLUICE_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

}  // namespace

absl::Status V1CheckpointWriter::Add(std::string_view name, const Shape& full,
                                     const TensorSlice& slice,
                                     const Tensor& part) {
  if (!part.initialized()) {
    return FailedPrecondition("Tensor '", name,
                              "' has no value to put into a checkpoint");
  }
  SLUICE_ASSIGN_OR_RETURN(const Shape shape, slice.ShapeWithin(full));
  if (shape != part.shape()) {
    return InvalidArgument("Slice ", slice.DebugString(), " of ", name,
                           " has shape ", shape.DebugString(),
                           ", its tensor has ", part.shape().DebugString());
  }
  if (part.dtype() != DType::kString && ElementSize(part.dtype()) == 0) {
    return Unimplemented("Tensor '", name, "' has type ",
                         DTypeName(part.dtype()),
                         ", which a checkpoint cannot hold");
  }
  SLUICE_RETURN_IF_ERROR(CheckSize(name, part));
  const auto [place, added] =
      places_.try_emplace(std::string(name), list_.meta().tensor_size());
  pb::SavedSliceMeta& meta =
      added ? *list_.mutable_meta()->add_tensor()
            : *list_.mutable_meta()->mutable_tensor(place->second);
  if (added) {
    meta.set_name(std::string(name));
    ShapeToProto(full, meta.mutable_shape());
    meta.set_type(DTypeToProto(part.dtype()));
  } else {
    SLUICE_ASSIGN_OR_RETURN(const Shape before, ShapeFromProto(meta.shape()));
    if (before != full || DTypeFromProto(meta.type()) != part.dtype()) {
      return InvalidArgument("Slices of ", name, " disagree: ",
                             DTypeName(DTypeFromProto(meta.type())), " ",
                             before.DebugString(), " and ",
                             DTypeName(part.dtype()), " ", full.DebugString());
    }
  }
  pb::SavedTensorSlices record;
  record.mutable_data()->set_name(std::string(name));
  slice.ToProto(record.mutable_data()->mutable_slice());
  AppendTypedValues(part, record.mutable_data()->mutable_data());
  if (!records_.try_emplace(SliceKey(name, slice), record.SerializeAsString())
           .second) {
    return InvalidArgument("Adding duplicate key: ", name, " ",
                           slice.DebugString());
  }
  slice.ToProto(meta.add_slice());
  return absl::OkStatus();
}

absl::Status V1CheckpointWriter::Finish() {
  list_.mutable_meta()->mutable_versions()->set_producer(kVersion);
  const std::string temporary = BundleTempName(path_);
  absl::Status status =
      WriteTable(files_, temporary, list_.SerializeAsString(), records_);
  if (status.ok()) status = files_.Rename(temporary, path_);
  if (!status.ok()) {
    files_.Delete(temporary).IgnoreError();  // The first error says more.
    return status;
  }
  return files_.SyncDir(std::string(DirName(path_)));
}

}  // namespace sluice
