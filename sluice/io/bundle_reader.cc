#include "sluice/io/bundle_reader.h"

#include <algorithm>

#include "sluice/base/coding.h"
#include "sluice/base/crc32c.h"
#include "sluice/base/status.h"
#include "sluice/base/thread_pool.h"
#include "sluice/io/read_ahead.h"
#include "sluice/io/slice_assembly.h"
#include "sluice/tensor/codec.h"

namespace sluice {

struct BundleReader::Entry {
  std::string name;
  DType dtype = DType::kInvalid;
  Shape shape;
  int shard = 0;
  int64_t offset = 0;
  int64_t size = 0;
  uint32_t masked_crc = 0;
  std::vector<TensorSlice> slices;
};

namespace {

// Parts that threads read and sum on their own; a thread is not worth waking
// for less than a few of them. With what alignment adds, one is a transfer of
// 2 MiB from the disk.
constexpr int64_t kReadPart = (2 << 20) - (4 << 10);

// Swaps the bytes of numbers from a machine of the other kind.
void SwapBytes(Tensor* tensor) {
  const size_t unit =
      ElementSize(tensor->dtype()) / (IsComplex(tensor->dtype()) ? 2 : 1);
  char* const data = static_cast<char*>(tensor->mutable_raw());
  for (size_t i = 0; i < tensor->bytes(); i += unit) {
    std::reverse(data + i, data + i + unit);
  }
}

// Any other byte in a C++ bool is undefined behaviour.
void NormaliseBools(Tensor* tensor) {
  uint8_t* const data = static_cast<uint8_t*>(tensor->mutable_raw());
  for (size_t i = 0; i < tensor->bytes(); ++i) data[i] = data[i] != 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BundleReader>> BundleReader::Open(
    FileSystem& files, const std::string& prefix, bool verify_checksums) {
  std::unique_ptr<BundleReader> reader(
      new BundleReader(files, prefix, verify_checksums));
  SLUICE_RETURN_IF_ERROR(reader->ReadIndex());
  return reader;
}

absl::Status BundleReader::ReadIndex() {
  const std::string path = BundleIndexName(prefix_);
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file,
                          files_.NewRandomAccess(path));
  absl::StatusOr<std::unique_ptr<Table>> table =
      Table::Open(std::move(file), verify_);
  if (!table.ok()) {
    return WithMessage(table.status(), StrCat(ToStd(table.status().message()),
                                              "\nThe index is ", path));
  }
  table_ = *std::move(table);
  SLUICE_ASSIGN_OR_RETURN(const pb::BundleHeaderProto header,
                          ReadBundleHeader(*table_, path));
  num_shards_ = header.num_shards();
  big_endian_ = header.endianness() == pb::BundleHeaderProto::BIG;
  return absl::OkStatus();
}

absl::StatusOr<BundleReader::Entry> BundleReader::FindEntry(
    std::string_view key, std::string_view name) const {
  SLUICE_ASSIGN_OR_RETURN(const std::optional<std::string> bytes,
                          table_->Find(key));
  if (!bytes.has_value()) {
    return NotFound("Key ", name, " not found in checkpoint");
  }
  pb::BundleEntryProto proto;
  if (!proto.ParseFromString(*bytes)) {
    return DataLoss("Entry for key ", name, " not parseable.");
  }
  Entry entry{.name = std::string(name),
              .dtype = DTypeFromProto(proto.dtype()),
              .shape = {},
              .shard = proto.shard_id(),
              .offset = proto.offset(),
              .size = proto.size(),
              .masked_crc = proto.crc32c(),
              .slices = {}};
  SLUICE_ASSIGN_OR_RETURN(entry.shape, ShapeFromProto(proto.shape()));
  if (!IsKnown(entry.dtype) || IsRef(entry.dtype) || entry.shard < 0 ||
      entry.shard >= num_shards_ || entry.offset < 0 || entry.size < 0) {
    return DataLoss("Entry for key ", name,
                    " makes no sense: ", proto.ShortDebugString());
  }
  for (const pb::TensorSliceProto& slice : proto.slices()) {
    SLUICE_ASSIGN_OR_RETURN(TensorSlice parsed, TensorSlice::FromProto(slice));
    entry.slices.push_back(std::move(parsed));
  }
  return entry;
}

absl::StatusOr<BundleReader::Entry> BundleReader::FindTensor(
    std::string_view name) const {
  if (IsTensorKey(name)) return FindEntry(name, name);
  return NotFound("Key ", name, " not found in checkpoint");
}

absl::StatusOr<std::shared_ptr<const RandomAccessFile>> BundleReader::Shard(
    int shard) {
  MutexLock lock(mu_);
  std::shared_ptr<const RandomAccessFile>& file = shards_[shard];
  if (file == nullptr) {
    SLUICE_ASSIGN_OR_RETURN(
        std::unique_ptr<RandomAccessFile> opened,
        files_.NewRandomAccess(BundleDataName(prefix_, shard, num_shards_)));
    file = WithReadAhead(std::move(opened));
  }
  return file;
}

absl::Status BundleReader::CheckCrc(const Entry& entry, uint32_t crc) const {
  if (!verify_ || MaskCrc(crc) == entry.masked_crc) return absl::OkStatus();
  return DataLoss(
      "Checksum does not match: stored ", UnmaskCrc(entry.masked_crc),
      " vs. calculated on the restored bytes ", crc, "\nTensor ", entry.name,
      " at offset ", entry.offset, " of ",
      BundleDataName(prefix_, entry.shard, num_shards_), " is damaged");
}

// Reads the entry's bytes and sums them.
absl::Status BundleReader::ReadBytes(const Entry& entry, char* out,
                                     uint32_t* crc) {
  SLUICE_ASSIGN_OR_RETURN(const std::shared_ptr<const RandomAccessFile> file,
                          Shard(entry.shard));
  const int64_t parts =
      std::max<int64_t>(1, (entry.size + kReadPart - 1) / kReadPart);
  std::vector<uint32_t> crcs(parts);
  std::vector<absl::Status> results(parts);
  const auto read = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      char* const part = out + i * kReadPart;
      const size_t n = std::min(kReadPart, entry.size - i * kReadPart);
      results[i] = ReadExactly(*file, entry.offset + i * kReadPart, n, part);
      if (results[i].ok()) crcs[i] = Crc32c(std::string_view(part, n));
    }
  };
  if (parts < 4) {
    read(0, parts);
  } else {
    ComputePool().ParallelFor(parts, 1, read);
  }
  SLUICE_RETURN_IF_ERROR(results[0]);
  *crc = crcs[0];
  for (int64_t i = 1; i < parts; ++i) {
    SLUICE_RETURN_IF_ERROR(results[i]);
    *crc = Crc32cCombine(*crc, crcs[i],
                         std::min(kReadPart, entry.size - i * kReadPart));
  }
  return absl::OkStatus();
}

