#include "sluice/client/input.h"

#include <algorithm>
#include <cmath>

#include "sluice/base/status.h"
#include "sluice/graph/scope.h"

namespace sluice {
namespace {

// Calls `f` with a value of the C++ type of `dtype`, if that is a number.
template <typename F>
bool WithNumberType(DType dtype, F&& f) {
  switch (dtype) {
#define SLUICE_NUMBER_CASE(name, cpp)          \
  case DType::name:                            \
    if constexpr (std::is_arithmetic_v<cpp>) { \
      f(cpp());                                \
      return true;                             \
    }                                          \
    return false;
    SLUICE_FOR_EACH_STORED_TYPE(SLUICE_NUMBER_CASE)
#undef SLUICE_NUMBER_CASE
    default:
      return false;
  }
}

// Element i, which must be a number. int64 does not fit into double; literals
// that large are written as the type they are meant to be.
double NumberAt(const Tensor& tensor, int64_t i) {
  double value = 0;
  WithNumberType(tensor.dtype(), [&]<typename T>(T) {
    value = static_cast<double>(tensor.data<T>()[i]);
  });
  return value;
}

// The widest of mixed numbers is the type of all.
int Width(DType type) {
  if (type == DType::kDouble) return 100;
  if (type == DType::kFloat) return 99;
  return static_cast<int>(ElementSize(type));
}

// Writes `from` into `to` at element `at`.
void CopyInto(const Tensor& from, int64_t at, Tensor* to) {
  if (to->dtype() == DType::kString) {
    std::ranges::copy(from.data<std::string>(),
                      to->mutable_data<std::string>().begin() + at);
    return;
  }
  const size_t bytes = ElementSize(to->dtype());
  std::copy_n(static_cast<const char*>(from.raw()), from.size() * bytes,
              static_cast<char*>(to->mutable_raw()) + at * bytes);
}

bool Fits(double value, DType dtype) {
  if (dtype == DType::kBool) return false;
  if (!IsInteger(dtype)) return true;
  bool fits = false;
  WithNumberType(dtype, [&]<typename T>(T) {
    fits = value == std::floor(value) &&
           value >= static_cast<double>(std::numeric_limits<T>::min()) &&
           value <= static_cast<double>(std::numeric_limits<T>::max());
  });
  return fits;
}

}  // namespace

DType WidestType(const std::vector<Literal>& literals) {
  DType widest = DType::kInvalid;
  for (const Literal& literal : literals) {
    if (widest == DType::kInvalid || Width(literal.dtype()) > Width(widest)) {
      widest = literal.dtype();
    }
  }
  return widest;
}

Literal::Literal(std::initializer_list<Literal> items) : adapts_(true) {
  if (items.size() == 0) {
    value_ = Tensor(DType::kFloat, {0});
    return;
  }
  const Literal& first = *items.begin();
  const DType dtype = WidestType(items);
  for (const Literal& item : items) adapts_ = adapts_ && item.adapts_;
  Shape shape = first.value_.shape();
  shape.InsertDim(0, static_cast<int64_t>(items.size()));
  Tensor all(dtype, shape);
  int64_t at = 0;
  for (const Literal& item : items) {
    const absl::StatusOr<Tensor> value = item.As(dtype);
    // Stays without a value: As reports it.
    if (!value.ok() || value->shape() != first.value_.shape()) return;
    CopyInto(*value, at, &all);
    at += value->size();
  }
  value_ = std::move(all);
}

absl::StatusOr<Tensor> Literal::As(DType dtype) const {
  if (!value_.initialized()) {
    return InvalidArgument(
        "A literal holds no tensor: the lists in it differ in length or in the "
        "type of their elements");
  }
  if (dtype == DType::kInvalid || dtype == value_.dtype()) return value_;
  const absl::Status refused = InvalidArgument(
      "Expected ", DTypeName(dtype), ", got ", value_.DebugString(),
      " of type ", DTypeName(value_.dtype()));
  if (!adapts_ || ScalarOfType(dtype, 0).dtype() != dtype) return refused;
  SLUICE_ASSIGN_OR_RETURN(Tensor result, Tensor::Create(dtype, value_.shape()));
  for (int64_t i = 0; i < value_.size(); ++i) {
    const double number = NumberAt(value_, i);
    if (!Fits(number, dtype)) return refused;
    CopyInto(ScalarOfType(dtype, number), i, &result);
  }
  return result;
}

}  // namespace sluice
