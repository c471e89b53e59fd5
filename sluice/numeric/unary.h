// Element-wise functions of one array.
#pragma once

#include <cstdint>

namespace sluice::numeric {

enum class UnaryOp {
  kNeg,
  kAbs,
  kSign,
  kSquare,
  kReciprocal,  // Of an integer 0: 0.
  kSqrt,
  kRsqrt,
  kExp,
  kExpm1,
  kLog,
  kLog1p,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kTanh,
  kAsinh,
  kAcosh,
  kAtanh,
  kSigmoid,
  kErf,
  kErfc,
  kLgamma,
  kDigamma,
  kFloor,
  kCeil,
  kRound,  // Halves go to the even neighbour.
  kRelu,
  kRelu6,
  kElu,
  kSelu,
  kSoftplus,
  kSoftsign,
  // Results are bool.
  kIsNan,
  kIsInf,
  kIsFinite,
  // Of bool.
  kNot,
};

// out[i] = op(x[i]) for i < n. `out` may be x where the types are the same.
using UnaryFn = void (*)(void* out, const void* x, int64_t n);

// Compiled for the combinations that ops use; any other fails to link.
template <UnaryOp op, typename T>
void UnaryMap(void* out, const void* x, int64_t n);

// x[i] where it is > 0, alpha * x[i] elsewhere.
template <typename T>
void LeakyRelu(T* out, const T* x, T alpha, int64_t n);

// Half the sum of squares.
template <typename T>
T HalfSquaredNorm(const T* x, int64_t n);

}  // namespace sluice::numeric
