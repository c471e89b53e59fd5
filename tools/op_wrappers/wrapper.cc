#include "tools/op_wrappers/wrapper.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <vector>

#include "sluice/base/status.h"

namespace sluice::tools {
namespace {

constexpr size_t kColumns = 80;
// As many as "numbertype" has in a definition.
constexpr size_t kNumberTypes = 17;

// A name of the definition as a C++ name.
std::string Identifier(const std::string& name) {
  static const std::set<std::string> taken = {
      // C++'s own words, and what every function calls its own.
      "alignas",   "alignof",   "and",      "asm",      "auto",      "bool",
      "break",     "case",      "catch",    "char",     "class",     "concept",
      "const",     "constexpr", "continue", "default",  "delete",    "do",
      "double",    "else",      "enum",     "explicit", "export",    "extern",
      "false",     "float",     "for",      "friend",   "goto",      "if",
      "inline",    "int",       "long",     "mutable",  "namespace", "new",
      "noexcept",  "not",       "nullptr",  "operator", "or",        "private",
      "protected", "public",    "register", "requires", "return",    "short",
      "signed",    "sizeof",    "static",   "struct",   "switch",    "template",
      "this",      "throw",     "true",     "try",      "typedef",   "typeid",
      "typename",  "union",     "unsigned", "using",    "virtual",   "void",
      "volatile",  "while",     "xor",      "scope",    "options",   "call"};
  return taken.contains(name) ? name + "_" : name;
}

// Whether the inputs say what this attr is.
bool IsInferred(const OpDef& op, const AttrDef& attr) {
  return std::ranges::any_of(op.inputs, [&](const ArgDef& arg) {
    return arg.type_attr == attr.name || arg.number_attr == attr.name ||
           arg.type_list_attr == attr.name;
  });
}

std::vector<const AttrDef*> RequiredAttrs(const OpDef& op) {
  std::vector<const AttrDef*> attrs;
  for (const AttrDef& attr : op.attrs) {
    if (!IsInferred(op, attr) && !attr.default_value) attrs.push_back(&attr);
  }
  return attrs;
}

std::vector<const AttrDef*> OptionalAttrs(const OpDef& op) {
  std::vector<const AttrDef*> attrs;
  for (const AttrDef& attr : op.attrs) {
    if (!IsInferred(op, attr) && attr.default_value) attrs.push_back(&attr);
  }
  return attrs;
}

std::string CppType(const std::string& attr_type) {
  if (attr_type.starts_with("list(")) {
    return "std::vector<" + CppType(attr_type.substr(5, attr_type.size() - 6)) +
           ">";
  }
  if (attr_type == "int") return "int64_t";
  if (attr_type == "type") return "DType";
  if (attr_type == "shape") return "PartialShape";
  if (attr_type == "string") return "std::string";
  if (attr_type == "tensor") return "Tensor";
  if (attr_type == "func") return "FunctionName";
  return attr_type;  // float, bool
}

// Numbers and types go by value.
std::string ParameterType(const std::string& attr_type) {
  const std::string type = CppType(attr_type);
  const bool small =
      type == "int64_t" || type == "float" || type == "bool" || type == "DType";
  return small ? type : "const " + type + "&";
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (c >= ' ' && c <= '~') {
      quoted += c;
    } else {
      char octal[8];
      std::snprintf(octal, sizeof(octal), "\\%03o",
                    static_cast<unsigned char>(c));
      quoted += octal;
    }
  }
  return quoted + "\"";
}

std::string Text(bool value) { return value ? "true" : "false"; }
std::string Text(int64_t value) {
  // The smallest one cannot be written with a minus.
  if (value == INT64_MIN) return "INT64_MIN";
  return std::to_string(value);
}
std::string Text(float value) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.6g", value);
  if (std::strtof(text, nullptr) != value) {
    std::snprintf(text, sizeof(text), "%.9g", value);
  }
  const bool whole =
      std::string_view(text).find_first_of(".e") == std::string_view::npos;
  return text + std::string(whole ? ".0f" : "f");
}
std::string Text(DType value) {
  // "DType::kFloat"; the enumerators are the names in camel case.
  std::string name = DTypeName(value);
  name[0] = static_cast<char>(std::toupper(name[0]));
  return "DType::k" + name;
}
std::string Text(const std::string& value) { return Quoted(value); }
std::string Text(const PartialShape& value) {
  if (!value.known_rank()) return "PartialShape()";
  std::string dims;
  for (const int64_t dim : value.dims()) {
    dims += (dims.empty() ? "" : ", ") + Text(dim);
  }
  return value.rank() == 0 ? "PartialShape::Scalar()"
                           : "PartialShape({" + dims + "})";
}

template <typename T>
std::string ListText(const std::vector<T>& values) {
  std::string text;
  for (const auto& value : values) {
    text += (text.empty() ? "" : ", ") + Text(value);
  }
  return "{" + text + "}";
}

// The initializer of an optional attr. Tensors and functions have none: one
// that is not set is left to the op's default.
std::string DefaultText(const AttrValue& value) {
  if (const auto* v = value.get<bool>()) return " = " + Text(*v);
  if (const auto* v = value.get<int64_t>()) return " = " + Text(*v);
  if (const auto* v = value.get<float>()) return " = " + Text(*v);
  if (const auto* v = value.get<DType>()) return " = " + Text(*v);
  if (const auto* v = value.get<std::string>()) return " = " + Text(*v);
  if (const auto* v = value.get<PartialShape>()) return " = " + Text(*v);
  if (const auto* list = value.get<AttrList>()) {
    if (!list->ints.empty()) return " = " + ListText(list->ints);
    if (!list->floats.empty()) return " = " + ListText(list->floats);
    if (!list->bools.empty()) return " = " + ListText(list->bools);
    if (!list->types.empty()) return " = " + ListText(list->types);
    if (!list->strings.empty()) return " = " + ListText(list->strings);
    if (!list->shapes.empty()) return " = " + ListText(list->shapes);
  }
  return " = {}";
}

