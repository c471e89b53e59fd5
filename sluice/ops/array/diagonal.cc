// Diagonals: Diag and DiagPart of a tensor whose dimensions come twice,
// MatrixDiag, MatrixDiagPart and MatrixSetDiag of each matrix of a batch.

#include <algorithm>

#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/scope.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/index_values.h"
#include "sluice/ops/array/move.h"
#include "sluice/ops/array/shape_rules.h"

namespace sluice {
namespace {
namespace diagonal_op {

int64_t Smaller(int64_t a, int64_t b) {
  return a < 0 || b < 0 ? -1 : std::min(a, b);
}

absl::Status DiagShape(ShapeContext& c) {
  SLUICE_RETURN_IF_ERROR(CheckRankAtLeast(c.input(0), 1));
  c.set_output(0, JoinShapes(c.input(0), c.input(0)));
  return absl::OkStatus();
}

absl::Status DiagPartShape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  if (!input.known_rank()) return absl::OkStatus();
  const int rank = input.rank();
  if (rank % 2 != 0 || rank == 0) {
    return InvalidArgument(
        "Input must have even and non-zero rank, input rank is ", rank);
  }
  SLUICE_ASSIGN_OR_RETURN(PartialShape half,
                          MergeShapes(SubShape(input, 0, rank / 2),
                                      SubShape(input, rank / 2, rank)));
  c.set_output(0, std::move(half));
  return absl::OkStatus();
}

absl::Status MatrixDiagShape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  SLUICE_RETURN_IF_ERROR(CheckRankAtLeast(input, 1));
  if (!input.known_rank()) return absl::OkStatus();
  const int64_t last = input.dim(input.rank() - 1);
  c.set_output(0, JoinShapes(input, PartialShape({last})));
  return absl::OkStatus();
}

// The shape of the diagonals of `input`.
PartialShape DiagonalOf(const PartialShape& input) {
  const int rank = input.rank();
  return JoinShapes(
      SubShape(input, 0, rank - 2),
      PartialShape({Smaller(input.dim(rank - 2), input.dim(rank - 1))}));
}

absl::Status MatrixDiagPartShape(ShapeContext& c) {
  SLUICE_RETURN_IF_ERROR(CheckRankAtLeast(c.input(0), 2));
  if (c.input(0).known_rank()) c.set_output(0, DiagonalOf(c.input(0)));
  return absl::OkStatus();
}

absl::Status MatrixSetDiagShape(ShapeContext& c) {
  SLUICE_RETURN_IF_ERROR(CheckRankAtLeast(c.input(0), 2));
  SLUICE_RETURN_IF_ERROR(CheckRankAtLeast(c.input(1), 1));
  if (c.input(0).known_rank()) {
    SLUICE_RETURN_IF_ERROR(
        MergeShapes(DiagonalOf(c.input(0)), c.input(1)).status());
  }
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

// Matrices [count, rows, columns] and their diagonals.
struct Matrices {
  int64_t count = 1, rows = 0, columns = 0;
  int64_t diagonal() const { return std::min(rows, columns); }
};

Matrices MatricesOf(const Shape& shape) {
  const int rank = shape.rank();
  return {SizeBetween(shape, 0, rank - 2), shape.dim(rank - 2),
          shape.dim(rank - 1)};
}

// Copies diagonals between where they are packed and where they stand in
// matrices.
void CopyDiagonals(const Mover& mover, const Matrices& m, char* matrices,
                   char* packed, bool to_matrices) {
  if (m.diagonal() == 0) return;
  const int64_t step = (m.columns + 1) * mover.size;
  for (int64_t i = 0; i < m.count; ++i) {
    char* matrix = matrices + i * m.rows * m.columns * mover.size;
    char* diagonal = packed + i * m.diagonal() * mover.size;
    if (to_matrices) {
      mover.run(matrix, step, diagonal, mover.size, m.diagonal());
    } else {
      mover.run(diagonal, mover.size, matrix, step, m.diagonal());
    }
  }
}

char* Writable(const Tensor& tensor) {
  // CopyDiagonals writes to one side only.
  return static_cast<char*>(const_cast<void*>(tensor.raw()));
}

absl::Status FromDiagonal(KernelContext& ctx, const Shape& shape,
                          const Matrices& m) {
  SLUICE_ASSIGN_OR_RETURN(Tensor & output, ctx.Output(0, shape));
  FillWithZeros(ctx, output);
  CopyDiagonals(MoverOf(output.dtype()), m, Writable(output),
                Writable(ctx.input(0)), true);
  return absl::OkStatus();
}

absl::Status Diag(KernelContext& ctx) {
  const Shape& in = ctx.input(0).shape();
  Shape shape = in;
  for (int i = 0; i < in.rank(); ++i) shape.AddDim(in.dim(i));
  return FromDiagonal(ctx, shape, {1, in.size(), in.size()});
}

absl::Status DiagPart(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  const int half = input.rank() / 2;
  Shape shape;
  bool fits = input.rank() % 2 == 0 && half > 0;
  for (int i = 0; fits && i < half; ++i) {
    fits = input.dim(i) == input.dim(half + i);
    shape.AddDim(input.dim(i));
  }
  if (!fits) {
    return InvalidArgument("Invalid shape ", input.shape().DebugString(),
                           ": its dimensions must come twice, in this order");
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor & output, ctx.Output(0, shape));
  CopyDiagonals(MoverOf(input.dtype()), {1, shape.size(), shape.size()},
                Writable(input), Writable(output), false);
  return absl::OkStatus();
}

absl::Status MatrixDiag(KernelContext& ctx) {
  const Shape& in = ctx.input(0).shape();
  if (in.rank() < 1) {
    return InvalidArgument("input must be at least 1-dim, received shape: ",
                           in.DebugString());
  }
  Shape shape = in;
  shape.AddDim(in.dim(in.rank() - 1));
  return FromDiagonal(ctx, shape, MatricesOf(shape));
}

absl::Status CheckMatrices(const Tensor& input) {
  if (input.rank() >= 2) return absl::OkStatus();
  return InvalidArgument("input must be at least 2-dim, received shape: ",
                         input.shape().DebugString());
}

Shape DiagonalShape(const Shape& matrices) {
  Shape shape;
  for (int i = 0; i + 2 < matrices.rank(); ++i) shape.AddDim(matrices.dim(i));
  shape.AddDim(MatricesOf(matrices).diagonal());
  return shape;
}

absl::Status MatrixDiagPart(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  SLUICE_RETURN_IF_ERROR(CheckMatrices(input));
  SLUICE_ASSIGN_OR_RETURN(Tensor & output,
                          ctx.Output(0, DiagonalShape(input.shape())));
  CopyDiagonals(MoverOf(input.dtype()), MatricesOf(input.shape()),
                Writable(input), Writable(output), false);
  return absl::OkStatus();
}

absl::Status MatrixSetDiag(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  const Tensor& diagonal = ctx.input(1);
  SLUICE_RETURN_IF_ERROR(CheckMatrices(input));
  if (diagonal.shape() != DiagonalShape(input.shape())) {
    return InvalidArgument(
        "diagonal must have shape ", DiagonalShape(input.shape()).DebugString(),
        " to fit input ", input.shape().DebugString(),
        ", received shape: ", diagonal.shape().DebugString());
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor & output, ctx.Output(0, input.shape()));
  const Mover mover = MoverOf(input.dtype());
  mover.run(Writable(output), mover.size, Writable(input), mover.size,
            input.size());
  CopyDiagonals(mover, MatricesOf(input.shape()), Writable(output),
                Writable(diagonal), true);
  return absl::OkStatus();
}

}  // namespace diagonal_op
}  // namespace

