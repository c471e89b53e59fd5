// Element-wise functions of two arrays.
#pragma once

#include <cstdint>

namespace sluice::numeric {

enum class BinaryOp {
  kAdd,
  kSub,
  kMul,
  // Integer division by zero gives 0: callers look for zeros first (AnyZero).
  kDiv,  // Of integers: rounds towards zero.
  kFloorDiv,
  kFloorMod,  // The sign of the divisor, as in Python.
  kTruncateMod,
  kMaximum,
  kMinimum,
  kPow,  // Of integers: 0 for negative exponents, which callers refuse.
  kSquaredDifference,
  kAtan2,
  kXdivy,     // 0 where x is 0, else x / y.
  kXlogy,     // 0 where x is 0, else x log y.
  kDivNoNan,  // 0 where y is 0, else x / y.
  kMulNoNan,  // 0 where y is 0, else x y.
  // Derivatives. a is the function's result and b the gradient of it.
  kSqrtGrad,
  kRsqrtGrad,
  kTanhGrad,
  kSigmoidGrad,
  kReciprocalGrad,
  // Derivatives. a is the gradient and b the function's argument or result.
  kReluGrad,
  kRelu6Grad,
  kEluGrad,   // Of the result.
  kSeluGrad,  // Of the result.
  kSoftplusGrad,
  kSoftsignGrad,
  // Comparisons, whose results are bool.
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  // Of bool.
  kAnd,
  kOr,
};

// out[i] = op(a[i * a_step], b[i * b_step]) for i < n. The steps are 0 or 1,
// and not both 0 unless n is 1. `out` may be a or b.
using BinaryFn = void (*)(void* out, const void* a, int64_t a_step,
                          const void* b, int64_t b_step, int64_t n);

// Compiled for the combinations that ops use; any other fails to link.
template <BinaryOp op, typename T>
void BinaryMap(void* out, const void* a, int64_t a_step, const void* b,
               int64_t b_step, int64_t n);

// For i = 0, 1, … < n, one after the other: row at[i] of `table`, which has
// rows of `row` elements, becomes op(that row, row i of `updates`); with step 0
// op(that row, *updates).
template <BinaryOp op, typename T, typename Index>
void BinaryRows(T* table, int64_t row, const Index* at, int64_t n,
                const T* updates, int64_t step);

template <typename T>
bool AnyZero(const T* x, int64_t n);
template <typename T>
bool AnyNegative(const T* x, int64_t n);

// grad[i] where features[i] > 0, alpha * grad[i] elsewhere.
template <typename T>
void LeakyReluGrad(T* out, const T* grad, const T* features, T alpha,
                   int64_t n);

}  // namespace sluice::numeric
