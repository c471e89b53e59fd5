// ScalarSummary and HistogramSummary: numbers of a step for TensorBoard.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>

#include "sluice/base/logging.h"
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

// Adds the values of a tensor, a part at a time. Returns how many were left
// out because they are not finite, if that is fine.
absl::StatusOr<int64_t> AddToHistogram(const Tensor& values,
                                       std::string_view name, bool skip,
                                       Histogram& histogram) {
  constexpr int64_t kPart = 512;
  double part[kPart];
  int64_t skipped = 0;
  for (int64_t i = 0; i < values.size(); i += kPart) {
    const int64_t n = std::min(kPart, values.size() - i);
    if (!RealValues(values, i, n, part)) {
      return Unimplemented("Histogram of ", DTypeName(values.dtype()));
    }
    const auto finite = [](double value) { return std::isfinite(value); };
    double* const first = std::find_if_not(part, part + n, finite);
    if (first != part + n && !skip) {
      return InvalidArgument(std::isnan(*first) ? "Nan" : "Infinity",
                             " in summary histogram for: ", name);
    }
    double* const end = std::partition(first, part + n, finite);
    skipped += part + n - end;
    histogram.Add(std::span(part, end));
  }
  return skipped;
}

// TensorFlow's histograms end the step for a NaN. The annotation
// `_skip_nonfinite` of a node, or SLUICE_HISTOGRAM_SKIP_NONFINITE=1, makes one
// leave such values out and say so once.
class HistogramKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& node) {
    const char* const all = std::getenv("SLUICE_HISTOGRAM_SKIP_NONFINITE");
    const bool skip = node.attr<bool>("_skip_nonfinite") ||
                      (all != nullptr && std::string_view(all) == "1");
    return std::make_unique<HistogramKernel>(skip);
  }
  explicit HistogramKernel(bool skip) : skip_(skip) {}

  absl::Status Run(KernelContext& ctx) override {
    const Tensor& tag = ctx.input(0);
    if (tag.rank() != 0) return InvalidArgument("tags must be scalar");
    Histogram histogram;
    SLUICE_ASSIGN_OR_RETURN(
        const int64_t skipped,
        AddToHistogram(ctx.input(1), ctx.node().name(), skip_, histogram));
    if (skipped > 0 && !said_.exchange(true)) {
      SLUICE_LOG(WARNING) << "Histogram " << tag.scalar<std::string>()
                          << " leaves out " << skipped << " of "
                          << ctx.input(1).size()
                          << " values, which are not finite";
    }
    pb::Summary summary;
    pb::Summary::Value* value = summary.add_value();
    value->set_tag(tag.scalar<std::string>());
    histogram.ToProto(value->mutable_histo());
    ctx.set_output(0, Tensor::Scalar(summary.SerializeAsString()));
    return absl::OkStatus();
  }

 private:
  const bool skip_;
  std::atomic<bool> said_{false};
};

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
SLUICE_KERNEL(HistogramSummary, kCpu).Class<HistogramKernel>();

}  // namespace sluice
