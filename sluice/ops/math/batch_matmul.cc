// BatchMatMul and BatchMatMulV2: products of stacks of matrices. V2 broadcasts
// the dimensions before the last two.

#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/numeric/broadcast.h"
#include "sluice/numeric/gemm.h"
#include "sluice/ops/array/gradient_pieces.h"
#include "sluice/ops/array/shape_rules.h"
#include "sluice/ops/math/python_math.h"

namespace sluice {
namespace {
namespace batch_matmul {

absl::StatusOr<PartialShape> BatchDims(const PartialShape& shape) {
  if (!shape.known_rank()) return PartialShape();
  return PartialShape(shape.dims().first(shape.rank() - 2));
}

absl::Status ShapeOfProduct(ShapeContext& c, bool broadcasts) {
  SLUICE_ASSIGN_OR_RETURN(const PartialShape a, c.WithRankAtLeast(0, 2));
  SLUICE_ASSIGN_OR_RETURN(const PartialShape b, c.WithRankAtLeast(1, 2));
  const bool ta = c.attr<bool>("adj_x");
  const bool tb = c.attr<bool>("adj_y");
  const auto dim = [](const PartialShape& shape, int from_end) {
    return shape.known_rank() ? shape.dim(shape.rank() - from_end)
                              : PartialShape::kUnknownDim;
  };
  const int64_t inner_a = dim(a, ta ? 2 : 1);
  const int64_t inner_b = dim(b, tb ? 1 : 2);
  if (inner_a >= 0 && inner_b >= 0 && inner_a != inner_b) {
    return InvalidArgument("Dimensions must be equal, but are ", inner_a,
                           " and ", inner_b);
  }
  SLUICE_ASSIGN_OR_RETURN(const PartialShape a_batch, BatchDims(a));
  SLUICE_ASSIGN_OR_RETURN(const PartialShape b_batch, BatchDims(b));
  PartialShape result;
  if (broadcasts) {
    SLUICE_ASSIGN_OR_RETURN(result, BroadcastShapes(a_batch, b_batch));
  } else {
    SLUICE_ASSIGN_OR_RETURN(result, MergeShapes(a_batch, b_batch));
  }
  if (result.known_rank()) {
    result.AddDim(dim(a, ta ? 1 : 2));
    result.AddDim(dim(b, tb ? 2 : 1));
  }
  c.set_output(0, std::move(result));
  return absl::OkStatus();
}
absl::Status ShapeFunction(ShapeContext& c) {
  return ShapeOfProduct(c, /*broadcasts=*/false);
}
absl::Status ShapeFunctionV2(ShapeContext& c) {
  return ShapeOfProduct(c, /*broadcasts=*/true);
}

std::pair<Output, Output> ProductGrads(const Scope& scope, const Node& op,
                                       Output grad) {
  const Output x = op.input(0), y = op.input(1);
  const bool tx = op.attr<bool>("adj_x");
  const bool ty = op.attr<bool>("adj_y");
  const Output dx = tx ? python::MatMul(scope, y, grad, ty, true)
                       : python::MatMul(scope, grad, y, false, !ty);
  const Output dy = ty ? python::MatMul(scope, grad, x, true, tx)
                       : python::MatMul(scope, x, grad, !tx, false);
  return {dx, dy};
}

Grads Gradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  const auto [dx, d_y] = ProductGrads(scope, op, dy[0]);
  return std::vector<Grad>{dx, d_y};
}

// Sums over the batch dimensions that were broadcast.
Grads GradientV2(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output x = op.input(0), y = op.input(1);
  const auto [dx, d_y] = ProductGrads(scope, op, dy[0]);
  if (ShapeOf(x).FullyDefined() && ShapeOf(x) == ShapeOf(y)) {
    return std::vector<Grad>{dx, d_y};
  }
  const Output x_shape = ShapeTensor(scope, x);
  const Output y_shape = ShapeTensor(scope, y);
  const Output x_batch = SliceVector(scope, x_shape, {}, -2);
  const Output y_batch = SliceVector(scope, y_shape, {}, -2);
  const std::vector<Output> axes =
      scope.AddMulti("BroadcastGradientArgs", {x_batch, y_batch});
  if (axes.size() != 2) return scope.status();
  const Output x_sum = scope.Add("Sum", {dx, axes[0]});
  const Output x_grad = scope.Add("Reshape", {x_sum, x_shape});
  const Output y_sum = scope.Add("Sum", {d_y, axes[1]});
  return std::vector<Grad>{x_grad, scope.Add("Reshape", {y_sum, y_shape})};
}

// The sizes of one product.
struct Sizes {
  int64_t m, n, k;
};

absl::StatusOr<Sizes> CheckMatrices(const Shape& a, const Shape& b, bool ta,
                                    bool tb) {
  if (a.rank() < 2) {
    return InvalidArgument("In[0] ndims must be >= 2: ", a.rank());
  }
  if (b.rank() < 2) {
    return InvalidArgument("In[1] ndims must be >= 2: ", b.rank());
  }
  const int64_t k = a.dim(a.rank() - (ta ? 2 : 1));
  const int64_t other = b.dim(b.rank() - (tb ? 1 : 2));
  if (k != other) {
    return InvalidArgument("In[0] mismatch In[1] shape: ", k, " vs. ", other,
                           ": ", a.DebugString(), " ", b.DebugString(), " ",
                           int{ta}, " ", int{tb});
  }
  return Sizes{a.dim(a.rank() - (ta ? 1 : 2)), b.dim(b.rank() - (tb ? 2 : 1)),
               k};
}

absl::Status CheckSameBatch(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) {
    return InvalidArgument("In[0] and In[1] has different ndims: ",
                           a.DebugString(), " vs. ", b.DebugString());
  }
  for (int i = 0; i < a.rank() - 2; ++i) {
    if (a.dim(i) != b.dim(i)) {
      return InvalidArgument("In[0].dim(", i, ") and In[1].dim(", i,
                             ") must be the same: ", a.DebugString(), " vs ",
                             b.DebugString());
    }
  }
  return absl::OkStatus();
}

template <typename T>
void MultiplyAll(KernelContext& ctx, T* c, numeric::MatrixView<T> a,
                 numeric::MatrixView<T> b, Sizes sizes,
                 const numeric::BroadcastPlan& plan) {
  const auto [m, n, k] = sizes;
  const int64_t count = plan.rows() * plan.row_size();
  if (count == 1) return numeric::ParallelMatMul<T>(c, a, b, m, n, k);
  const double nanos =
      static_cast<double>(m * n) * static_cast<double>(k) * 0.05 + 50;
  // Products of one row share the plan's steps; few rows are split inside.
  ctx.ParallelFor(
      count,
      [&](int64_t begin, int64_t end) {
        const int64_t row_size = plan.row_size();
        plan.ForRows(
            begin / row_size, (end + row_size - 1) / row_size,
            [&](int64_t row, int64_t x, int64_t y) {
              const int64_t first =
                  std::max(begin - row * row_size, int64_t{0});
              const int64_t last = std::min(end - row * row_size, row_size);
              for (int64_t i = first; i < last; ++i) {
                const T* left = a.data + (x + i * plan.a_step()) * m * k;
                const T* right = b.data + (y + i * plan.b_step()) * k * n;
                numeric::MatMul<T>(c + (row * row_size + i) * m * n,
                                   {left, a.transposed}, {right, b.transposed},
                                   m, n, k);
              }
            });
      },
      nanos);
}

template <typename T, bool broadcasts>
class BatchMatMulKernel : public Kernel {
 public:
  BatchMatMulKernel(bool ta, bool tb) : ta_(ta), tb_(tb) {}
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& construction) {
    return std::make_unique<BatchMatMulKernel>(
        construction.attr<bool>("adj_x"), construction.attr<bool>("adj_y"));
  }

