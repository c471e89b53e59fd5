// ScalarSummary and HistogramSummary: numbers of a step for TensorBoard.

#include <algorithm>
#include <cmath>

#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/summary/histogram.h"
#include "sluice/ops/summary/real_values.h"

namespace sluice {
namespace {

absl::Status ScalarSummary(KernelContext& ctx) {
  const Tensor& tags = ctx.input(0);
  const Tensor& values = ctx.input(1);
  if (tags.shape() != values.shape()) {
    return InvalidArgument(
        "tags and values not the same shape: ", tags.shape().DebugString(),
        " != ", values.shape().DebugString(),
        tags.size() == 1 ? StrCat(" (tag '", tags.scalar<std::string>(), "')")
                         : std::string());
  }
  pb::Summary summary;
  for (int64_t i = 0; i < tags.size(); ++i) {
    pb::Summary::Value* value = summary.add_value();
    value->set_tag(tags.data<std::string>()[i]);
    float number;
    if (!RealValues(values, i, 1, &number)) {
      return Unimplemented("Summary of ", DTypeName(values.dtype()));
    }
    value->set_simple_value(number);
  }
  ctx.set_output(0, Tensor::Scalar(summary.SerializeAsString()));
  return absl::OkStatus();
}

// Adds the values of a tensor, a part at a time.
absl::Status AddToHistogram(const Tensor& values, std::string_view name,
                            Histogram& histogram) {
  constexpr int64_t kPart = 512;
  double part[kPart];
  for (int64_t i = 0; i < values.size(); i += kPart) {
    const int64_t n = std::min(kPart, values.size() - i);
    if (!RealValues(values, i, n, part)) {
      return Unimplemented("Histogram of ", DTypeName(values.dtype()));
    }
    for (const double value : std::span(part, n)) {
      if (std::isfinite(value)) continue;
      return InvalidArgument(std::isnan(value) ? "Nan" : "Infinity",
                             " in summary histogram for: ", name);
    }
    histogram.Add(std::span(part, n));
  }
  return absl::OkStatus();
}

absl::Status HistogramSummary(KernelContext& ctx) {
  const Tensor& tag = ctx.input(0);
  if (tag.rank() != 0) return InvalidArgument("tags must be scalar");
  Histogram histogram;
  SLUICE_RETURN_IF_ERROR(
      AddToHistogram(ctx.input(1), ctx.node().name(), histogram));
  pb::Summary summary;
  pb::Summary::Value* value = summary.add_value();
  value->set_tag(tag.scalar<std::string>());
  histogram.ToProto(value->mutable_histo());
  ctx.set_output(0, Tensor::Scalar(summary.SerializeAsString()));
  return absl::OkStatus();
}

}  // namespace

SLUICE_OP(ScalarSummary)
    .Input("tags: string")
    .Input("values: T")
    .Output("summary: string")
    .Attr("T: realnumbertype")
    .Shape(shapes::Scalar)
    .NotDifferentiable();

SLUICE_OP(HistogramSummary)
    .Input("tag: string")
    .Input("values: T")
    .Output("summary: string")
    .Attr("T: realnumbertype = DT_FLOAT")
    .Shape(shapes::Scalar)
    .NotDifferentiable();

SLUICE_KERNEL(ScalarSummary, kCpu).Function(ScalarSummary);
SLUICE_KERNEL(HistogramSummary, kCpu).Function(HistogramSummary);

}  // namespace sluice