absl::Status BundleReader::ReadNumbers(const Entry& entry, Tensor* tensor) {
  uint32_t crc = 0;
  SLUICE_RETURN_IF_ERROR(
      ReadBytes(entry, static_cast<char*>(tensor->mutable_raw()), &crc));
  SLUICE_RETURN_IF_ERROR(CheckCrc(entry, crc));
  if (big_endian_) SwapBytes(tensor);
  if (entry.dtype == DType::kBool) NormaliseBools(tensor);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> BundleReader::ReadStrings(const Entry& entry) {
  if (big_endian_) {
    return Unimplemented("Strings of big-endian checkpoints: ", entry.name);
  }
  const auto broken = [&] {
    return DataLoss("Strings of tensor ", entry.name,
                    " do not fill their entry in the checkpoint");
  };
  // Each length takes a byte, which bounds what is allocated.
  if (entry.shape.size() > entry.size) return broken();
  std::string bytes(entry.size, '\0');
  uint32_t unused;  // The sum of strings is not over the bytes as they lie.
  SLUICE_RETURN_IF_ERROR(ReadBytes(entry, bytes.data(), &unused));
  std::string_view rest = bytes;
  std::vector<uint64_t> lengths(entry.shape.size());
  std::string fixed;
  for (uint64_t& length : lengths) {
    if (!TakeVarint64(&rest, &length)) return broken();
    if (length <= 0xffffffffu) {
      AppendFixed32(static_cast<uint32_t>(length), &fixed);
    } else {
      AppendFixed64(length, &fixed);
    }
  }
  if (rest.size() < 4) return broken();
  uint32_t crc = Crc32c(fixed);
  const uint32_t stored = LoadFixed32(rest.data());
  if (verify_ && MaskCrc(crc) != stored) {
    return DataLoss("The length checksum does not match: expected ",
                    UnmaskCrc(stored), " but got ", crc, "\nTensor ",
                    entry.name, " is damaged");
  }
  SLUICE_RETURN_IF_ERROR(CheckCrc(entry, Crc32cExtend(crc, rest)));
  rest.remove_prefix(4);
  SLUICE_ASSIGN_OR_RETURN(Tensor tensor,
                          Tensor::Create(entry.dtype, entry.shape));
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] > rest.size()) return broken();
    tensor.mutable_data<std::string>()[i] = rest.substr(0, lengths[i]);
    rest.remove_prefix(lengths[i]);
  }
  if (!rest.empty()) return broken();
  return tensor;
}

