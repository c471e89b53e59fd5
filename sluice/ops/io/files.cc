// ReadFile, WriteFile, MatchingFiles: whole files and names of files.

#include <algorithm>
#include <vector>

#include "sluice/base/file.h"
#include "sluice/base/path.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/io/blocking_kernel.h"

namespace sluice {
namespace {
namespace file_ops {

absl::Status CheckScalar(const KernelContext& ctx, int i,
                         std::string_view what) {
  if (ctx.input(i).rank() == 0) return absl::OkStatus();
  return InvalidArgument(what, " tensor must be scalar, but had shape: ",
                         ctx.input(i).shape().DebugString());
}

absl::Status Read(KernelContext& ctx) {
  SLUICE_RETURN_IF_ERROR(CheckScalar(ctx, 0, "Input filename"));
  SLUICE_ASSIGN_OR_RETURN(
      std::string contents,
      ctx.device().files().ReadFile(ctx.input(0).scalar<std::string>()));
  ctx.set_output(0, Tensor::Scalar(std::move(contents)));
  return absl::OkStatus();
}

absl::Status Write(KernelContext& ctx) {
  SLUICE_RETURN_IF_ERROR(CheckScalar(ctx, 0, "Input filename"));
  SLUICE_RETURN_IF_ERROR(CheckScalar(ctx, 1, "Contents"));
  const std::string& path = ctx.input(0).scalar<std::string>();
  const std::string dir(DirName(path));
  if (!dir.empty()) SLUICE_RETURN_IF_ERROR(ctx.device().files().MkDirs(dir));
  return ctx.device().files().WriteFile(path,
                                        ctx.input(1).scalar<std::string>());
}

absl::Status Match(KernelContext& ctx) {
  const Tensor& patterns = ctx.input(0);
  if (patterns.rank() > 1) {
    return InvalidArgument(
        "Input patterns tensor must be scalar or vector, but had shape: ",
        patterns.shape().DebugString());
  }
  std::vector<std::string> found;
  for (const std::string& pattern : patterns.data<std::string>()) {
    SLUICE_ASSIGN_OR_RETURN(std::vector<std::string> paths,
                            ctx.device().files().Glob(pattern));
    found.insert(found.end(), paths.begin(), paths.end());
  }
  std::sort(found.begin(), found.end());
  SLUICE_ASSIGN_OR_RETURN(
      Tensor & out, ctx.Output(0, Shape({static_cast<int64_t>(found.size())})));
  std::move(found.begin(), found.end(),
            out.mutable_data<std::string>().begin());
  return absl::OkStatus();
}

}  // namespace file_ops
}  // namespace

SLUICE_OP(ReadFile)
    .Input("filename: string")
    .Output("contents: string")
    .Shape([](ShapeContext& c) -> absl::Status {
      SLUICE_RETURN_IF_ERROR(c.WithRank(0, 0).status());
      return shapes::Scalar(c);
    })
    .NotDifferentiable();

SLUICE_OP(WriteFile)
    .Input("filename: string")
    .Input("contents: string")
    .Stateful()
    .Shape([](ShapeContext& c) -> absl::Status {
      SLUICE_RETURN_IF_ERROR(c.WithRank(0, 0).status());
      return c.WithRank(1, 0).status();
    });

SLUICE_OP(MatchingFiles)
    .Input("pattern: string")
    .Output("filenames: string")
    .Shape([](ShapeContext& c) -> absl::Status {
      c.set_output(0, PartialShape({-1}));
      return absl::OkStatus();
    })
    .NotDifferentiable();

SLUICE_KERNEL(ReadFile, kCpu).Class<BlockingKernel<file_ops::Read>>();
SLUICE_KERNEL(WriteFile, kCpu).Class<BlockingKernel<file_ops::Write>>();
SLUICE_KERNEL(MatchingFiles, kCpu).Class<BlockingKernel<file_ops::Match>>();

}  // namespace sluice
