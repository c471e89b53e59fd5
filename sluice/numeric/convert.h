// Conversion of arrays of numbers from one type to another.
#pragma once

#include <cstdint>

namespace sluice {

enum class NumberType : uint8_t {
  kBool,
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kUint64,
  kInt64,
  kHalf,
  kBfloat16,
  kFloat,
  kDouble,
  kComplex64,
  kComplex128,
};

// Converts n numbers as C++ does: integers wrap round, fractions are cut off,
// what is not 0 is true, a complex number loses its imaginary part. A floating
// number outside of the integer type gives what the processor gives.
void ConvertNumbers(NumberType from, const void* src, NumberType to, void* dst,
                    int64_t n);

}  // namespace sluice
