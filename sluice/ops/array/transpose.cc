// Transpose, ConjugateTranspose and InvertPermutation.
#include "absl/strings/str_join.h"
#include "sluice/graph/scope.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/index_values.h"
#include "sluice/ops/array/move.h"
#include "sluice/ops/array/shape_rules.h"

namespace sluice {
namespace {
namespace transpose_ops {

absl::Status TransposeShape(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(const PartialShape vector, c.WithRank(1, 1));
  PartialShape in = c.input(0);
  const std::optional<Tensor> perm = c.input_value(1);
  if (!in.known_rank()) {
    const int64_t rank = perm ? perm->size() : vector.dim(0);
    if (rank < 0 || rank > kMaxRank) return shapes::Unknown(c);
    in = PartialShape::UnknownOfRank(static_cast<int>(rank));
  }
  SLUICE_RETURN_IF_ERROR(CheckDim(vector.dim(0), in.rank()));
  PartialShape out = PartialShape::UnknownOfRank(in.rank());
  if (perm && perm->size() == in.rank()) {
    for (int i = 0; i < in.rank(); ++i) {
      const int64_t from = IndexAt(*perm, i);
      if (from >= in.rank()) {
        return InvalidArgument("perm dim ", from,
                               " is out of range of input rank ", in.rank());
      }
      if (from >= 0) out.set_dim(i, in.dim(static_cast<int>(from)));
    }
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<IndexVector> CheckedPermutation(const Tensor& perm, int rank) {
  if (perm.rank() != 1) {
    return InvalidArgument("perm must be a vector, not ",
                           perm.shape().DebugString());
  }
  if (perm.size() != rank) {
    return InvalidArgument("transpose expects a vector of size ", rank,
                           ". But input(1) is a vector of size ", perm.size());
  }
  const IndexVector order = IndexValues(perm);
  absl::InlinedVector<bool, 8> seen(rank);
  for (int64_t from : order) {
    if (from < 0 || from >= rank) {
      return InvalidArgument(from, " is out of range [0 .. ", rank, ")");
    }
    seen[from] = true;
  }
  for (int i = 0; i < rank; ++i) {
    if (!seen[i]) {
      return InvalidArgument(i, " is missing from {", absl::StrJoin(order, ","),
                             "}.");
    }
  }
  return order;
}

// Whether the dimensions that are not 1 keep their order, so that nothing has
// to move.
bool KeepsOrder(const Shape& shape, const IndexVector& order) {
  int64_t last = -1;
  for (int64_t from : order) {
    if (shape.dim(static_cast<int>(from)) == 1) continue;
    if (from < last) return false;
    last = from;
  }
  return true;
}

absl::Status TransposeKernel(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  SLUICE_ASSIGN_OR_RETURN(const IndexVector order,
                          CheckedPermutation(ctx.input(1), x.rank()));
  Shape shape;
  for (int64_t from : order) shape.AddDim(x.dim(static_cast<int>(from)));
  if (KeepsOrder(x.shape(), order)) {
    ctx.set_output(0, x.Reshaped(shape));
    return absl::OkStatus();
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor & y, ctx.Output(0, shape));
  const Mover mover = MoverOf(x.dtype());
  const auto from = ByteSteps(x.shape(), mover.size);
  const auto to = ByteSteps(shape, mover.size);
  Box box;
  for (int i = 0; i < x.rank(); ++i) {
    box.Add(shape.dim(i), to[i], from[order[i]]);
  }
  MoveBox(ctx, mover, std::move(box), ElementAt(y, mover, 0),
          ElementAt(x, mover, 0));
  return absl::OkStatus();
}

template <typename T>
absl::Status Conjugate(KernelContext& ctx) {
  SLUICE_RETURN_IF_ERROR(TransposeKernel(ctx));
  Tensor y = ctx.output_slot(0).tensor;
  if (y.SharesBufferWith(ctx.input(0))) {
    y = y.Clone();
    if (!y.initialized()) {
      return ResourceExhausted("OOM when copying a tensor of shape ",
                               ctx.input(0).shape().DebugString());
    }
  }
  for (std::complex<T>& value : y.mutable_data<std::complex<T>>()) {
    value = std::conj(value);
  }
  ctx.set_output(0, std::move(y));
  return absl::OkStatus();
}

absl::Status ConjugateTransposeKernel(KernelContext& ctx) {
  switch (ctx.input(0).dtype()) {
    case DType::kComplex64:
      return Conjugate<float>(ctx);
    case DType::kComplex128:
      return Conjugate<double>(ctx);
    default:
      return TransposeKernel(ctx);
  }
}

Grads TransposeGradient(Scope& scope, const Node& op,
                        std::span<const Output> dy) {
  const Output back = scope.Add("InvertPermutation", {op.input(1)});
  return std::vector<Grad>{
      scope.Named("transpose").Add(op.type(), {dy[0], back}), Grad()};
}

absl::Status InvertShape(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(PartialShape shape, c.WithRank(0, 1));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

template <typename T>
absl::Status Invert(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  if (x.rank() != 1) {
    return InvalidArgument("invert_permutation expects a 1D vector.");
  }
  const auto in = x.data<T>();
  const T size = static_cast<T>(in.size());
  SLUICE_ASSIGN_OR_RETURN(Tensor & y, ctx.Output(0, x.shape()));
  const auto out = y.mutable_data<T>();
  std::fill(out.begin(), out.end(), T{-1});
  for (T i = 0; i < size; ++i) {
    const T to = in[i];
    if (to < 0 || to >= size) {
      return InvalidArgument(to, " is not between 0 and ", size);
    }
    if (out[to] != -1) {
      return InvalidArgument(to, " is duplicated in the input.");
    }
    out[to] = i;
  }
  return absl::OkStatus();
}

}  // namespace transpose_ops
}  // namespace

SLUICE_OP(Transpose)
    .Input("x: T")
    .Input("perm: Tperm")
    .Output("y: T")
    .Attr("T: type")
    .Attr("Tperm: {int32, int64} = DT_INT32")
    .Shape(transpose_ops::TransposeShape)
    .Gradient(transpose_ops::TransposeGradient);

SLUICE_OP(ConjugateTranspose)
    .Input("x: T")
    .Input("perm: Tperm")
    .Output("y: T")
    .Attr("T: type")
    .Attr("Tperm: {int32, int64} = DT_INT32")
    .Shape(transpose_ops::TransposeShape)
    .Gradient(transpose_ops::TransposeGradient);

SLUICE_OP(InvertPermutation)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {int32, int64} = DT_INT32")
    .Shape(transpose_ops::InvertShape)
    .NotDifferentiable();

SLUICE_KERNEL(Transpose, kCpu).Function(transpose_ops::TransposeKernel);
SLUICE_KERNEL(ConjugateTranspose, kCpu)
    .Function(transpose_ops::ConjugateTransposeKernel);
SLUICE_KERNEL(InvertPermutation, kCpu)
    .ForTypes<IndexTypes>("T", []<typename T>(KernelContext& ctx) {
      return transpose_ops::Invert<T>(ctx);
    });

}  // namespace sluice
