// RegexFullMatch, StaticRegexFullMatch: whether each string as a whole matches
// a pattern in RE2's syntax.

#include <re2/re2.h>

#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"

namespace sluice {
namespace {

absl::Status MatchAll(KernelContext& ctx, const std::string& pattern) {
  const RE2 regex(pattern, RE2::Quiet);
  if (!regex.ok()) {
    return InvalidArgument("Invalid pattern: ", pattern,
                           ", error: ", regex.error());
  }
  const Tensor& in = ctx.input(0);
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, in.shape()));
  for (int64_t i = 0; i < in.size(); ++i) {
    out.mutable_data<bool>()[i] =
        RE2::FullMatch(in.data<std::string>()[i], regex);
  }
  return absl::OkStatus();
}

absl::Status RegexFullMatch(KernelContext& ctx) {
  const Tensor& pattern = ctx.input(1);
  if (pattern.rank() != 0) {
    return InvalidArgument("Pattern must be scalar, but received ",
                           pattern.shape().DebugString());
  }
  return MatchAll(ctx, pattern.scalar<std::string>());
}

absl::Status StaticRegexFullMatch(KernelContext& ctx) {
  return MatchAll(ctx, ctx.attr<std::string>("pattern"));
}

}  // namespace

SLUICE_OP(RegexFullMatch)
    .Input("input: string")
    .Input("pattern: string")
    .Output("output: bool")
    .Shape(shapes::SameAsInput)
    .NotDifferentiable();
SLUICE_KERNEL(RegexFullMatch, kCpu).Function(RegexFullMatch);

SLUICE_OP(StaticRegexFullMatch)
    .Input("input: string")
    .Output("output: bool")
    .Attr("pattern: string")
    .Shape(shapes::SameAsInput)
    .NotDifferentiable();
SLUICE_KERNEL(StaticRegexFullMatch, kCpu).Function(StaticRegexFullMatch);

}  // namespace sluice
