// Kernels of element-wise ops over the loops of numeric/. One function for all
// of them, so that the fast path is in the cache whatever op runs.
#pragma once

#include <type_traits>

#include "sluice/kernel/kernel_registry.h"
#include "sluice/numeric/binary.h"
#include "sluice/numeric/unary.h"

namespace sluice {

// A loop, and what a kernel must know of it.
struct BinaryLoop {
  numeric::BinaryFn run;
  int input_size;  // Bytes of an element.
  int output_size;
  double nanos;  // Rough cost of an element.
};
struct UnaryLoop {
  numeric::UnaryFn run;
  double nanos;
};

// Output 0 = loop(input 0, input 1), broadcast as in NumPy.
absl::Status RunBinary(KernelContext& ctx, const BinaryLoop& loop);
// The same without broadcasting: shapes that differ are an error.
absl::Status RunBinarySameShape(KernelContext& ctx, const BinaryLoop& loop);
// Output 0 = loop(input 0).
absl::Status RunUnary(KernelContext& ctx, const UnaryLoop& loop);

// What an element costs.
enum class Cost {
  kCheap,
  kModerate,   // Division, exp.
  kExpensive,  // What the C library computes.
};
constexpr double Nanos(Cost cost) {
  if (cost == Cost::kCheap) return 0.3;
  return cost == Cost::kModerate ? 1.5 : 10;
}

template <numeric::BinaryOp op, typename T>
constexpr BinaryLoop MakeBinaryLoop(Cost cost) {
  constexpr bool compares =
      op >= numeric::BinaryOp::kEqual && op <= numeric::BinaryOp::kGreaterEqual;
  return {numeric::BinaryMap<op, T>, sizeof(T),
          compares ? sizeof(bool) : sizeof(T), Nanos(cost)};
}

// For KernelBuilder::ForTypes.
template <numeric::BinaryOp op, Cost cost = Cost::kCheap>
struct BroadcastingKernel {
  template <typename T>
  absl::Status operator()(KernelContext& ctx) const {
    static constexpr BinaryLoop kLoop = MakeBinaryLoop<op, T>(cost);
    return RunBinary(ctx, kLoop);
  }
};
template <numeric::BinaryOp op, Cost cost = Cost::kCheap>
struct SameShapeKernel {
  template <typename T>
  absl::Status operator()(KernelContext& ctx) const {
    static constexpr BinaryLoop kLoop = MakeBinaryLoop<op, T>(cost);
    return RunBinarySameShape(ctx, kLoop);
  }
};
template <numeric::UnaryOp op, Cost cost = Cost::kCheap>
struct UnaryKernel {
  template <typename T>
  absl::Status operator()(KernelContext& ctx) const {
    static constexpr UnaryLoop kLoop{numeric::UnaryMap<op, T>, Nanos(cost)};
    return RunUnary(ctx, kLoop);
  }
};

}  // namespace sluice
