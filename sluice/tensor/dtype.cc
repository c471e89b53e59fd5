#include "sluice/tensor/dtype.h"

#include <array>

namespace sluice {
namespace {

struct TypeFacts {
  const char* name;
  size_t size;
};

constexpr std::array<TypeFacts, 24> kFacts = {{
    {"invalid", 0},   {"float", 4},   {"double", 8},      {"int32", 4},
    {"uint8", 1},     {"int16", 2},   {"int8", 1},        {"string", 0},
    {"complex64", 8}, {"int64", 8},   {"bool", 1},        {"qint8", 1},
    {"quint8", 1},    {"qint32", 4},  {"bfloat16", 2},    {"qint16", 2},
    {"quint16", 2},   {"uint16", 2},  {"complex128", 16}, {"half", 2},
    {"resource", 0},  {"variant", 0}, {"uint32", 4},      {"uint64", 8},
}};

}  // namespace

bool IsKnown(DType type) {
  const int base = static_cast<int>(BaseType(type));
  return base > 0 && base < static_cast<int>(kFacts.size());
}

size_t ElementSize(DType type) {
  return IsKnown(type) ? kFacts[static_cast<int>(BaseType(type))].size : 0;
}

bool IsFloating(DType type) {
  type = BaseType(type);
  return type == DType::kFloat || type == DType::kDouble ||
         type == DType::kHalf || type == DType::kBfloat16;
}

bool IsComplex(DType type) {
  type = BaseType(type);
  return type == DType::kComplex64 || type == DType::kComplex128;
}

bool IsInteger(DType type) {
  switch (BaseType(type)) {
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUint8:
    case DType::kUint16:
    case DType::kUint32:
    case DType::kUint64:
      return true;
    default:
      return false;
  }
}

bool IsQuantized(DType type) {
  switch (BaseType(type)) {
    case DType::kQint8:
    case DType::kQuint8:
    case DType::kQint16:
    case DType::kQuint16:
    case DType::kQint32:
      return true;
    default:
      return false;
  }
}

std::string DTypeName(DType type) {
  if (!IsKnown(type)) {
    return "unknown type " + std::to_string(static_cast<int>(type));
  }
  std::string name = kFacts[static_cast<int>(BaseType(type))].name;
  if (IsRef(type)) name += "_ref";
  return name;
}

DType ParseDType(std::string_view name) {
  constexpr std::string_view kRefSuffix = "_ref";
  if (name.size() > kRefSuffix.size() && name.ends_with(kRefSuffix)) {
    name.remove_suffix(kRefSuffix.size());
    const DType base = ParseDType(name);
    return base == DType::kInvalid ? base : RefType(base);
  }
  std::string lower;
  if (name.starts_with("DT_")) {
    for (char c : name.substr(3)) lower += static_cast<char>(tolower(c));
    name = lower;
  }
  if (name == "float32") return DType::kFloat;
  if (name == "float64") return DType::kDouble;
  if (name == "float16") return DType::kHalf;
  for (size_t i = 1; i < kFacts.size(); ++i) {
    if (name == kFacts[i].name) return static_cast<DType>(i);
  }
  return DType::kInvalid;
}

}  // namespace sluice
