// Qr: each matrix of a batch as an orthogonal matrix times a triangular one.

#include "sluice/numeric/qr.h"

#include <algorithm>

#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/shape_rules.h"

namespace sluice {
namespace {
namespace qr_op {

// -1: not known.
int64_t Smaller(int64_t a, int64_t b) {
  return a < 0 || b < 0 ? -1 : std::min(a, b);
}

absl::Status QrShape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  SLUICE_RETURN_IF_ERROR(CheckRankAtLeast(input, 2));
  if (!input.known_rank()) return absl::OkStatus();
  const int rank = input.rank();
  const int64_t m = input.dim(rank - 2), n = input.dim(rank - 1);
  const int64_t p = c.attr<bool>("full_matrices") ? m : Smaller(m, n);
  const PartialShape batch = SubShape(input, 0, rank - 2);
  c.set_output(0, JoinShapes(batch, PartialShape({m, p})));
  c.set_output(1, JoinShapes(batch, PartialShape({p, n})));
  return absl::OkStatus();
}

template <typename T>
absl::Status Qr(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  const int rank = input.rank();
  if (rank < 2) {
    return InvalidArgument("Input must have rank >= 2, got ", rank);
  }
  const int64_t m = input.dim(rank - 2), n = input.dim(rank - 1);
  const bool full = ctx.attr<bool>("full_matrices");
  const int64_t p = full ? m : std::min(m, n);
  Shape q_shape, r_shape;
  int64_t count = 1;
  for (int i = 0; i + 2 < rank; ++i) {
    q_shape.AddDim(input.dim(i));
    r_shape.AddDim(input.dim(i));
    count *= input.dim(i);
  }
  q_shape.AddDim(m), q_shape.AddDim(p);
  r_shape.AddDim(p), r_shape.AddDim(n);
  SLUICE_ASSIGN_OR_RETURN(Tensor & q, ctx.Output(0, q_shape));
  SLUICE_ASSIGN_OR_RETURN(Tensor & r, ctx.Output(1, r_shape));
  if (q.size() == 0 && r.size() == 0) return absl::OkStatus();
  const T* from = input.data<T>().data();
  T* to_q = q.mutable_data<T>().data();
  T* to_r = r.mutable_data<T>().data();
  ctx.ParallelFor(
      count,
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          numeric::HouseholderQr(from + i * m * n, m, n, full, to_q + i * m * p,
                                 to_r + i * p * n);
        }
      },
      static_cast<double>(m) * n * p);
  return absl::OkStatus();
}

}  // namespace qr_op
}  // namespace

SLUICE_OP(Qr)
    .Input("input: T")
    .Output("q: T")
    .Output("r: T")
    .Attr("full_matrices: bool = false")
    .Attr("T: {double, float, half, complex64, complex128}")
    .Shape(qr_op::QrShape);

SLUICE_KERNEL(Qr, kCpu).ForTypes<FloatTypes>(
    "T", []<typename T>(KernelContext& ctx) { return qr_op::Qr<T>(ctx); });

}  // namespace sluice
