#include "sluice/ops/state/signature.h"

#include "absl/strings/str_join.h"
#include "sluice/base/status.h"

namespace sluice {
namespace {

std::string SignatureText(const std::vector<DType>& types) {
  return absl::StrJoin(types, ", ", [](std::string* text, DType type) {
    *text += DTypeName(type);
  });
}

}  // namespace

absl::Status MatchSignature(const KernelContext& ctx,
                            const std::vector<DType>& inputs,
                            const std::vector<DType>& outputs) {
  const Node& node = ctx.node();
  std::vector<DType> have_inputs, have_outputs;
  for (int i = 0; i < node.num_inputs(); ++i) {
    have_inputs.push_back(node.input_type(i));
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    have_outputs.push_back(node.output_type(i));
  }
  if (have_inputs == inputs && have_outputs == outputs) {
    return absl::OkStatus();
  }
  return InvalidArgument(
      "Signature mismatch, have: ", SignatureText(have_inputs), "->",
      SignatureText(have_outputs), " expected: ", SignatureText(inputs), "->",
      SignatureText(outputs));
}

}  // namespace sluice
