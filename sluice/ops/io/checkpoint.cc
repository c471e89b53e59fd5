// Saving and restoring tensors: SaveV2, RestoreV2, MergeV2Checkpoints, and the
// readers of V1 checkpoints, Restore and RestoreSlice.

#include <algorithm>
#include <vector>

#include "absl/strings/str_join.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/io/bundle_writer.h"
#include "sluice/io/checkpoint_reader.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/io/blocking_kernel.h"

namespace sluice {
namespace {
namespace checkpoint_ops {

using Strings = std::span<const std::string>;

// How many names a message shows at most.
constexpr size_t kMaxShown = 20;

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

std::string ListNames(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kMaxShown);
  std::string text = absl::StrJoin(names.begin(), names.begin() + shown, ", ");
  if (shown < names.size()) {
    StrAppend(&text, " and ", names.size() - shown, " more");
  }
  return text;
}

// The first line is TensorFlow's; the rest says all that is needed to see what
// went wrong in one try.
absl::Status MissingKeys(CheckpointReader& reader, const std::string& prefix,
                         Strings wanted) {
  std::vector<std::string> missing;
  for (const std::string& name : wanted) {
    if (!reader.Contains(name)) missing.push_back(name);
  }
  if (missing.empty()) return absl::OkStatus();
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  std::string text = StrCat("Key ", missing[0], " not found in checkpoint");
  if (missing.size() > 1) {
    StrAppend(&text, "\n", missing.size(), " of ", wanted.size(),
              " keys are missing: ", ListNames(missing));
  }
  std::vector<std::string> present;
  SLUICE_ASSIGN_OR_RETURN(const std::vector<CheckpointTensor> tensors,
                          reader.List());
  for (const CheckpointTensor& tensor : tensors) present.push_back(tensor.name);
  StrAppend(
      &text, "\nCheckpoint ", prefix, " holds ", present.size(),
      present.size() == 1 ? " tensor: " : " tensors: ", ListNames(present));
  return NotFound(text);
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

// Restore has no third input, RestoreSlice the slice.
absl::Status RestoreOne(KernelContext& ctx) {
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    if (ctx.input(i).size() != 1) {
      return InvalidArgument("Input ", i, " of ", ctx.node().type(),
                             " must be a string, got a tensor of shape ",
                             ctx.input(i).shape().DebugString());
    }
  }
  const std::string slice =
      ctx.num_inputs() > 2 ? ctx.input(2).scalar<std::string>() : "";
  SLUICE_ASSIGN_OR_RETURN(
      const std::unique_ptr<CheckpointReader> reader,
      CheckpointReader::Open(ctx.device().files(),
                             ctx.input(0).scalar<std::string>()));
  SLUICE_ASSIGN_OR_RETURN(
      Tensor tensor, reader->Restore(ctx.input(1).scalar<std::string>(), slice,
                                     ctx.node().output_type(0)));
  ctx.set_output(0, std::move(tensor));
  return absl::OkStatus();
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

SLUICE_OP(Restore)
    .Input("file_pattern: string")
    .Input("tensor_name: string")
    .Output("tensor: dt")
    .Attr("dt: type")
    .Attr("preferred_shard: int = -1")
    .Stateful()
    .NotDifferentiable();

SLUICE_OP(RestoreSlice)
    .Input("file_pattern: string")
    .Input("tensor_name: string")
    .Input("shape_and_slice: string")
    .Output("tensor: dt")
    .Attr("dt: type")
    .Attr("preferred_shard: int = -1")
    .Stateful()
    .NotDifferentiable();

SLUICE_KERNEL(SaveV2, kCpu).Class<BlockingKernel<checkpoint_ops::Save>>();
SLUICE_KERNEL(RestoreV2, kCpu).Class<BlockingKernel<checkpoint_ops::Restore>>();
SLUICE_KERNEL(MergeV2Checkpoints, kCpu)
    .Class<BlockingKernel<checkpoint_ops::Merge>>();
SLUICE_KERNEL(Restore, kCpu)
    .Class<BlockingKernel<checkpoint_ops::RestoreOne>>();
SLUICE_KERNEL(RestoreSlice, kCpu)
    .Class<BlockingKernel<checkpoint_ops::RestoreOne>>();

}  // namespace sluice