// The tensor of an entry that has data of its own.
absl::StatusOr<Tensor> BundleReader::ReadTensor(const Entry& entry) {
  // Nothing is allocated on the word of an entry alone.
  SLUICE_ASSIGN_OR_RETURN(const std::shared_ptr<const RandomAccessFile> file,
                          Shard(entry.shard));
  if (entry.offset > file->size() || entry.size > file->size() - entry.offset) {
    return OutOfRange("Read less bytes than requested\nTensor ", entry.name,
                      " should lie at ", entry.offset, " with ", entry.size,
                      " bytes in ",
                      BundleDataName(prefix_, entry.shard, num_shards_),
                      ", which has ", file->size());
  }
  if (entry.dtype == DType::kString) return ReadStrings(entry);
  const int64_t element = static_cast<int64_t>(ElementSize(entry.dtype));
  if (element == 0) {
    return Unimplemented("Tensor ", entry.name, " has type ",
                         DTypeName(entry.dtype),
                         ", which cannot be read from a checkpoint");
  }
  // Divides, because the product may overflow.
  if (entry.size % element != 0 || entry.size / element != entry.shape.size()) {
    return DataLoss("Invalid size in bundle entry: key ", entry.name,
                    "; stored size ", entry.size, "; expected size ", element,
                    " * ", entry.shape.size());
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor tensor,
                          Tensor::Create(entry.dtype, entry.shape));
  SLUICE_RETURN_IF_ERROR(ReadNumbers(entry, &tensor));
  return tensor;
}

absl::StatusOr<Tensor> BundleReader::ReadWhole(const Entry& entry) {
  if (entry.slices.empty()) return ReadTensor(entry);
  const TensorSlice all = TensorSlice::Full(entry.shape.rank());
  return LookupSlice(entry.name, all);
}

absl::StatusOr<CheckpointTensor> BundleReader::Find(std::string_view name) {
  SLUICE_ASSIGN_OR_RETURN(Entry entry, FindTensor(name));
  return CheckpointTensor{std::string(name), entry.dtype,
                          std::move(entry.shape)};
}

