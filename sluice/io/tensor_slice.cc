#include "sluice/io/tensor_slice.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "sluice/base/status.h"

namespace sluice {
namespace {

bool ParseInt64(std::string_view text, int64_t* value) {
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, *value);
  return result.ec == std::errc() && result.ptr == end;
}

// Takes what comes before the next `separator`, or all of it, off `text`.
std::string_view TakeUntil(char separator, std::string_view* text) {
  const size_t end = std::min(text->find(separator), text->size());
  const std::string_view item = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return item;
}

absl::StatusOr<TensorSlice::Extent> ParseExtent(std::string_view item,
                                                std::string_view text) {
  TensorSlice::Extent extent;
  if (item == "-") return extent;
  std::string_view rest = item;
  const std::string_view start = TakeUntil(',', &rest);
  if (!ParseInt64(start, &extent.start) || !ParseInt64(rest, &extent.length)) {
    return InvalidArgument("Expected a pair of numbers or '-' but got '", item,
                           "': string = ", text);
  }
  if (extent.start < 0 || extent.length <= 0) {
    return InvalidArgument(
        "Expected non-negative start and positive length but got start = ",
        extent.start, ", length = ", extent.length, ": string = ", text);
  }
  return extent;
}

}  // namespace

TensorSlice TensorSlice::Full(int rank) {
  TensorSlice slice;
  slice.extents_.resize(rank);
  return slice;
}

absl::StatusOr<TensorSlice> TensorSlice::Parse(std::string_view text) {
  TensorSlice slice;
  std::string_view rest = text;
  while (!rest.empty()) {
    SLUICE_ASSIGN_OR_RETURN(const Extent extent,
                            ParseExtent(TakeUntil(':', &rest), text));
    slice.Add(extent);
  }
  return slice;
}

absl::StatusOr<TensorSlice> TensorSlice::FromProto(
    const pb::TensorSliceProto& proto) {
  TensorSlice slice;
  for (const auto& item : proto.extent()) {
    Extent extent;
    if (item.has_length_case() == pb::TensorSliceProto::Extent::kLength &&
        item.length() != kFull) {
      extent = {item.start(), item.length()};
      if (extent.start < 0 || extent.length < 0) {
        return DataLoss("A slice has start ", extent.start, " and length ",
                        extent.length);
      }
    }
    slice.Add(extent);
  }
  return slice;
}

void TensorSlice::ToProto(pb::TensorSliceProto* proto) const {
  proto->Clear();
  for (const Extent& extent : extents_) {
    auto* item = proto->add_extent();
    if (extent.length == kFull) continue;
    item->set_start(extent.start);
    item->set_length(extent.length);
  }
}

absl::StatusOr<Shape> TensorSlice::ShapeWithin(const Shape& shape) const {
  if (shape.rank() != rank()) {
    return Internal("Mismatching ranks: shape = ", shape.DebugString(),
                    ", slice = ", DebugString());
  }
  Shape part = shape;
  for (int i = 0; i < rank(); ++i) {
    const Extent& extent = extents_[i];
    if (extent.length == kFull) continue;
    if (extent.start > shape.dim(i) ||
        extent.length > shape.dim(i) - extent.start) {
      return Internal("Extent in dimension ", i,
                      " out of bounds: shape = ", shape.DebugString(),
                      ", slice = ", DebugString());
    }
    part.SetDim(i, extent.length);
  }
  return part;
}

bool TensorSlice::Covers(const Shape& shape) const {
  for (int i = 0; i < rank(); ++i) {
    const Extent& extent = extents_[i];
    if (extent.length != kFull && extent.length != shape.dim(i)) return false;
  }
  return true;
}

TensorSlice TensorSlice::Resolved(const Shape& shape) const {
  TensorSlice resolved = *this;
  for (int i = 0; i < rank(); ++i) {
    if (extents_[i].length == kFull) resolved.extents_[i] = {0, shape.dim(i)};
  }
  return resolved;
}

std::optional<TensorSlice> TensorSlice::Intersect(
    const TensorSlice& other) const {
  if (rank() != other.rank()) return std::nullopt;
  TensorSlice shared;
  for (int i = 0; i < rank(); ++i) {
    const Extent& a = extents_[i];
    const Extent& b = other.extents_[i];
    const int64_t start = std::max(a.start, b.start);
    const int64_t end = std::min(a.start + a.length, b.start + b.length);
    if (start >= end) return std::nullopt;
    shared.Add({start, end - start});
  }
  return shared;
}

std::string TensorSlice::DebugString() const {
  std::string text;
  for (const Extent& extent : extents_) {
    if (!text.empty()) text += ':';
    if (extent.length == kFull) {
      text += '-';
    } else {
      StrAppend(&text, extent.start, ",", extent.length);
    }
  }
  return text;
}

