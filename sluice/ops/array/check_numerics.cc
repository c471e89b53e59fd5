// CheckNumerics: passes its input on if every element is finite.
#include "sluice/graph/scope.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/numeric/non_finite.h"

namespace sluice {
namespace {
namespace check_numerics_op {

NonFinite Find(const Tensor& x) {
  switch (x.dtype()) {
    case DType::kFloat:
      return FindNonFinite(static_cast<const uint32_t*>(x.raw()), x.size(),
                           /*exponent=*/0x7f800000u);
    case DType::kDouble:
      return FindNonFinite(static_cast<const uint64_t*>(x.raw()), x.size(),
                           /*exponent=*/uint64_t{0x7ff} << 52);
    case DType::kHalf:
      return FindNonFinite(static_cast<const uint16_t*>(x.raw()), x.size(),
                           /*exponent=*/0x7c00);
    default:  // bfloat16
      return FindNonFinite(static_cast<const uint16_t*>(x.raw()), x.size(),
                           /*exponent=*/0x7f80);
  }
}

absl::Status Check(KernelContext& ctx) {
  const NonFinite found = Find(ctx.input(0));
  if (found.any()) {
    const char* what = !found.nan ? "Inf" : !found.inf ? "NaN" : "Inf and NaN";
    return InvalidArgument(ctx.attr<std::string>("message"), " : Tensor had ",
                           what, " values");
  }
  ctx.set_output(0, ctx.input(0));
  return absl::OkStatus();
}

}  // namespace check_numerics_op
}  // namespace

SLUICE_OP(CheckNumerics)
    .Input("tensor: T")
    .Output("output: T")
    .Attr("T: {bfloat16, half, float, double}")
    .Attr("message: string")
    .Stateful()
    .Shape(shapes::SameAsInput)
    .Gradient([](Scope& scope, const Node& op,
                 std::span<const Output> dy) -> Grads {
      return std::vector<Grad>{scope.Add(
          "CheckNumerics", {dy[0]},
          {{"message",
            StrCat("Not a number (NaN) or infinity (Inf) values detected in "
                   "gradient. b'",
                   op.attr<std::string>("message"), "'")}})};
    });

SLUICE_KERNEL(CheckNumerics, kCpu).Function(check_numerics_op::Check);

}  // namespace sluice
