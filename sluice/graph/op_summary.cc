#include "absl/strings/str_join.h"
#include "sluice/base/strings.h"
#include "sluice/graph/op_def.h"

namespace sluice {
namespace {

std::string ArgText(const ArgDef& arg) {
  std::string type = arg.type_attr;
  if (!arg.type_list_attr.empty()) type = arg.type_list_attr;
  if (type.empty()) type = DTypeName(arg.type);
  if (!arg.number_attr.empty()) type = StrCat(arg.number_attr, "*", type);
  if (arg.is_ref) type = StrCat("Ref(", type, ")");
  return StrCat(arg.name, ":", type);
}

std::string ArgsText(const std::vector<ArgDef>& args) {
  std::vector<std::string> texts;
  for (const ArgDef& arg : args) texts.push_back(ArgText(arg));
  return absl::StrJoin(texts, ", ");
}

std::string AttrText(const AttrDef& attr) {
  std::string text = StrCat(attr.name, ":", attr.type);
  if (attr.default_value) {
    StrAppend(&text, ",default=", attr.default_value->DebugString());
  }
  if (attr.minimum) StrAppend(&text, ",min=", *attr.minimum);
  if (attr.allowed.size() > 0) {
    StrAppend(&text, ",allowed=", AttrValue(attr.allowed).DebugString());
  }
  return text;
}

}  // namespace

std::string OpSummary(const OpDef& op) {
  std::string text =
      StrCat("Op<name=", op.name, "; signature=", ArgsText(op.inputs), " -> ",
             ArgsText(op.outputs));
  for (const AttrDef& attr : op.attrs) {
    StrAppend(&text, "; attr=", AttrText(attr));
  }
  if (op.commutative) text += "; is_commutative=true";
  if (op.aggregate) text += "; is_aggregate=true";
  if (op.stateful) text += "; is_stateful=true";
  if (op.allows_uninitialized_input) {
    text += "; allows_uninitialized_input=true";
  }
  return text + ">";
}

}  // namespace sluice
