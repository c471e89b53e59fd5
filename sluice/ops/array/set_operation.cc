// DenseToDenseSetOperation: the rows of the last dimension as sets.
#include <algorithm>
#include <cstring>

#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"

namespace sluice {
namespace {
namespace set_operation {

absl::Status OutputShapes(ShapeContext& c) {
  const int64_t rank = c.input(0).known_rank() ? c.input(0).rank() : -1;
  c.set_output(0, {-1, rank});
  c.set_output(1, {-1});
  c.set_output(2, {rank});
  return absl::OkStatus();
}

// Integers of all widths are compared as 64 bits.
template <typename T>
int64_t Widened(const void* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return static_cast<int64_t>(value);
}

int64_t IntegerAt(const Tensor& tensor, int64_t i) {
  const char* at = static_cast<const char*>(tensor.raw()) +
                   i * static_cast<int64_t>(ElementSize(tensor.dtype()));
  switch (tensor.dtype()) {
    case DType::kInt8:
      return Widened<int8_t>(at);
    case DType::kUint8:
      return Widened<uint8_t>(at);
    case DType::kInt16:
      return Widened<int16_t>(at);
    case DType::kUint16:
      return Widened<uint16_t>(at);
    case DType::kInt32:
      return Widened<int32_t>(at);
    default:
      return Widened<int64_t>(at);
  }
}

template <typename Element>
Element ElementOf(const Tensor& tensor, int64_t i) {
  if constexpr (std::is_same_v<Element, std::string>) {
    return tensor.data<std::string>()[i];
  } else {
    return IntegerAt(tensor, i);
  }
}

void SetElement(Tensor& tensor, int64_t i, const std::string& value) {
  tensor.mutable_data<std::string>()[i] = value;
}

void SetElement(Tensor& tensor, int64_t i, int64_t value) {
  // Little endian: the low bytes come first.
  const size_t size = ElementSize(tensor.dtype());
  std::memcpy(static_cast<char*>(tensor.mutable_raw()) + i * size, &value,
              size);
}

// A row without repetitions, in order.
template <typename Element>
std::vector<Element> Row(const Tensor& tensor, int64_t row) {
  const int64_t width = tensor.dim(tensor.rank() - 1);
  std::vector<Element> elements;
  for (int64_t i = 0; i < width; ++i) {
    elements.push_back(ElementOf<Element>(tensor, row * width + i));
  }
  std::ranges::sort(elements);
  const auto repeated = std::ranges::unique(elements);
  elements.erase(repeated.begin(), repeated.end());
  return elements;
}

enum class Operation { kAMinusB, kBMinusA, kIntersection, kUnion };

template <typename Element>
std::vector<Element> Combined(Operation operation,
                              const std::vector<Element>& a,
                              const std::vector<Element>& b) {
  std::vector<Element> result;
  const auto out = std::back_inserter(result);
  switch (operation) {
    case Operation::kAMinusB:
      std::ranges::set_difference(a, b, out);
      break;
    case Operation::kBMinusA:
      std::ranges::set_difference(b, a, out);
      break;
    case Operation::kIntersection:
      std::ranges::set_intersection(a, b, out);
      break;
    case Operation::kUnion:
      std::ranges::set_union(a, b, out);
      break;
  }
  return result;
}

absl::StatusOr<Operation> OperationOf(const std::string& name) {
  if (name == "a-b") return Operation::kAMinusB;
  if (name == "b-a") return Operation::kBMinusA;
  if (name == "intersection") return Operation::kIntersection;
  if (name == "union") return Operation::kUnion;
  return InvalidArgument("Invalid set_operation ", name, ".");
}

template <typename Element>
absl::Status Run(KernelContext& ctx, Operation operation) {
  const Tensor& a = ctx.input(0);
  const Tensor& b = ctx.input(1);
  const int rank = a.rank();
  int64_t rows = 1;
  for (int d = 0; d + 1 < rank; ++d) rows *= a.dim(d);
  if (a.size() == 0 && b.size() == 0) rows = 0;  // However many there are.
  std::vector<std::vector<Element>> results;
  int64_t total = 0;
  int64_t widest = 0;
  for (int64_t row = 0; row < rows; ++row) {
    results.push_back(
        Combined(operation, Row<Element>(a, row), Row<Element>(b, row)));
    const int64_t count = static_cast<int64_t>(results.back().size());
    total += count;
    widest = std::max(widest, count);
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor & indices, ctx.Output(0, {total, rank}));
  SLUICE_ASSIGN_OR_RETURN(Tensor & values, ctx.Output(1, {total}));
  SLUICE_ASSIGN_OR_RETURN(Tensor & shape, ctx.Output(2, {rank}));
  int64_t at = 0;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t column = 0;
    for (const Element& element : results[row]) {
      int64_t rest = row;
      for (int d = rank - 2; d >= 0; --d) {
        indices.mutable_data<int64_t>()[at * rank + d] = rest % a.dim(d);
        rest /= a.dim(d);
      }
      indices.mutable_data<int64_t>()[at * rank + rank - 1] = column++;
      SetElement(values, at++, element);
    }
  }
  for (int d = 0; d + 1 < rank; ++d) {
    shape.mutable_data<int64_t>()[d] = a.dim(d);
  }
  shape.mutable_data<int64_t>()[rank - 1] = widest;
  return absl::OkStatus();
}

absl::Status Kernel(KernelContext& ctx) {
  const Tensor& a = ctx.input(0);
  const Tensor& b = ctx.input(1);
  if (a.rank() < 2 || a.rank() != b.rank()) {
    return InvalidArgument(
        "Invalid input: sets of the shapes ", a.shape().DebugString(), " and ",
        b.shape().DebugString(), "; both need the same rank, at least 2.");
  }
  for (int d = 0; d + 1 < a.rank(); ++d) {
    if (a.dim(d) != b.dim(d)) {
      return InvalidArgument(
          "Mismatched group shapes: ", a.shape().DebugString(), " and ",
          b.shape().DebugString(), " differ before the last dimension.");
    }
  }
  SLUICE_ASSIGN_OR_RETURN(
      const Operation operation,
      OperationOf(ctx.node().attr<std::string>("set_operation")));
  return a.dtype() == DType::kString ? Run<std::string>(ctx, operation)
                                     : Run<int64_t>(ctx, operation);
}

}  // namespace set_operation
}  // namespace

SLUICE_OP(DenseToDenseSetOperation)
    .Input("set1: T")
    .Input("set2: T")
    .Output("result_indices: int64")
    .Output("result_values: T")
    .Output("result_shape: int64")
    .Attr("set_operation: string")
    .Attr("validate_indices: bool = true")
    .Attr("T: {int8, int16, int32, int64, uint8, uint16, string}")
    .Shape(set_operation::OutputShapes)
    .NotDifferentiable();

SLUICE_KERNEL(DenseToDenseSetOperation, kCpu).Function(set_operation::Kernel);

}  // namespace sluice