std::string OptionsName(const OpDef& op) { return op.name + "Options"; }
std::string OutputsName(const OpDef& op) { return op.name + "Outputs"; }

std::string OutputType(const ArgDef& arg) {
  return arg.is_list() ? "std::vector<Output>" : "Output";
}

std::string ReturnType(const OpDef& op) {
  if (op.outputs.empty()) return "Node*";
  if (op.outputs.size() == 1) return OutputType(op.outputs[0]);
  return OutputsName(op);
}

std::string Signature(const OpDef& op, bool with_defaults) {
  std::vector<std::string> parameters = {"const Scope& scope"};
  for (const ArgDef& arg : op.inputs) {
    parameters.push_back(
        std::string(arg.is_list() ? "const InputList& " : "const Input& ") +
        Identifier(arg.name));
  }
  for (const AttrDef* attr : RequiredAttrs(op)) {
    parameters.push_back(ParameterType(attr->type) + " " +
                         Identifier(attr->name));
  }
  if (!OptionalAttrs(op).empty()) {
    parameters.push_back("const " + OptionsName(op) + "& options" +
                         (with_defaults ? " = {}" : ""));
  }
  std::string text = ReturnType(op) + " " + op.name + "(";
  size_t column = text.size();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string piece =
        parameters[i] + (i + 1 < parameters.size() ? "," : ")");
    if (i > 0 && column + piece.size() + 3 > kColumns) {
      text += "\n    ";
      column = 4;
    } else if (i > 0) {
      text += " ";
      ++column;
    }
    text += piece;
    column += piece.size();
  }
  return text;
}

// "a: T", "values: N * T", "ref: Ref(float)".
std::string ArgText(const ArgDef& arg) {
  std::string type = !arg.type_list_attr.empty() ? arg.type_list_attr
                     : !arg.type_attr.empty()    ? arg.type_attr
                                                 : DTypeName(arg.type);
  if (arg.is_ref) type = "Ref(" + type + ")";
  if (!arg.number_attr.empty()) type = arg.number_attr + " * " + type;
  return arg.name + ": " + type;
}

std::string ArgsText(const std::vector<ArgDef>& args) {
  std::string text;
  for (const ArgDef& arg : args) {
    text += (text.empty() ? "" : ", ") + ArgText(arg);
  }
  return text;
}

// `text` as comment lines.
std::string Comment(const std::string& text) {
  std::string comment = "//";
  size_t column = 2;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (column + 1 + word.size() > kColumns) {
      comment += "\n//    ";
      column = 6;
    }
    comment += " " + word;
    column += 1 + word.size();
    at = end + 1;
  }
  return comment + "\n";
}

std::string Comments(const OpDef& op) {
  std::string signature = op.name + "(" + ArgsText(op.inputs) + ")";
  if (!op.outputs.empty()) signature += " -> " + ArgsText(op.outputs);
  std::string text = Comment(signature);
  for (const AttrDef& attr : op.attrs) {
    if (attr.allowed.types.empty()) continue;
    if (attr.allowed.types.size() == kNumberTypes) {
      text += Comment(attr.name + " is any type of number");
      continue;
    }
    std::string types;
    for (const DType type : attr.allowed.types) {
      types += (types.empty() ? "" : ", ") + DTypeName(type);
    }
    text += Comment(attr.name + " is one of " + types);
  }
  return text;
}

}  // namespace

std::string Declaration(const OpDef& op) {
  std::string text;
  const std::vector<const AttrDef*> optional = OptionalAttrs(op);
  if (!optional.empty()) {
    text += "struct " + OptionsName(op) + " {\n";
    for (const AttrDef* attr : optional) {
      text += "  " + CppType(attr->type) + " " + Identifier(attr->name) +
              DefaultText(*attr->default_value) + ";\n";
    }
    text += "};\n";
  }
  if (op.outputs.size() > 1) {
    text += "struct " + OutputsName(op) + " {\n";
    for (const ArgDef& arg : op.outputs) {
      text += "  " + OutputType(arg) + " " + Identifier(arg.name) + ";\n";
    }
    text += "};\n";
  }
  return text + Comments(op) + Signature(op, /*with_defaults=*/true) + ";\n";
}

std::string Definition(const OpDef& op) {
  std::string text = Signature(op, /*with_defaults=*/false) +
                     " {\n  OpCall call(scope, \"" + op.name + "\");\n";
  for (const ArgDef& arg : op.inputs) {
    text += "  call.In(" + Identifier(arg.name) + ");\n";
  }
  for (const AttrDef* attr : RequiredAttrs(op)) {
    text += "  call.Attr(\"" + attr->name + "\", " + Identifier(attr->name) +
            ");\n";
  }
  for (const AttrDef* attr : OptionalAttrs(op)) {
    text += "  call.Attr(\"" + attr->name + "\", options." +
            Identifier(attr->name) + ");\n";
  }
  if (op.outputs.empty()) return text + "  return call.Result();\n}\n";
  if (op.outputs.size() == 1) {
    return text + (op.outputs[0].is_list() ? "  return call.Many();\n}\n"
                                           : "  return call.One();\n}\n");
  }
  std::string members;
  for (const ArgDef& arg : op.outputs) {
    members += members.empty() ? "" : ", ";
    members += arg.is_list() ? "call.NextList()" : "call.Next()";
  }
  return text + "  return {" + members + "};\n}\n";
}

}  // namespace sluice::tools
