#include "sluice/io/bundle_writer.h"

#include <algorithm>

#include "sluice/base/coding.h"
#include "sluice/base/crc32c.h"
#include "sluice/base/path.h"
#include "sluice/base/status.h"
#include "sluice/tensor/codec.h"

namespace sluice {
namespace {

// Numbers are summed and written in parts that stay in the cache in between.
constexpr size_t kWritePart = 256 << 10;

absl::Status WriteNumbers(const Tensor& tensor, WritableFile* file,
                          pb::BundleEntryProto* entry) {
  std::string_view rest(static_cast<const char*>(tensor.raw()), tensor.bytes());
  entry->set_size(static_cast<int64_t>(rest.size()));
  uint32_t crc = 0;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, kWritePart);
    crc = Crc32cExtend(crc, part);
    SLUICE_RETURN_IF_ERROR(file->Append(part));
    rest.remove_prefix(part.size());
  }
  entry->set_crc32c(MaskCrc(crc));
  return absl::OkStatus();
}

// All lengths as varints, a checksum of the lengths, all bytes. The checksum
// runs over fixed-size lengths, not over the varints.
absl::Status WriteStrings(const Tensor& tensor, WritableFile* file,
                          pb::BundleEntryProto* entry) {
  std::string lengths, fixed;
  for (const std::string& text : tensor.data<std::string>()) {
    AppendVarint(text.size(), &lengths);
    if (text.size() <= 0xffffffffu) {
      AppendFixed32(static_cast<uint32_t>(text.size()), &fixed);
    } else {
      AppendFixed64(text.size(), &fixed);
    }
  }
  uint32_t crc = Crc32c(fixed);
  std::string checksum;
  AppendFixed32(MaskCrc(crc), &checksum);
  crc = Crc32cExtend(crc, checksum);
  SLUICE_RETURN_IF_ERROR(file->Append(lengths));
  SLUICE_RETURN_IF_ERROR(file->Append(checksum));
  int64_t size = static_cast<int64_t>(lengths.size() + checksum.size());
  for (const std::string& text : tensor.data<std::string>()) {
    crc = Crc32cExtend(crc, text);
    SLUICE_RETURN_IF_ERROR(file->Append(text));
    size += static_cast<int64_t>(text.size());
  }
  entry->set_size(size);
  entry->set_crc32c(MaskCrc(crc));
  return absl::OkStatus();
}

absl::Status BadKey() {
  return InvalidArgument(
      "A tensor in a checkpoint needs a name that does not start with a zero "
      "byte");
}

}  // namespace

BundleWriter::BundleWriter(FileSystem& files, std::string prefix,
                           BundleOptions options)
    : files_(files),
      prefix_(std::move(prefix)),
      options_(options),
      data_temp_(BundleTempName(BundleDataName(prefix_, 0, 1))),
      index_temp_(BundleTempName(BundleIndexName(prefix_))),
      status_(Open()) {}

absl::Status BundleWriter::Open() {
  const std::string dir(DirName(prefix_));
  if (!dir.empty() && !files_.Exists(dir)) {
    const std::string above(DirName(dir));
    if (above.empty() || files_.Exists(above)) {
      SLUICE_RETURN_IF_ERROR(files_.MkDirs(dir));
    }
  }
  SLUICE_ASSIGN_OR_RETURN(data_, files_.NewWritable(data_temp_));
  return absl::OkStatus();
}

BundleWriter::~BundleWriter() {
  if (finished_) return;
  data_.reset();
  // They may not exist, or no longer.
  files_.Delete(data_temp_).IgnoreError();
  files_.Delete(index_temp_).IgnoreError();
}

absl::StatusOr<pb::BundleEntryProto*> BundleWriter::NewEntry(
    std::string key, DType dtype, const Shape& shape) {
  if (dtype != DType::kString && ElementSize(dtype) == 0) {
    return Unimplemented("Tensor '", key, "' has type ", DTypeName(dtype),
                         ", which a checkpoint cannot hold");
  }
  const auto [found, added] = entries_.try_emplace(std::move(key));
  if (!added) return InvalidArgument("Adding duplicate key: ", found->first);
  pb::BundleEntryProto* const entry = &found->second;
  entry->set_dtype(DTypeToProto(dtype));
  ShapeToProto(shape, entry->mutable_shape());
  entry->set_shard_id(0);
  entry->set_offset(offset_);
  return entry;
}

absl::Status BundleWriter::AddEntry(std::string key, const Tensor& tensor) {
  if (!tensor.initialized()) {
    return FailedPrecondition("Tensor '", key,
                              "' has no value to put into a checkpoint");
  }
  SLUICE_ASSIGN_OR_RETURN(
      pb::BundleEntryProto * entry,
      NewEntry(std::move(key), tensor.dtype(), tensor.shape()));
  if (tensor.dtype() == DType::kString) {
    SLUICE_RETURN_IF_ERROR(WriteStrings(tensor, data_.get(), entry));
  } else {
    SLUICE_RETURN_IF_ERROR(WriteNumbers(tensor, data_.get(), entry));
  }
  offset_ += entry->size();
  return absl::OkStatus();
}

absl::Status BundleWriter::Add(std::string_view key, const Tensor& tensor) {
  if (!status_.ok()) return status_;
  status_ = IsTensorKey(key) ? AddEntry(std::string(key), tensor) : BadKey();
  return status_;
}