absl::StatusOr<std::vector<CheckpointTensor>> BundleReader::List() {
  std::vector<std::string> names;
  // Names start after the header and all slice keys.
  SLUICE_RETURN_IF_ERROR(
      table_->Scan("\x01", [&](std::string_view key, std::string_view) {
        names.emplace_back(key);
        return true;
      }));
  std::vector<CheckpointTensor> tensors;
  for (const std::string& name : names) {
    SLUICE_ASSIGN_OR_RETURN(CheckpointTensor tensor, Find(name));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

absl::StatusOr<Tensor> BundleReader::Lookup(std::string_view name) {
  SLUICE_ASSIGN_OR_RETURN(const Entry entry, FindTensor(name));
  return ReadWhole(entry);
}

absl::StatusOr<Tensor> BundleReader::LookupSlice(std::string_view name,
                                                 const TensorSlice& slice) {
  SLUICE_ASSIGN_OR_RETURN(const Entry entry, FindTensor(name));
  if (!entry.slices.empty()) {
    return AssembleSlices(
        name, entry.dtype, entry.shape, slice, entry.slices,
        [&](size_t i) -> absl::StatusOr<Tensor> {
          SLUICE_ASSIGN_OR_RETURN(
              const Entry part,
              FindEntry(SliceKey(name, entry.slices[i]), name));
          SLUICE_ASSIGN_OR_RETURN(const Shape shape,
                                  entry.slices[i].ShapeWithin(entry.shape));
          if (part.dtype != entry.dtype || part.shape != shape ||
              !part.slices.empty()) {
            return DataLoss("Slice ", entry.slices[i].DebugString(), " of ",
                            name, " does not fit to its tensor");
          }
          return ReadTensor(part);
        });
  }
  const TensorSlice all = TensorSlice::Full(entry.shape.rank());
  return AssembleSlices(name, entry.dtype, entry.shape, slice, {all},
                        [&](size_t) -> absl::StatusOr<Tensor> {
                          {
                            MutexLock lock(mu_);
                            if (last_whole_name_ == name) return last_whole_;
                          }
                          SLUICE_ASSIGN_OR_RETURN(Tensor whole,
                                                  ReadTensor(entry));
                          MutexLock lock(mu_);
                          last_whole_name_ = name;
                          last_whole_ = whole;
                          return whole;
                        });
}

std::optional<CheckpointReader::Place> BundleReader::Locate(
    std::string_view name) {
  const absl::StatusOr<Entry> entry = FindTensor(name);
  if (!entry.ok() || !entry->slices.empty() || big_endian_) return std::nullopt;
  const int64_t element = static_cast<int64_t>(ElementSize(entry->dtype));
  if (element == 0 || entry->size % element != 0 ||
      entry->size / element != entry->shape.size()) {
    return std::nullopt;
  }
  return Place{entry->shard, entry->offset, entry->size, entry->masked_crc};
}

absl::Status BundleReader::ReadPiece(const Place& place, int64_t offset,
                                     size_t n, char* out) {
  SLUICE_ASSIGN_OR_RETURN(const std::shared_ptr<const RandomAccessFile> file,
                          Shard(place.shard));
  return ReadExactly(*file, place.offset + offset, n, out);
}

absl::Status BundleReader::ReadInto(std::string_view name, Tensor* target) {
  SLUICE_ASSIGN_OR_RETURN(const Entry entry, FindTensor(name));
  if (entry.dtype != target->dtype() || entry.shape != target->shape() ||
      ElementSize(entry.dtype) == 0) {
    return InvalidArgument(
        "Tensor ", name, " of the checkpoint is ", DTypeName(entry.dtype), " ",
        entry.shape.DebugString(), ", to be read into ",
        DTypeName(target->dtype()), " ", target->shape().DebugString());
  }
  if (entry.slices.empty() &&
      entry.size == static_cast<int64_t>(target->bytes())) {
    absl::Status status = ReadNumbers(entry, target);
    // The file ends early: said as Lookup says it.
    if (status.code() == absl::StatusCode::kOutOfRange) {
      return ReadTensor(entry).status();
    }
    return status;
  }
  SLUICE_ASSIGN_OR_RETURN(const Tensor whole, ReadWhole(entry));
  if (target->bytes() > 0) {
    std::memcpy(target->mutable_raw(), whole.raw(), target->bytes());
  }
  return absl::OkStatus();
}

}  // namespace sluice
