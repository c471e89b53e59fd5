// InTopK and InTopKV2: whether the target is among the k best predictions. Ties
// count as in.

#include <cmath>

#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/index_values.h"

namespace sluice {
namespace {
namespace in_top_k {

absl::Status ShapeFunction(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(const PartialShape predictions, c.WithRank(0, 2));
  SLUICE_ASSIGN_OR_RETURN(const PartialShape targets, c.WithRank(1, 1));
  const int64_t a = predictions.dim(0), b = targets.dim(0);
  if (a >= 0 && b >= 0 && a != b) {
    return InvalidArgument("Dimensions must be equal, but are ", a, " and ", b);
  }
  c.set_output(0, PartialShape({a >= 0 ? a : b}));
  return absl::OkStatus();
}

bool TargetIsIn(const float* row, int64_t classes, int64_t target, int64_t k) {
  if (target < 0 || target >= classes || !std::isfinite(row[target])) {
    return false;
  }
  int64_t better = 0;
  for (int64_t c = 0; c < classes; ++c) {
    // One value that is none says nothing of the rest.
    if (!std::isfinite(row[c])) return false;
    if (row[c] > row[target]) ++better;
  }
  return better < k;
}

absl::Status Run(KernelContext& ctx, int64_t k) {
  const Tensor& predictions = ctx.input(0);
  const Tensor& targets = ctx.input(1);
  if (predictions.rank() != 2) {
    return InvalidArgument("predictions must be 2-dimensional");
  }
  if (targets.rank() != 1) {
    return InvalidArgument("targets must be 1-dimensional");
  }
  if (predictions.dim(0) != targets.dim(0)) {
    return InvalidArgument("First dimension of predictions ",
                           predictions.dim(0), " must match length of targets ",
                           targets.dim(0));
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, targets.shape()));
  const int64_t classes = predictions.dim(1);
  const float* from = predictions.data<float>().data();
  bool* in = out.mutable_data<bool>().data();
  for (int64_t i = 0; i < targets.size(); ++i) {
    in[i] = TargetIsIn(from + i * classes, classes, IndexAt(targets, i), k);
  }
  return absl::OkStatus();
}

}  // namespace in_top_k
}  // namespace

SLUICE_OP(InTopK)
    .Input("predictions: float")
    .Input("targets: T")
    .Output("precision: bool")
    .Attr("k: int")
    .Attr("T: {int32, int64} = DT_INT32")
    .Shape(in_top_k::ShapeFunction);
SLUICE_KERNEL(InTopK, kCpu).Function([](KernelContext& ctx) {
  return in_top_k::Run(ctx, ctx.attr<int64_t>("k"));
});

SLUICE_OP(InTopKV2)
    .Input("predictions: float")
    .Input("targets: T")
    .Input("k: T")
    .Output("precision: bool")
    .Attr("T: {int32, int64} = DT_INT32")
    .Shape(in_top_k::ShapeFunction);
SLUICE_KERNEL(InTopKV2, kCpu).Function([](KernelContext& ctx) -> absl::Status {
  if (ctx.input(2).rank() != 0) {
    return InvalidArgument("k must be 0-D, got shape ",
                           ctx.input(2).shape().DebugString());
  }
  return in_top_k::Run(ctx, IndexAt(ctx.input(2), 0));
});

}  // namespace sluice
