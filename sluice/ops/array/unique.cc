// Unique, UniqueWithCounts and ListDiff: sets of the elements of vectors.
#include <bit>
#include <cstring>

#include "absl/container/flat_hash_map.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/index_values.h"
#include "sluice/ops/array/move.h"
#include "sluice/ops/array/shape_rules.h"

namespace sluice {
namespace {
namespace unique_ops {

// Numbers the different elements of vectors 0, 1, 2, … as they come. Numbers
// are compared by value: 0 equals -0, and no NaN equals another.
class ElementNumbers {
 public:
  // For up to `capacity` elements, less than 2^31.
  ElementNumbers(DType dtype, int64_t capacity);

  // The number of element i, a new one if it was not seen yet.
  int32_t Add(const Tensor& tensor, int64_t i) {
    return Number(tensor, i, true);
  }
  // The number of element i, or -1.
  int32_t Find(const Tensor& tensor, int64_t i) {
    return Number(tensor, i, false);
  }
  int32_t size() const { return size_; }

 private:
  int32_t Number(const Tensor& tensor, int64_t i, bool add);
  int32_t NumberOfString(const std::string& value, bool add);
  uint64_t Key(const Tensor& tensor, int64_t i) const;

  const size_t element_size_;
  uint64_t sign_ = 0;      // Of floating types.
  uint64_t infinity_ = 0;  // Bits above are a NaN's.
  int shift_ = 0;
  int32_t size_ = 0;
  std::vector<int32_t> slots_;  // Numbers by hash, -1 if free.
  std::vector<uint64_t> keys_;  // Keys by number.
  absl::flat_hash_map<absl::string_view, int32_t> strings_;
};

ElementNumbers::ElementNumbers(DType dtype, int64_t capacity)
    : element_size_(ElementSize(dtype)) {
  if (IsFloating(dtype)) {
    sign_ = uint64_t{1} << (8 * element_size_ - 1);
    infinity_ = dtype == DType::kFloat    ? 0x7f800000
                : dtype == DType::kDouble ? uint64_t{0x7ff} << 52
                : dtype == DType::kHalf   ? 0x7c00
                                          : 0x7f80;
  }
  if (dtype == DType::kString) return;
  const int bits = std::bit_width(static_cast<uint64_t>(2 * capacity + 1));
  slots_.assign(size_t{1} << bits, -1);
  shift_ = 64 - bits;
}

uint64_t ElementNumbers::Key(const Tensor& tensor, int64_t i) const {
  // Little endian: the low bytes come first.
  uint64_t key = 0;
  std::memcpy(&key, static_cast<const char*>(tensor.raw()) + i * element_size_,
              element_size_);
  return key == sign_ ? 0 : key;
}

int32_t ElementNumbers::NumberOfString(const std::string& value, bool add) {
  if (!add) {
    const auto it = strings_.find(value);
    return it == strings_.end() ? -1 : it->second;
  }
  const auto [it, added] = strings_.try_emplace(value, size_);
  if (added) ++size_;
  return it->second;
}

int32_t ElementNumbers::Number(const Tensor& tensor, int64_t i, bool add) {
  if (element_size_ == 0) {
    return NumberOfString(tensor.data<std::string>()[i], add);
  }
  const uint64_t key = Key(tensor, i);
  const bool nan = sign_ != 0 && (key & ~sign_) > infinity_;
  // Multiplying spreads the key; the high bits depend on all of it.
  size_t at = key * 0x9e3779b97f4a7c15u >> shift_;
  while (!nan && slots_[at] >= 0) {
    if (keys_[slots_[at]] == key) return slots_[at];
    at = (at + 1) & (slots_.size() - 1);
  }
  if (!add) return -1;
  if (!nan) slots_[at] = size_;
  keys_.push_back(key);
  return size_++;
}

absl::Status CheckElements(const Tensor& x) {
  if (x.size() > INT32_MAX) {
    return InvalidArgument("unique does not support input tensors larger than ",
                           INT32_MAX, " elements");
  }
  if (ElementSize(x.dtype()) > 8 || x.dtype() == DType::kResource) {
    return Unimplemented("Elements of type ", DTypeName(x.dtype()),
                         " cannot be compared");
  }
  return absl::OkStatus();
}

absl::Status UniqueShape(ShapeContext& c) {
  SLUICE_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  c.set_output(0, {-1});
  c.set_output(1, c.input(0));
  if (c.num_outputs() == 3) c.set_output(2, {-1});
  return absl::OkStatus();
}

absl::Status UniqueKernel(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  if (x.rank() != 1) return InvalidArgument("unique expects a 1D vector.");
  SLUICE_RETURN_IF_ERROR(CheckElements(x));
  SLUICE_ASSIGN_OR_RETURN(Tensor & numbers, ctx.Output(1, x.shape()));
  const bool counted = ctx.num_outputs() == 3;
  ElementNumbers seen(x.dtype(), x.size());
  std::vector<int32_t> firsts;  // Where each different element came first.
  std::vector<int32_t> counts;
  for (int64_t i = 0; i < x.size(); ++i) {
    const int32_t number = seen.Add(x, i);
    if (number == static_cast<int32_t>(firsts.size())) {
      firsts.push_back(static_cast<int32_t>(i));
      if (counted) counts.push_back(0);
    }
    if (counted) ++counts[number];
    SetIndexAt(numbers, i, number);
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor & y, ctx.Output(0, {seen.size()}));
  const Mover mover = MoverOf(x.dtype());
  for (int32_t k = 0; k < seen.size(); ++k) {
    mover.run(ElementAt(y, mover, k), mover.size,
              ElementAt(x, mover, firsts[k]), mover.size, 1);
  }
  if (!counted) return absl::OkStatus();
  SLUICE_ASSIGN_OR_RETURN(Tensor & count, ctx.Output(2, {seen.size()}));
  for (int32_t k = 0; k < seen.size(); ++k) SetIndexAt(count, k, counts[k]);
  return absl::OkStatus();
}

absl::Status ListDiffShape(ShapeContext& c) {
  SLUICE_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  SLUICE_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  c.set_output(0, {-1});
  c.set_output(1, {-1});
  return absl::OkStatus();
}

absl::Status ListDiffKernel(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& y = ctx.input(1);
  if (x.rank() != 1) return InvalidArgument("x should be a 1D vector.");
  if (y.rank() != 1) return InvalidArgument("y should be a 1D vector.");
  SLUICE_RETURN_IF_ERROR(CheckElements(x));
  SLUICE_RETURN_IF_ERROR(CheckElements(y));
  ElementNumbers removed(y.dtype(), y.size());
  for (int64_t i = 0; i < y.size(); ++i) removed.Add(y, i);
  std::vector<int32_t> kept;
  for (int64_t i = 0; i < x.size(); ++i) {
    if (removed.Find(x, i) < 0) kept.push_back(static_cast<int32_t>(i));
  }
  const int64_t count = static_cast<int64_t>(kept.size());
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, {count}));
  SLUICE_ASSIGN_OR_RETURN(Tensor & at, ctx.Output(1, {count}));
  const Mover mover = MoverOf(x.dtype());
  for (int64_t k = 0; k < count; ++k) {
    mover.run(ElementAt(out, mover, k), mover.size,
              ElementAt(x, mover, kept[k]), mover.size, 1);
    SetIndexAt(at, k, kept[k]);
  }
  return absl::OkStatus();
}

}  // namespace unique_ops
}  // namespace

SLUICE_OP(Unique)
    .Input("x: T")
    .Output("y: T")
    .Output("idx: out_idx")
    .Attr("T: type")
    .Attr("out_idx: {int32, int64} = DT_INT32")
    .Shape(unique_ops::UniqueShape);

SLUICE_OP(UniqueWithCounts)
    .Input("x: T")
    .Output("y: T")
    .Output("idx: out_idx")
    .Output("count: out_idx")
    .Attr("T: type")
    .Attr("out_idx: {int32, int64} = DT_INT32")
    .Shape(unique_ops::UniqueShape);

SLUICE_OP(ListDiff)
    .Input("x: T")
    .Input("y: T")
    .Output("out: T")
    .Output("idx: out_idx")
    .Attr("T: type")
    .Attr("out_idx: {int32, int64} = DT_INT32")
    .Shape(unique_ops::ListDiffShape);

SLUICE_KERNEL(Unique, kCpu).Function(unique_ops::UniqueKernel);
SLUICE_KERNEL(UniqueWithCounts, kCpu).Function(unique_ops::UniqueKernel);
SLUICE_KERNEL(ListDiff, kCpu).Function(unique_ops::ListDiffKernel);

}  // namespace sluice
