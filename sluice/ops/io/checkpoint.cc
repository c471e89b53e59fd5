// Saving and restoring tensors: SaveV2, RestoreV2, MergeV2Checkpoints.

#include <vector>

#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/io/bundle_writer.h"
#include "sluice/io/checkpoint_reader.h"
#include "sluice/io/missing_keys.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/io/blocking_kernel.h"

namespace sluice {
namespace {
namespace checkpoint_ops {

using Strings = std::span<const std::string>;

absl::Status CheckPrefixAndNames(const KernelContext& ctx) {
  const Tensor& prefix = ctx.input(0);
  const Tensor& names = ctx.input(1);
  const Tensor& slices = ctx.input(2);
  if (prefix.size() != 1) {
    return InvalidArgument("Input prefix should have a single element, got ",
                           prefix.size(), " instead.");
  }
  if (names.rank() != 1 || slices.rank() != 1) {
    return InvalidArgument(
        "Input tensor_names and shape_and_slices should be an 1-D tensors, "
        "got ",
        names.shape().DebugString(), " and ", slices.shape().DebugString(),
        " instead.");
  }
  if (names.size() != slices.size()) {
    return InvalidArgument(
        "tensor_names and shape_and_slices have different number of "
        "elements: ",
        names.size(), " vs. ", slices.size());
  }
  return absl::OkStatus();
}

absl::Status AddToBundle(BundleWriter& writer, const std::string& name,
                         const std::string& shape_and_slice,
                         const Tensor& tensor) {
  if (shape_and_slice.empty()) return writer.Add(name, tensor);
  SLUICE_ASSIGN_OR_RETURN(const ShapeAndSlice at,
                          ParseShapeAndSlice(shape_and_slice));
  if (at.part != tensor.shape()) {
    return InvalidArgument(
        "Slice in shape_and_slice specification does not match the shape of "
        "the tensor to save: ",
        shape_and_slice, ", tensor: ", tensor.shape().DebugString());
  }
  return writer.AddSlice(name, at.full, at.slice, tensor);
}

absl::Status Save(KernelContext& ctx) {
  constexpr int kFirstTensor = 3;
  SLUICE_RETURN_IF_ERROR(CheckPrefixAndNames(ctx));
  const Strings names = ctx.input(1).data<std::string>();
  const Strings slices = ctx.input(2).data<std::string>();
  const int tensors = ctx.num_inputs() - kFirstTensor;
  if (names.size() != static_cast<size_t>(tensors)) {
    return InvalidArgument("Got ", names.size(), " tensor names but ", tensors,
                           " tensors.");
  }
  BundleWriter writer(ctx.device().files(),
                      ctx.input(0).data<std::string>()[0]);
  for (int i = 0; i < tensors; ++i) {
    SLUICE_RETURN_IF_ERROR(
        AddToBundle(writer, names[i], slices[i], ctx.input(kFirstTensor + i)));
  }
  return writer.Finish();
}

absl::Status Restore(KernelContext& ctx) {
  SLUICE_RETURN_IF_ERROR(CheckPrefixAndNames(ctx));
  const std::string& prefix = ctx.input(0).data<std::string>()[0];
  const Strings names = ctx.input(1).data<std::string>();
  const Strings slices = ctx.input(2).data<std::string>();
  const int tensors = ctx.num_outputs();
  if (names.size() != static_cast<size_t>(tensors)) {
    return InvalidArgument("Got ", names.size(), " tensor names, but ", tensors,
                           " expected dtypes.");
  }
  SLUICE_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader,
                          CheckpointReader::Open(ctx.device().files(), prefix));
  for (int i = 0; i < tensors; ++i) {
    absl::StatusOr<Tensor> tensor =
        reader->Restore(names[i], slices[i], ctx.node().output_type(i));
    if (tensor.status().code() == absl::StatusCode::kNotFound) {
      // Unless it is a file that is missing.
      SLUICE_RETURN_IF_ERROR(MissingKeys(*reader, prefix, names));
    }
    if (absl::IsInvalidArgument(tensor.status())) {
      return InvalidArgument(ToStd(tensor.status().message()),
                             "\nThe checkpoint is ", prefix);
    }
    if (!tensor.ok()) return tensor.status();
    ctx.set_output(i, *std::move(tensor));
  }
  return absl::OkStatus();
}

absl::Status RestoreShape(ShapeContext& c) {
  SLUICE_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  SLUICE_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  SLUICE_RETURN_IF_ERROR(c.WithRank(2, 1).status());
  SLUICE_RETURN_IF_ERROR(c.Merge(1, 2).status());
  const std::optional<Tensor> slices = c.input_value(2);
  for (int i = 0; i < c.num_outputs(); ++i) {
    PartialShape shape;
    if (slices.has_value() && i < slices->size()) {
      const std::string& text = slices->data<std::string>()[i];
      if (!text.empty()) {
        SLUICE_ASSIGN_OR_RETURN(ShapeAndSlice at, ParseShapeAndSlice(text));
        shape = at.part;
      }
    }
    c.set_output(i, std::move(shape));
  }
  return absl::OkStatus();
}

absl::Status SaveShape(ShapeContext& c) {
  SLUICE_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  SLUICE_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  SLUICE_RETURN_IF_ERROR(c.WithRank(2, 1).status());
  return c.Merge(1, 2).status();
}

absl::Status Merge(KernelContext& ctx) {
  const Tensor& prefixes = ctx.input(0);
  const Tensor& destination = ctx.input(1);
  if (prefixes.rank() != 1) {
    return InvalidArgument(
        "Input checkpoint_prefixes should be an 1-D tensor, got ",
        prefixes.shape().DebugString(), " instead.");
  }
  if (destination.rank() != 0) {
    return InvalidArgument(
        "Input destination_prefix should be a scalar tensor, got ",
        destination.shape().DebugString(), " instead.");
  }
  const Strings parts = prefixes.data<std::string>();
  return MergeBundles(ctx.device().files(), {parts.begin(), parts.end()},
                      destination.scalar<std::string>(),
                      ctx.attr<bool>("delete_old_dirs"));
}

absl::Status MergeShape(ShapeContext& c) {
  SLUICE_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  return c.WithRank(1, 0).status();
}

}  // namespace checkpoint_ops
}  // namespace

SLUICE_OP(SaveV2)
    .Input("prefix: string")
    .Input("tensor_names: string")
    .Input("shape_and_slices: string")
    .Input("tensors: dtypes")
    .Attr("dtypes: list(type) >= 1")
    .Stateful()
    .Shape(checkpoint_ops::SaveShape);

SLUICE_OP(RestoreV2)
    .Input("prefix: string")
    .Input("tensor_names: string")
    .Input("shape_and_slices: string")
    .Output("tensors: dtypes")
    .Attr("dtypes: list(type) >= 1")
    .Stateful()
    .Shape(checkpoint_ops::RestoreShape)
    .NotDifferentiable();

SLUICE_OP(MergeV2Checkpoints)
    .Input("checkpoint_prefixes: string")
    .Input("destination_prefix: string")
    .Attr("delete_old_dirs: bool = true")
    .Stateful()
    .Shape(checkpoint_ops::MergeShape);

SLUICE_KERNEL(SaveV2, kCpu).Class<BlockingKernel<checkpoint_ops::Save>>();
SLUICE_KERNEL(RestoreV2, kCpu).Class<BlockingKernel<checkpoint_ops::Restore>>();
SLUICE_KERNEL(MergeV2Checkpoints, kCpu)
    .Class<BlockingKernel<checkpoint_ops::Merge>>();
}  // namespace sluice
