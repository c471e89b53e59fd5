#include "sluice/io/v1_checkpoint.h"

#include "sluice/base/status.h"
#include "sluice/io/slice_assembly.h"
#include "sluice/proto/bundle.pb.h"
#include "sluice/tensor/codec.h"

namespace sluice {

absl::StatusOr<std::unique_ptr<V1CheckpointReader>> V1CheckpointReader::Open(
    FileSystem& files, const std::vector<std::string>& paths) {
  std::unique_ptr<V1CheckpointReader> reader(new V1CheckpointReader);
  for (const std::string& path : paths) {
    SLUICE_RETURN_IF_ERROR(reader->AddTable(files, path));
  }
  return reader;
}

absl::Status V1CheckpointReader::AddTable(FileSystem& files,
                                          const std::string& path) {
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> file =
      files.NewRandomAccess(path);
  absl::StatusOr<std::unique_ptr<Table>> table =
      file.ok() ? Table::Open(*std::move(file)) : file.status();
  if (!table.ok()) {
    return WithMessage(
        table.status(),
        StrCat("Unable to open table file ", path, ": ",
               StatusText(table.status()),
               ": perhaps your file is in a different file format and you need "
               "to use a different restore operator?"));
  }
  SLUICE_ASSIGN_OR_RETURN(const std::optional<std::string> meta,
                          (*table)->Find(""));
  if (!meta.has_value()) {
    return DataLoss(
        "Failed to find the saved tensor slices at the beginning "
        "of the checkpoint file: ",
        path);
  }
  tables_.push_back(*std::move(table));
  return AddTensors(tables_.back().get(), *meta, path);
}

absl::Status V1CheckpointReader::AddTensors(const Table* table,
                                            std::string_view meta,
                                            const std::string& path) {
  pb::SavedTensorSlices record;
  if (!record.ParseFromArray(meta.data(), static_cast<int>(meta.size()))) {
    return DataLoss("The list of tensors in ", path, " does not parse");
  }
  for (const pb::SavedSliceMeta& saved : record.meta().tensor()) {
    const DType dtype = DTypeFromProto(saved.type());
    SLUICE_ASSIGN_OR_RETURN(Shape shape, ShapeFromProto(saved.shape()));
    Stored& stored = tensors_[saved.name()];
    if (stored.dtype == DType::kInvalid) {
      stored.dtype = dtype;
      stored.shape = std::move(shape);
    } else if (stored.dtype != dtype || stored.shape != shape) {
      return DataLoss("Shards of a V1 checkpoint disagree on tensor ",
                      saved.name());
    }
    for (const pb::TensorSliceProto& proto : saved.slice()) {
      SLUICE_ASSIGN_OR_RETURN(TensorSlice slice, TensorSlice::FromProto(proto));
      stored.slices.push_back(std::move(slice));
      stored.tables.push_back(table);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<CheckpointTensor> V1CheckpointReader::Find(
    std::string_view name) {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    return NotFound("Key ", name, " not found in checkpoint");
  }
  return CheckpointTensor{found->first, found->second.dtype,
                          found->second.shape};
}

absl::StatusOr<std::vector<CheckpointTensor>> V1CheckpointReader::List() {
  std::vector<CheckpointTensor> tensors;
  for (const auto& [name, stored] : tensors_) {
    tensors.push_back({name, stored.dtype, stored.shape});
  }
  return tensors;
}

absl::StatusOr<Tensor> V1CheckpointReader::ReadSlice(std::string_view name,
                                                     const Stored& stored,
                                                     size_t i) const {
  SLUICE_ASSIGN_OR_RETURN(
      const std::optional<std::string> bytes,
      stored.tables[i]->Find(SliceKey(name, stored.slices[i])));
  pb::SavedTensorSlices record;
  if (!bytes.has_value() || !record.ParseFromString(*bytes)) {
    return DataLoss("Slice ", stored.slices[i].DebugString(), " of tensor ",
                    name, " is missing or does not parse");
  }
  // The record holds values only; type and shape stand in the list of tensors.
  pb::TensorProto& values = *record.mutable_data()->mutable_data();
  SLUICE_ASSIGN_OR_RETURN(const Shape shape,
                          stored.slices[i].ShapeWithin(stored.shape));
  values.set_dtype(DTypeToProto(stored.dtype));
  ShapeToProto(shape, values.mutable_tensor_shape());
  return TensorFromProto(std::move(values));
}

absl::StatusOr<Tensor> V1CheckpointReader::Lookup(std::string_view name) {
  SLUICE_ASSIGN_OR_RETURN(const CheckpointTensor tensor, Find(name));
  return LookupSlice(name, TensorSlice::Full(tensor.shape.rank()));
}

absl::StatusOr<Tensor> V1CheckpointReader::LookupSlice(
    std::string_view name, const TensorSlice& slice) {
  SLUICE_RETURN_IF_ERROR(Find(name).status());
  const Stored& stored = tensors_.find(name)->second;
  return AssembleSlices(name, stored.dtype, stored.shape, slice, stored.slices,
                        [&](size_t i) { return ReadSlice(name, stored, i); });
}

}  // namespace sluice
