// MatMul: the product of two matrices.

#include "sluice/graph/scope.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/numeric/gemm.h"

namespace sluice {
namespace {
namespace matmul {

absl::Status ShapeFunction(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(const PartialShape a, c.WithRank(0, 2));
  SLUICE_ASSIGN_OR_RETURN(const PartialShape b, c.WithRank(1, 2));
  const bool ta = c.attr<bool>("transpose_a");
  const bool tb = c.attr<bool>("transpose_b");
  const int64_t inner_a = a.dim(ta ? 0 : 1);
  const int64_t inner_b = b.dim(tb ? 1 : 0);
  if (inner_a >= 0 && inner_b >= 0 && inner_a != inner_b) {
    return InvalidArgument("Dimensions must be equal, but are ", inner_a,
                           " and ", inner_b);
  }
  c.set_output(0, PartialShape({a.dim(ta ? 1 : 0), b.dim(tb ? 0 : 1)}));
  return absl::OkStatus();
}

Grads Gradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output a = op.input(0), b = op.input(1), grad = dy[0];
  const bool ta = op.attr<bool>("transpose_a");
  const bool tb = op.attr<bool>("transpose_b");
  const auto product = [&](Output x, Output y, bool turn_x, bool turn_y) {
    return scope.Add("MatMul", {x, y},
                     {{"transpose_a", turn_x}, {"transpose_b", turn_y}});
  };
  const Output da =
      ta ? product(b, grad, tb, true) : product(grad, b, false, !tb);
  const Output db =
      tb ? product(grad, a, true, ta) : product(a, grad, !ta, false);
  return std::vector<Grad>{da, db};
}

template <typename T>
class MatMulKernel : public Kernel {
 public:
  MatMulKernel(bool ta, bool tb) : ta_(ta), tb_(tb) {}
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& construction) {
    return std::make_unique<MatMulKernel>(
        construction.attr<bool>("transpose_a"),
        construction.attr<bool>("transpose_b"));
  }

  absl::Status Run(KernelContext& ctx) override {
    const Tensor& a = ctx.input(0);
    const Tensor& b = ctx.input(1);
    for (int i = 0; i < 2; ++i) {
      if (ctx.input(i).rank() == 2) continue;
      return InvalidArgument("In[", i,
                             "] is not a matrix. Instead it has shape ",
                             ctx.input(i).shape().DebugString());
    }
    const int64_t m = a.dim(ta_ ? 1 : 0);
    const int64_t k = a.dim(ta_ ? 0 : 1);
    const int64_t n = b.dim(tb_ ? 0 : 1);
    if (k != b.dim(tb_ ? 1 : 0)) {
      return InvalidArgument(
          "Matrix size-incompatible: In[0]: ", a.shape().DebugString(),
          ", In[1]: ", b.shape().DebugString());
    }
    SLUICE_ASSIGN_OR_RETURN(Tensor & c, ctx.Output(0, Shape({m, n})));
    numeric::ParallelMatMul<T>(c.mutable_data<T>().data(),
                               {a.data<T>().data(), ta_},
                               {b.data<T>().data(), tb_}, m, n, k);
    return absl::OkStatus();
  }

 private:
  const bool ta_;
  const bool tb_;
};

}  // namespace matmul
}  // namespace

SLUICE_OP(MatMul)
    .Input("a: T")
    .Input("b: T")
    .Output("product: T")
    .Attr("transpose_a: bool = false")
    .Attr("transpose_b: bool = false")
    .Attr(
        "T: {bfloat16, half, float, double, int32, int64, complex64, "
        "complex128}")
    .Shape(matmul::ShapeFunction)
    .Gradient(matmul::Gradient);
SLUICE_KERNEL(MatMul, kCpu).ClassForTypes<RealTypes, matmul::MatMulKernel>("T");

}  // namespace sluice
