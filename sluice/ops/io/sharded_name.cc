// ShardedFilename and ShardedFilespec: names of the parts of sharded files.

#include "absl/strings/str_format.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"

namespace sluice {
namespace {

absl::Status CheckShardArguments(const KernelContext& ctx) {
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    if (ctx.input(i).rank() != 0) {
      return InvalidArgument(ctx.node().op().def.inputs[i].name,
                             " must be a scalar, got shape ",
                             ctx.input(i).shape().DebugString());
    }
  }
  return absl::OkStatus();
}

absl::Status ShardedFilename(KernelContext& ctx) {
  SLUICE_RETURN_IF_ERROR(CheckShardArguments(ctx));
  ctx.set_output(
      0, Tensor::Scalar(absl::StrFormat(
             "%s-%05d-of-%05d", ctx.input(0).scalar<std::string>(),
             ctx.input(1).scalar<int32_t>(), ctx.input(2).scalar<int32_t>())));
  return absl::OkStatus();
}

absl::Status ShardedFilespec(KernelContext& ctx) {
  SLUICE_RETURN_IF_ERROR(CheckShardArguments(ctx));
  ctx.set_output(
      0, Tensor::Scalar(absl::StrFormat("%s-\?\?\?\?\?-of-%05d",
                                        ctx.input(0).scalar<std::string>(),
                                        ctx.input(1).scalar<int32_t>())));
  return absl::OkStatus();
}

}  // namespace

SLUICE_OP(ShardedFilename)
    .Input("basename: string")
    .Input("shard: int32")
    .Input("num_shards: int32")
    .Output("filename: string")
    .Shape(shapes::Scalar)
    .NotDifferentiable();

SLUICE_OP(ShardedFilespec)
    .Input("basename: string")
    .Input("num_shards: int32")
    .Output("filename: string")
    .Shape(shapes::Scalar)
    .NotDifferentiable();

SLUICE_KERNEL(ShardedFilename, kCpu).Function(ShardedFilename);
SLUICE_KERNEL(ShardedFilespec, kCpu).Function(ShardedFilespec);

}  // namespace sluice
