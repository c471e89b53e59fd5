#include "sluice/ops/summary/real_values.h"

namespace sluice {
namespace {
namespace real_values {

template <typename T>
T Number(T value) {
  return value;
}
float Number(Half value) { return static_cast<float>(value); }
float Number(BFloat16 value) { return static_cast<float>(value); }

template <typename T, typename Out>
bool ConvertAs(const Tensor& tensor, int64_t begin, int64_t n, Out* out) {
  const T* values = tensor.data<T>().data() + begin;
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<Out>(Number(values[i]));
  return true;
}

template <typename Out>
bool Convert(const Tensor& tensor, int64_t begin, int64_t n, Out* out) {
  switch (tensor.dtype()) {
#define SLUICE_REAL(name, cpp) \
  case DType::name:            \
    return ConvertAs<cpp>(tensor, begin, n, out);
    SLUICE_REAL(kFloat, float)
    SLUICE_REAL(kDouble, double)
    SLUICE_REAL(kInt32, int32_t)
    SLUICE_REAL(kUint8, uint8_t)
    SLUICE_REAL(kInt16, int16_t)
    SLUICE_REAL(kInt8, int8_t)
    SLUICE_REAL(kInt64, int64_t)
    SLUICE_REAL(kBfloat16, BFloat16)
    SLUICE_REAL(kUint16, uint16_t)
    SLUICE_REAL(kHalf, Half)
    SLUICE_REAL(kUint32, uint32_t)
    SLUICE_REAL(kUint64, uint64_t)
#undef SLUICE_REAL
    default:
      return false;
  }
}

}  // namespace real_values
}  // namespace

bool RealValues(const Tensor& tensor, int64_t begin, int64_t n, float* out) {
  return real_values::Convert<float>(tensor, begin, n, out);
}
bool RealValues(const Tensor& tensor, int64_t begin, int64_t n, double* out) {
  return real_values::Convert<double>(tensor, begin, n, out);
}

}  // namespace sluice