  absl::Status Run(KernelContext& ctx) override {
    const Tensor& a = ctx.input(0);
    const Tensor& b = ctx.input(1);
    if (!broadcasts) {
      SLUICE_RETURN_IF_ERROR(CheckSameBatch(a.shape(), b.shape()));
    }
    SLUICE_ASSIGN_OR_RETURN(const Sizes sizes,
                            CheckMatrices(a.shape(), b.shape(), ta_, tb_));
    numeric::BroadcastPlan plan;
    if (!plan.Make(a.shape().dims().first(a.rank() - 2),
                   b.shape().dims().first(b.rank() - 2))) {
      return InvalidArgument(
          "In[0] and In[1] must have compatible batch dimensions: ",
          a.shape().DebugString(), " vs. ", b.shape().DebugString());
    }
    absl::InlinedVector<int64_t, 6> dims(plan.dims().begin(),
                                         plan.dims().end());
    dims.push_back(sizes.m);
    dims.push_back(sizes.n);
    SLUICE_ASSIGN_OR_RETURN(
        const Shape shape,
        Shape::Create(std::span<const int64_t>(dims.data(), dims.size())));
    SLUICE_ASSIGN_OR_RETURN(Tensor & c, ctx.Output(0, shape));
    if (c.size() == 0) return absl::OkStatus();
    MultiplyAll<T>(ctx, c.mutable_data<T>().data(), {a.data<T>().data(), ta_},
                   {b.data<T>().data(), tb_}, sizes, plan);
    return absl::OkStatus();
  }

 private:
  const bool ta_;
  const bool tb_;
};

template <typename T>
using KernelV1 = BatchMatMulKernel<T, false>;
template <typename T>
using KernelV2 = BatchMatMulKernel<T, true>;

}  // namespace batch_matmul
}  // namespace

SLUICE_OP(BatchMatMul)
    .Input("x: T")
    .Input("y: T")
    .Output("output: T")
    .Attr(
        "T: {bfloat16, half, float, double, int32, int64, complex64, "
        "complex128}")
    .Attr("adj_x: bool = false")
    .Attr("adj_y: bool = false")
    .Shape(batch_matmul::ShapeFunction)
    .Gradient(batch_matmul::Gradient);
SLUICE_KERNEL(BatchMatMul, kCpu)
    .ClassForTypes<RealTypes, batch_matmul::KernelV1>("T");

SLUICE_OP(BatchMatMulV2)
    .Input("x: T")
    .Input("y: T")
    .Output("output: T")
    .Attr(
        "T: {bfloat16, half, float, double, int32, int64, complex64, "
        "complex128}")
    .Attr("adj_x: bool = false")
    .Attr("adj_y: bool = false")
    .Shape(batch_matmul::ShapeFunctionV2)
    .Gradient(batch_matmul::GradientV2);
SLUICE_KERNEL(BatchMatMulV2, kCpu)
    .ClassForTypes<RealTypes, batch_matmul::KernelV2>("T");

}  // namespace sluice