#define SLUICE_NUMBER_ATTR \
  "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}"
SLUICE_OP(Diag)
    .Input("diagonal: T")
    .Output("output: T")
    .Attr(SLUICE_NUMBER_ATTR)
    .Shape(diagonal_op::DiagShape)
    .Gradient([](Scope& scope, const Node&,
                 std::span<const Output> dy) -> Grads {
      return std::vector<Grad>{scope.Add("DiagPart", {dy[0]})};
    });
SLUICE_OP(DiagPart)
    .Input("input: T")
    .Output("diagonal: T")
    .Attr(SLUICE_NUMBER_ATTR)
    .Shape(diagonal_op::DiagPartShape)
    .Gradient([](Scope& scope, const Node&,
                 std::span<const Output> dy) -> Grads {
      return std::vector<Grad>{scope.Add("Diag", {dy[0]})};
    });
#undef SLUICE_NUMBER_ATTR

SLUICE_OP(MatrixDiag)
    .Input("diagonal: T")
    .Output("output: T")
    .Attr("T: type")
    .Shape(diagonal_op::MatrixDiagShape)
    .Gradient([](Scope& scope, const Node&,
                 std::span<const Output> dy) -> Grads {
      return std::vector<Grad>{scope.Add("MatrixDiagPart", {dy[0]})};
    });
SLUICE_OP(MatrixDiagPart)
    .Input("input: T")
    .Output("diagonal: T")
    .Attr("T: type")
    .Shape(diagonal_op::MatrixDiagPartShape)
    .Gradient([](Scope& scope, const Node& op,
                 std::span<const Output> dy) -> Grads {
      const Output zeros = scope.Add("ZerosLike", {op.input(0)});
      return std::vector<Grad>{scope.Add("MatrixSetDiag", {zeros, dy[0]})};
    });
SLUICE_OP(MatrixSetDiag)
    .Input("input: T")
    .Input("diagonal: T")
    .Output("output: T")
    .Attr("T: type")
    .Shape(diagonal_op::MatrixSetDiagShape)
    .Gradient([](Scope& scope, const Node& op,
                 std::span<const Output> dy) -> Grads {
      const Output zeros = scope.Add("ZerosLike", {op.input(1)});
      const Output rest = scope.Add("MatrixSetDiag", {dy[0], zeros});
      return std::vector<Grad>{rest, scope.Add("MatrixDiagPart", {dy[0]})};
    });

SLUICE_KERNEL(Diag, kCpu).Function(diagonal_op::Diag);
SLUICE_KERNEL(DiagPart, kCpu).Function(diagonal_op::DiagPart);
SLUICE_KERNEL(MatrixDiag, kCpu).Function(diagonal_op::MatrixDiag);
SLUICE_KERNEL(MatrixDiagPart, kCpu).Function(diagonal_op::MatrixDiagPart);
SLUICE_KERNEL(MatrixSetDiag, kCpu).Function(diagonal_op::MatrixSetDiag);

}  // namespace sluice