absl::StatusOr<ShapeAndSlice> ParseShapeAndSlice(std::string_view text) {
  const size_t last_space = text.rfind(' ');
  if (last_space == std::string_view::npos) {
    return InvalidArgument(
        "Need least two elements in shape_and_slice specification: ", text);
  }
  ShapeAndSlice result;
  SLUICE_ASSIGN_OR_RETURN(result.slice,
                          TensorSlice::Parse(text.substr(last_space + 1)));
  absl::InlinedVector<int64_t, 8> dims;
  for (std::string_view rest = text.substr(0, last_space); !rest.empty();) {
    int64_t dim;
    if (!ParseInt64(TakeUntil(' ', &rest), &dim)) {
      return InvalidArgument("Non numerical dimension in shape_and_slice: ",
                             text);
    }
    dims.push_back(dim);
  }
  SLUICE_ASSIGN_OR_RETURN(result.full, Shape::Create(dims));
  SLUICE_ASSIGN_OR_RETURN(result.part, result.slice.ShapeWithin(result.full));
  return result;
}

namespace {

// Unsigned: the number of significant bytes, then they, highest first.
void AppendOrdered(uint64_t value, std::string* key) {
  std::string bytes;
  for (; value != 0; value >>= 8) bytes.push_back(static_cast<char>(value));
  key->push_back(static_cast<char>(bytes.size()));
  key->append(bytes.rbegin(), bytes.rend());
}

// Bytes that end with 00 01, which cannot come up inside.
void AppendOrdered(std::string_view text, std::string* key) {
  for (char c : text) {
    key->push_back(c);
    if (c == '\0') key->push_back('\xff');
    if (c == '\xff') key->push_back('\0');
  }
  key->append("\0\1", 2);
}

// Signed: n bytes, the smallest number that holds the value in 7n bits, with
// the leading bits turned so that the first byte tells n and the sign.
void AppendOrderedSigned(int64_t value, std::string* key) {
  constexpr int kLongest = 10;
  int n = 1;
  while (n < kLongest && 7 * n - 1 < 63 &&
         (value < -(int64_t{1} << (7 * n - 1)) ||
          value >= int64_t{1} << (7 * n - 1))) {
    ++n;
  }
  uint8_t bytes[kLongest];
  for (int i = 0; i < kLongest; ++i) {
    const int shift = 8 * (kLongest - 1 - i);
    // Bytes above the value repeat its sign.
    bytes[i] = static_cast<uint8_t>(shift >= 64 ? value >> 63 : value >> shift);
  }
  // The header: n one-bits from the top.
  uint8_t* const first = bytes + kLongest - n;
  if (n < 8) {
    first[0] ^= static_cast<uint8_t>(0xff << (8 - n));
  } else {
    first[0] ^= 0xff;
    if (n > 8) first[1] ^= static_cast<uint8_t>(0xff << (16 - n));
  }
  key->append(reinterpret_cast<const char*>(first), n);
}

}  // namespace

std::string SliceKey(std::string_view name, const TensorSlice& slice) {
  std::string key;
  AppendOrdered(uint64_t{0}, &key);
  AppendOrdered(name, &key);
  AppendOrdered(static_cast<uint64_t>(slice.rank()), &key);
  for (int i = 0; i < slice.rank(); ++i) {
    AppendOrderedSigned(slice.extent(i).start, &key);
    AppendOrderedSigned(slice.extent(i).length, &key);
  }
  return key;
}

namespace {

// Where element `at` of a slice's dense array lies in it.
int64_t OffsetOf(const TensorSlice& slice, std::span<const int64_t> at) {
  int64_t offset = 0;
  for (int i = 0; i < slice.rank(); ++i) {
    offset = offset * slice.extent(i).length + at[i] - slice.extent(i).start;
  }
  return offset;
}

void CopyRun(const Tensor& source, int64_t from, int64_t to, int64_t count,
             Tensor* target) {
  if (source.dtype() == DType::kString) {
    std::copy_n(source.data<std::string>().begin() + from, count,
                target->mutable_data<std::string>().begin() + to);
    return;
  }
  const size_t element = ElementSize(source.dtype());
  std::memcpy(static_cast<char*>(target->mutable_raw()) + to * element,
              static_cast<const char*>(source.raw()) + from * element,
              count * element);
}

}  // namespace

void CopyRegion(const TensorSlice& region, const Tensor& source,
                const TensorSlice& source_at, const TensorSlice& target_at,
                Tensor* target) {
  const int rank = region.rank();
  // The dimensions from `run_dim` on are one run in both arrays.
  int run_dim = rank;
  int64_t run = 1;
  while (run_dim > 0) {
    --run_dim;
    const int64_t length = region.extent(run_dim).length;
    run *= length;
    if (length != source_at.extent(run_dim).length ||
        length != target_at.extent(run_dim).length) {
      break;
    }
  }
  absl::InlinedVector<int64_t, 8> at(rank);
  for (int i = 0; i < rank; ++i) at[i] = region.extent(i).start;
  while (true) {
    CopyRun(source, OffsetOf(source_at, at), OffsetOf(target_at, at), run,
            target);
    int i = run_dim - 1;
    for (; i >= 0; --i) {
      const TensorSlice::Extent& extent = region.extent(i);
      if (++at[i] < extent.start + extent.length) break;
      at[i] = extent.start;
    }
    if (i < 0) break;
  }
}

}  // namespace sluice
