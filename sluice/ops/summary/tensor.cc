// TensorSummaryV2, TensorSummary: any tensor for a TensorBoard plugin.
// MergeSummary: several summaries as one.

#include "absl/container/flat_hash_set.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/proto/summary.pb.h"
#include "sluice/tensor/codec.h"

namespace sluice {
namespace {

// Strings go in the field that every reader knows.
absl::Status SetSummaryTensor(const Tensor& tensor, pb::Summary::Value* value) {
  if (tensor.dtype() == DType::kString) {
    TensorToTypedProto(tensor, value->mutable_tensor());
    return absl::OkStatus();
  }
  if (ElementSize(tensor.dtype()) == 0) {
    return Unimplemented("Summary of ", DTypeName(tensor.dtype()));
  }
  TensorToProto(tensor, value->mutable_tensor());
  return absl::OkStatus();
}

absl::Status TensorSummaryV2(KernelContext& ctx) {
  const Tensor& tag = ctx.input(0);
  const Tensor& metadata = ctx.input(2);
  if (tag.rank() != 0) return InvalidArgument("tag must be scalar");
  if (metadata.rank() != 0) {
    return InvalidArgument("serialized_summary_metadata must be scalar");
  }
  pb::Summary summary;
  pb::Summary::Value* value = summary.add_value();
  value->set_tag(tag.scalar<std::string>());
  SLUICE_RETURN_IF_ERROR(SetSummaryTensor(ctx.input(1), value));
  if (!value->mutable_metadata()->ParseFromString(
          metadata.scalar<std::string>())) {
    return InvalidArgument(
        "serialized_summary_metadata is no SummaryMetadata, for tag ",
        tag.scalar<std::string>());
  }
  ctx.set_output(0, Tensor::Scalar(summary.SerializeAsString()));
  return absl::OkStatus();
}

absl::Status TensorSummary(KernelContext& ctx) {
  pb::Summary summary;
  pb::Summary::Value* value = summary.add_value();
  value->set_node_name(ctx.node().name());
  SLUICE_RETURN_IF_ERROR(SetSummaryTensor(ctx.input(0), value));
  ctx.set_output(0, Tensor::Scalar(summary.SerializeAsString()));
  return absl::OkStatus();
}

absl::Status MergeSummary(KernelContext& ctx) {
  absl::flat_hash_set<std::string> tags;
  std::string merged;
  pb::Summary summary;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    for (const std::string& part : ctx.input(i).data<std::string>()) {
      if (!summary.ParseFromString(part)) {
        return InvalidArgument("Could not parse one of the summary inputs");
      }
      for (const pb::Summary::Value& value : summary.value()) {
        // Old tensor summaries have no tag.
        if (value.tag().empty() || tags.insert(value.tag()).second) continue;
        return InvalidArgument("Duplicate tag ", value.tag(),
                               " found in summary inputs");
      }
      // The bytes of messages one after the other are those of the merged one.
      merged += part;
    }
  }
  ctx.set_output(0, Tensor::Scalar(std::move(merged)));
  return absl::OkStatus();
}

}  // namespace

SLUICE_OP(TensorSummaryV2)
    .Input("tag: string")
    .Input("tensor: T")
    .Input("serialized_summary_metadata: string")
    .Output("summary: string")
    .Attr("T: type")
    .Shape(shapes::Scalar)
    .NotDifferentiable();

SLUICE_OP(TensorSummary)
    .Input("tensor: T")
    .Output("summary: string")
    .Attr("T: type")
    .Attr("description: string = ''")
    .Attr("labels: list(string) = []")
    .Attr("display_name: string = ''")
    .Shape(shapes::Scalar)
    .NotDifferentiable();

SLUICE_OP(MergeSummary)
    .Input("inputs: N * string")
    .Output("summary: string")
    .Attr("N: int >= 1")
    .Shape(shapes::Scalar)
    .NotDifferentiable();

SLUICE_KERNEL(TensorSummaryV2, kCpu).Function(TensorSummaryV2);
SLUICE_KERNEL(TensorSummary, kCpu).Function(TensorSummary);
SLUICE_KERNEL(MergeSummary, kCpu).Function(MergeSummary);

}  // namespace sluice