absl::Status BundleWriter::AddSlice(std::string_view key, const Shape& full,
                                    const TensorSlice& slice,
                                    const Tensor& part) {
  if (!status_.ok()) return status_;
  absl::StatusOr<std::string> stored =
      KeyOfSlice(key, full, slice, part.dtype(), part.shape());
  status_ = stored.ok() ? AddEntry(*std::move(stored), part) : stored.status();
  return status_;
}

absl::StatusOr<std::string> BundleWriter::KeyOfSlice(std::string_view key,
                                                     const Shape& full,
                                                     const TensorSlice& slice,
                                                     DType dtype,
                                                     const Shape& part) {
  SLUICE_ASSIGN_OR_RETURN(const Shape shape, slice.ShapeWithin(full));
  if (shape != part) {
    return InvalidArgument("Slice ", slice.DebugString(), " of ", key,
                           " has shape ", shape.DebugString(),
                           ", its tensor has ", part.DebugString());
  }
  if (!IsTensorKey(key)) return BadKey();
  if (slice.Covers(full)) return std::string(key);
  const auto [found, added] = entries_.try_emplace(std::string(key));
  pb::BundleEntryProto& entry = found->second;
  if (added) {
    entry.set_dtype(DTypeToProto(dtype));
    ShapeToProto(full, entry.mutable_shape());
  } else if (entry.slices().empty()) {
    return InvalidArgument("Adding duplicate key: ", key);
  } else {
    SLUICE_ASSIGN_OR_RETURN(const Shape before, ShapeFromProto(entry.shape()));
    if (before != full || DTypeFromProto(entry.dtype()) != dtype) {
      return InvalidArgument("Slices of ", key, " disagree: ",
                             DTypeName(DTypeFromProto(entry.dtype())), " ",
                             before.DebugString(), " and ", DTypeName(dtype),
                             " ", full.DebugString());
    }
  }
  slice.ToProto(entry.add_slices());
  return SliceKey(key, slice);
}

absl::Status BundleWriter::Begin(std::string_view key,
                                 std::string_view shape_and_slice, DType dtype,
                                 const Shape& shape) {
  if (status_.ok()) status_ = DoBegin(key, shape_and_slice, dtype, shape);
  return status_;
}

absl::Status BundleWriter::DoBegin(std::string_view key,
                                   std::string_view shape_and_slice,
                                   DType dtype, const Shape& shape) {
  if (incoming_.missing > 0) {
    return FailedPrecondition("Bytes of the tensor before '", key,
                              "' are missing");
  }
  if (!IsTensorKey(key)) return BadKey();
  if (ElementSize(dtype) == 0) {
    return InvalidArgument("Tensor '", key, "' of type ", DTypeName(dtype),
                           " cannot come in pieces");
  }
  std::string stored(key);
  if (!shape_and_slice.empty()) {
    SLUICE_ASSIGN_OR_RETURN(const ShapeAndSlice at,
                            ParseShapeAndSlice(shape_and_slice));
    SLUICE_ASSIGN_OR_RETURN(stored,
                            KeyOfSlice(key, at.full, at.slice, dtype, shape));
  }
  SLUICE_ASSIGN_OR_RETURN(incoming_.entry,
                          NewEntry(std::move(stored), dtype, shape));
  incoming_.missing = shape.size() * static_cast<int64_t>(ElementSize(dtype));
  incoming_.crc = 0;
  incoming_.entry->set_size(incoming_.missing);
  incoming_.entry->set_crc32c(MaskCrc(0));
  return absl::OkStatus();
}

absl::Status BundleWriter::Append(std::string_view bytes) {
  if (status_.ok()) status_ = DoAppend(bytes);
  return status_;
}

absl::Status BundleWriter::DoAppend(std::string_view bytes) {
  if (static_cast<int64_t>(bytes.size()) > incoming_.missing) {
    return InvalidArgument(bytes.size(), " bytes come for a tensor of which ",
                           incoming_.missing, " are missing");
  }
  if (bytes.empty()) return absl::OkStatus();
  incoming_.crc = Crc32cExtend(incoming_.crc, bytes);
  incoming_.missing -= static_cast<int64_t>(bytes.size());
  offset_ += static_cast<int64_t>(bytes.size());
  incoming_.entry->set_crc32c(MaskCrc(incoming_.crc));
  return data_->Append(bytes);
}

absl::Status BundleWriter::Finish() {
  if (finished_) return FailedPrecondition("The bundle is finished already");
  if (status_.ok()) status_ = DoFinish();
  finished_ = status_.ok();
  return status_;
}

absl::Status BundleWriter::DoFinish() {
  if (incoming_.missing > 0) {
    return FailedPrecondition("Bytes of the last tensor are missing");
  }
  // The index first: the last of the data are on their way to the disk.
  SLUICE_RETURN_IF_ERROR(
      WriteBundleIndex(files_, index_temp_, 1, entries_, options_.sync));
  if (options_.sync) SLUICE_RETURN_IF_ERROR(data_->Sync());
  SLUICE_RETURN_IF_ERROR(data_->Close());
  return CommitBundle(files_, prefix_, {data_temp_}, index_temp_,
                      options_.sync);
}

}  // namespace sluice
