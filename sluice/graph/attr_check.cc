// Checks of a node's attributes against its op, and what follows from them.
#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "sluice/base/status.h"
#include "sluice/graph/op_def.h"

namespace sluice {
namespace {

std::string_view ListKind(const AttrList& list) {
  if (!list.strings.empty()) return "list(string)";
  if (!list.ints.empty()) return "list(int)";
  if (!list.floats.empty()) return "list(float)";
  if (!list.bools.empty()) return "list(bool)";
  if (!list.types.empty()) return "list(type)";
  if (!list.shapes.empty()) return "list(shape)";
  if (!list.tensors.empty()) return "list(tensor)";
  if (!list.functions.empty()) return "list(func)";
  return "list()";
}

// "int", "list(type)", … of a value, for comparison with a definition.
std::string_view Kind(const AttrValue& value) {
  struct Name {
    std::string_view operator()(std::monostate) const { return ""; }
    std::string_view operator()(const std::string&) const { return "string"; }
    std::string_view operator()(int64_t) const { return "int"; }
    std::string_view operator()(float) const { return "float"; }
    std::string_view operator()(bool) const { return "bool"; }
    std::string_view operator()(DType) const { return "type"; }
    std::string_view operator()(const PartialShape&) const { return "shape"; }
    std::string_view operator()(const Tensor&) const { return "tensor"; }
    std::string_view operator()(const FunctionName&) const { return "func"; }
    std::string_view operator()(const AttrList& v) const { return ListKind(v); }
    std::string_view operator()(const AttrPlaceholder&) const { return ""; }
  };
  return std::visit(Name(), value.variant());
}

absl::Status CheckKind(const AttrDef& attr, const AttrValue& value) {
  // In the body of a function it is bound before the node is made.
  if (value.get<AttrPlaceholder>() != nullptr) {
    return InvalidArgument(
        "AttrValue had value with unexpected type 'placeholder'");
  }
  if (value.empty()) {
    return InvalidArgument("AttrValue missing value with expected type '",
                           attr.type, "'");
  }
  const std::string_view kind = Kind(value);
  if (kind == attr.type) return absl::OkStatus();
  // An empty list has no kind of its own.
  if (kind == "list()" && attr.type.starts_with("list(")) {
    return absl::OkStatus();
  }
  return InvalidArgument("AttrValue had value with type '", kind, "' when '",
                         attr.type, "' expected");
}

absl::Status CheckType(const AttrDef& attr, DType type) {
  if (!IsKnown(type)) {
    return InvalidArgument("AttrValue has invalid DataType enum: ",
                           static_cast<int>(type));
  }
  if (IsRef(type)) {
    return InvalidArgument("AttrValue must not have reference type value of ",
                           DTypeName(type));
  }
  const auto& allowed = attr.allowed.types;
  if (allowed.empty() || std::ranges::count(allowed, type) > 0) {
    return absl::OkStatus();
  }
  std::vector<std::string> names;
  for (DType each : allowed) names.push_back(DTypeName(each));
  return InvalidArgument(
      "Value for attr '", attr.name, "' of ", DTypeName(type),
      " is not in the list of allowed values: ", absl::StrJoin(names, ", "));
}

absl::Status CheckString(const AttrDef& attr, const std::string& text) {
  const auto& allowed = attr.allowed.strings;
  if (allowed.empty() || std::ranges::count(allowed, text) > 0) {
    return absl::OkStatus();
  }
  return InvalidArgument("Value for attr '", attr.name, "' of \"",
                         absl::CEscape(text),
                         "\" is not in the list of allowed values: \"",
                         absl::StrJoin(allowed, "\", \""), "\"");
}

absl::Status CheckList(const AttrDef& attr, const AttrList& list) {
  for (DType type : list.types) SLUICE_RETURN_IF_ERROR(CheckType(attr, type));
  for (const std::string& text : list.strings) {
    SLUICE_RETURN_IF_ERROR(CheckString(attr, text));
  }
  if (attr.minimum && static_cast<int64_t>(list.size()) < *attr.minimum) {
    return InvalidArgument("Length for attr '", attr.name, "' of ", list.size(),
                           " must be at least minimum ", *attr.minimum);
  }
  return absl::OkStatus();
}

absl::Status CheckAttr(const AttrDef& attr, const AttrValue& value) {
  SLUICE_RETURN_IF_ERROR(CheckKind(attr, value));
  if (const AttrList* list = value.get<AttrList>()) {
    return CheckList(attr, *list);
  }
  if (const DType* type = value.get<DType>()) return CheckType(attr, *type);
  if (const std::string* text = value.get<std::string>()) {
    return CheckString(attr, *text);
  }
  if (const int64_t* number = value.get<int64_t>();
      number && attr.minimum && *number < *attr.minimum) {
    return InvalidArgument("Value for attr '", attr.name, "' of ", *number,
                           " must be at least minimum ", *attr.minimum);
  }
  return absl::OkStatus();
}

absl::Status CheckNoOthers(const OpDef& op, std::string_view node,
                           const AttrMap& attrs) {
  for (const auto& [name, value] : attrs) {
    if (name.starts_with('_') || op.FindAttr(name) != nullptr) continue;
    return InvalidArgument(
        "NodeDef mentions attr '", name, "' not in ", OpSummary(op),
        "; NodeDef: {{node ", node,
        "}}. (Check whether your GraphDef-interpreting binary is up to date "
        "with your GraphDef-generating binary.).");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckAttrs(const OpDef& op, std::string_view node,
                        AttrMap* attrs) {
  std::vector<std::string> missing;
  for (const AttrDef& attr : op.attrs) {
    const AttrValue* value = attrs->Find(attr.name);
    if (value == nullptr) {
      if (attr.default_value) {
        attrs->Set(attr.name, *attr.default_value);
      } else {
        missing.push_back(StrCat("'", attr.name, "'"));
      }
      continue;
    }
    if (const absl::Status s = CheckAttr(attr, *value); !s.ok()) {
      return WithMessage(
          s, StrCat(s.message(), "\n\t for attr '", attr.name,
                    "'\n\t; NodeDef: {{node ", node, "}}; ", OpSummary(op)));
    }
  }
  if (!missing.empty()) {
    return InvalidArgument("NodeDef missing attr",
                           missing.size() > 1 ? "s " : " ",
                           absl::StrJoin(missing, ", "), " from ",
                           OpSummary(op), "; NodeDef: {{node ", node, "}}");
  }
  return CheckNoOthers(op, node, *attrs);
}

namespace {

// A node may not claim to have more tensors than could ever be used.
constexpr int64_t kMaxArgCount = 1 << 20;

absl::StatusOr<int64_t> CountOf(const ArgDef& arg, const AttrMap& attrs) {
  if (!arg.type_list_attr.empty()) {
    const AttrList* list = attrs.Find<AttrList>(arg.type_list_attr);
    if (list == nullptr) {
      return InvalidArgument("Missing attr '", arg.type_list_attr,
                             "' of argument '", arg.name, "'");
    }
    return static_cast<int64_t>(list->types.size());
  }
  if (arg.number_attr.empty()) return 1;
  const int64_t* count = attrs.Find<int64_t>(arg.number_attr);
  if (count == nullptr) {
    return InvalidArgument("Missing attr '", arg.number_attr, "' of argument '",
                           arg.name, "'");
  }
  if (*count < 0 || *count > kMaxArgCount) {
    return InvalidArgument("Attr '", arg.number_attr, "' of argument '",
                           arg.name, "' is ", *count,
                           "; it must be between 0 and ", kMaxArgCount);
  }
  return *count;
}

absl::Status AppendTypes(const ArgDef& arg, const AttrMap& attrs,
                         std::vector<DType>* types) {
  SLUICE_ASSIGN_OR_RETURN(const int64_t count, CountOf(arg, attrs));
  if (!arg.type_list_attr.empty()) {
    for (DType type : attrs.Find<AttrList>(arg.type_list_attr)->types) {
      types->push_back(arg.is_ref ? RefType(type) : type);
    }
    return absl::OkStatus();
  }
  DType type = arg.type;
  if (!arg.type_attr.empty()) {
    const DType* value = attrs.Find<DType>(arg.type_attr);
    if (value == nullptr) {
      return InvalidArgument("Missing attr '", arg.type_attr, "' of argument '",
                             arg.name, "'");
    }
    type = *value;
  }
  types->insert(types->end(), count, arg.is_ref ? RefType(type) : type);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> ArgCount(const ArgDef& arg, const AttrMap& attrs) {
  SLUICE_ASSIGN_OR_RETURN(const int64_t count, CountOf(arg, attrs));
  return static_cast<int>(count);
}

absl::StatusOr<std::vector<DType>> ArgTypes(std::span<const ArgDef> args,
                                            const AttrMap& attrs) {
  std::vector<DType> all;
  for (const ArgDef& arg : args) {
    SLUICE_RETURN_IF_ERROR(AppendTypes(arg, attrs, &all));
  }
  return all;
}

}  // namespace sluice
