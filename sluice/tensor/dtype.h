// DType: the element types of TensorFlow's wire, with its numbers. A ref type
// is the number of its base type plus 100.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sluice/base/half.h"

namespace sluice {

struct ResourceHandle;

enum class DType : int32_t {
  kInvalid = 0,
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kString = 7,
  kComplex64 = 8,
  kInt64 = 9,
  kBool = 10,
  kQint8 = 11,
  kQuint8 = 12,
  kQint32 = 13,
  kBfloat16 = 14,
  kQint16 = 15,
  kQuint16 = 16,
  kUint16 = 17,
  kComplex128 = 18,
  kHalf = 19,
  kResource = 20,
  kVariant = 21,
  kUint32 = 22,
  kUint64 = 23,
};

constexpr bool IsRef(DType type) { return static_cast<int>(type) > 100; }
constexpr DType BaseType(DType type) {
  return IsRef(type) ? static_cast<DType>(static_cast<int>(type) - 100) : type;
}
constexpr DType RefType(DType type) {
  return static_cast<DType>(static_cast<int>(BaseType(type)) + 100);
}

// True for the types above and their ref types, kInvalid excepted.
bool IsKnown(DType type);
// Bytes of one element; 0 for string, resource, variant and unknown types.
size_t ElementSize(DType type);
bool IsFloating(DType type);  // half, bfloat16, float, double
bool IsComplex(DType type);
bool IsInteger(DType type);  // Signed and unsigned, not quantised, not bool.
bool IsQuantized(DType type);

// "float", "int32", "float_ref": the spelling of op definitions and messages.
std::string DTypeName(DType type);
// Takes what DTypeName gives and "float32", "float64", "float16" and "DT_…";
// kInvalid if it is none of them.
DType ParseDType(std::string_view name);

// The C++ type that holds an element, both ways.
template <DType>
struct CppTypeOf;
template <typename T>
struct DTypeOf;

#define SLUICE_FOR_EACH_STORED_TYPE(X) \
  X(kFloat, float)                     \
  X(kDouble, double)                   \
  X(kInt32, int32_t)                   \
  X(kUint8, uint8_t)                   \
  X(kInt16, int16_t)                   \
  X(kInt8, int8_t)                     \
  X(kString, std::string)              \
  X(kComplex64, std::complex<float>)   \
  X(kInt64, int64_t)                   \
  X(kBool, bool)                       \
  X(kBfloat16, BFloat16)               \
  X(kUint16, uint16_t)                 \
  X(kComplex128, std::complex<double>) \
  X(kHalf, Half)                       \
  X(kResource, ResourceHandle)         \
  X(kUint32, uint32_t)                 \
  X(kUint64, uint64_t)

#define SLUICE_DECLARE_TYPE(name, cpp)          \
  template <>                                   \
  struct CppTypeOf<DType::name> {               \
    using type = cpp;                           \
  };                                            \
  template <>                                   \
  struct DTypeOf<cpp> {                         \
    static constexpr DType value = DType::name; \
  };
SLUICE_FOR_EACH_STORED_TYPE(SLUICE_DECLARE_TYPE)
#undef SLUICE_DECLARE_TYPE

}  // namespace sluice
