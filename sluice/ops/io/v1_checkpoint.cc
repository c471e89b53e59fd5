// The ops of V1 checkpoints: Save and SaveSlices, Restore and RestoreSlice. The
// readers take V2 checkpoints too.

#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/io/checkpoint_reader.h"
#include "sluice/io/v1_writer.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/io/blocking_kernel.h"

namespace sluice {
namespace {
namespace v1_checkpoint_ops {

using Strings = std::span<const std::string>;

// Save has two inputs before the data, SaveSlices the slices too.
absl::Status SaveOld(KernelContext& ctx) {
  const bool sliced = ctx.node().type() == "SaveSlices";
  const int first = sliced ? 3 : 2;
  const int tensors = ctx.num_inputs() - first;
  if (ctx.input(0).size() != 1) {
    return InvalidArgument(
        "Input 0 (filename) must be a string scalar; got a "
        "tensor of ",
        ctx.input(0).size(), " elements");
  }
  const Strings names = ctx.input(1).data<std::string>();
  if (names.size() != static_cast<size_t>(tensors)) {
    return InvalidArgument(
        "Size of the tensor_names vector must be equal to "
        "the number of tensors to save, got ",
        names.size(), " names and ", tensors, " tensors");
  }
  if (sliced && ctx.input(2).size() != tensors) {
    return InvalidArgument("Input 2 (shapes_and_slices) must be of size ",
                           tensors, ", got ", ctx.input(2).size());
  }
  V1CheckpointWriter writer(ctx.device().files(),
                            ctx.input(0).data<std::string>()[0]);
  for (int i = 0; i < tensors; ++i) {
    const Tensor& tensor = ctx.input(first + i);
    const std::string text = sliced ? ctx.input(2).data<std::string>()[i] : "";
    if (text.empty()) {
      SLUICE_RETURN_IF_ERROR(writer.Add(
          names[i], tensor.shape(), TensorSlice::Full(tensor.rank()), tensor));
      continue;
    }
    SLUICE_ASSIGN_OR_RETURN(const ShapeAndSlice at, ParseShapeAndSlice(text));
    if (at.part != tensor.shape()) {
      return InvalidArgument(
          "Slice in shape_and_slice specification does not match the shape of "
          "the tensor to save: ",
          text, ", tensor: ", tensor.shape().DebugString());
    }
    SLUICE_RETURN_IF_ERROR(writer.Add(names[i], at.full, at.slice, tensor));
  }
  return writer.Finish();
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

}  // namespace v1_checkpoint_ops
}  // namespace

SLUICE_OP(Save)
    .Input("filename: string")
    .Input("tensor_names: string")
    .Input("data: T")
    .Attr("T: list(type) >= 1")
    .Stateful();

SLUICE_OP(SaveSlices)
    .Input("filename: string")
    .Input("tensor_names: string")
    .Input("shapes_and_slices: string")
    .Input("data: T")
    .Attr("T: list(type) >= 1")
    .Stateful();

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

SLUICE_KERNEL(Save, kCpu).Class<BlockingKernel<v1_checkpoint_ops::SaveOld>>();
SLUICE_KERNEL(SaveSlices, kCpu)
    .Class<BlockingKernel<v1_checkpoint_ops::SaveOld>>();
SLUICE_KERNEL(Restore, kCpu)
    .Class<BlockingKernel<v1_checkpoint_ops::RestoreOne>>();
SLUICE_KERNEL(RestoreSlice, kCpu)
    .Class<BlockingKernel<v1_checkpoint_ops::RestoreOne>>();

}  // namespace sluice
