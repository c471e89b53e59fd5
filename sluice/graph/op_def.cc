#include "sluice/graph/op_def.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "sluice/base/status.h"

namespace sluice {
namespace {

std::string_view Trim(std::string_view text) {
  return ToStd(absl::StripAsciiWhitespace(ToAbsl(text)));
}

bool Consume(std::string_view* text, std::string_view word) {
  std::string_view rest = Trim(*text);
  if (!rest.starts_with(word)) return false;
  *text = rest.substr(word.size());
  return true;
}

std::string_view TakeWord(std::string_view* text) {
  const std::string_view rest = Trim(*text);
  size_t n = 0;
  while (n < rest.size() && (isalnum(static_cast<unsigned char>(rest[n])) ||
                             rest[n] == '_')) {
    ++n;
  }
  *text = rest.substr(n);
  return rest.substr(0, n);
}

// The types behind the group words of attr definitions.
std::vector<DType> TypeGroup(std::string_view word) {
  using enum DType;
  const std::vector<DType> real = {kFloat, kDouble, kInt32,  kUint8, kInt16,
                                   kInt8,  kInt64,  kBfloat16, kUint16,
                                   kHalf,  kUint32, kUint64};
  if (word == "realnumbertype") return real;
  if (word == "numbertype") {
    return {kFloat,  kDouble, kInt32,    kUint8,  kInt16,      kInt8,
            kComplex64, kInt64, kQint8,  kQuint8, kQint32,     kBfloat16,
            kUint16, kComplex128, kHalf, kUint32, kUint64};
  }
  if (word == "quantizedtype") return {kQint8, kQuint8, kQint32, kQint16, kQuint16};
  return {};
}

// The text up to the bracket that closes the one already consumed.
absl::StatusOr<std::string_view> TakeBracketed(std::string_view* text,
                                               char open, char close) {
  int depth = 1;
  bool quoted = false;
  for (size_t i = 0; i < text->size(); ++i) {
    const char c = (*text)[i];
    if (c == '\'' || c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == open) ++depth;
    if (c == close && --depth == 0) {
      const std::string_view inside = text->substr(0, i);
      *text = text->substr(i + 1);
      return inside;
    }
  }
  return InvalidArgument("Missing '", std::string(1, close), "' in '", *text, "'");
}

std::vector<std::string_view> SplitTopLevel(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[' || text[i] == '{' || text[i] == '(') ++depth;
    if (text[i] == ']' || text[i] == '}' || text[i] == ')') --depth;
    if (text[i] == ',' && depth == 0) {
      parts.push_back(Trim(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  const std::string_view last = Trim(text.substr(begin));
  if (!last.empty()) parts.push_back(last);
  return parts;
}

std::string Unquoted(std::string_view text) {
  text = Trim(text);
  if (text.size() >= 2 && (text.front() == '\'' || text.front() == '"') &&
      text.back() == text.front()) {
    text = text.substr(1, text.size() - 2);
  }
  return std::string(text);
}

absl::Status AllowedFromBraces(std::string_view inside, AttrDef* attr) {
  for (std::string_view part : SplitTopLevel(inside)) {
    if (part.front() == '\'' || part.front() == '"') {
      attr->type = "string";
      attr->allowed.strings.push_back(Unquoted(part));
      continue;
    }
    attr->type = "type";
    const DType type = ParseDType(part);
    if (type != DType::kInvalid) {
      attr->allowed.types.push_back(type);
      continue;
    }
    const std::vector<DType> group = TypeGroup(part);
    if (group.empty()) {
      return InvalidArgument("Unknown type '", part, "' in attr ", attr->name);
    }
    attr->allowed.types.insert(attr->allowed.types.end(), group.begin(),
                               group.end());
  }
  return absl::OkStatus();
}

// Handles "int", "{float, double}", "numbertype" and the like; fills type and
// allowed values.
absl::Status ParseAttrType(std::string_view* text, AttrDef* attr) {
  if (Consume(text, "{")) {
    SLUICE_ASSIGN_OR_RETURN(std::string_view inside,
                            TakeBracketed(text, '{', '}'));
    return AllowedFromBraces(inside, attr);
  }
  const std::string_view word = TakeWord(text);
  attr->type = std::string(word);
  const std::vector<DType> group = TypeGroup(word);
  if (!group.empty()) {
    attr->type = "type";
    attr->allowed.types = group;
  }
  return absl::OkStatus();
}

template <typename T>
absl::StatusOr<T> ParseNumber(std::string_view text) {
  T value{};
  text = Trim(text);
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return InvalidArgument("'", text, "' is not a number");
  }
  return value;
}

absl::StatusOr<PartialShape> ParseShapeText(std::string_view text) {
  text = Trim(text);
  if (text == "?" || text == "{ unknown_rank: true }") return PartialShape();
  if (text.starts_with("{")) return PartialShape::Scalar();
  if (Consume(&text, "[")) {
    SLUICE_ASSIGN_OR_RETURN(std::string_view inside,
                            TakeBracketed(&text, '[', ']'));
    PartialShape shape = PartialShape::Scalar();
    for (std::string_view part : SplitTopLevel(inside)) {
      if (part == "?") {
        shape.AddDim(-1);
        continue;
      }
      SLUICE_ASSIGN_OR_RETURN(int64_t dim, ParseNumber<int64_t>(part));
      shape.AddDim(dim);
    }
    return shape;
  }
  return InvalidArgument("'", text, "' is not a shape");
}

absl::StatusOr<AttrValue> ParseScalarValue(std::string_view type,
                                           std::string_view text) {
  text = Trim(text);
  if (type == "string") return AttrValue(Unquoted(text));
  if (type == "int") {
    SLUICE_ASSIGN_OR_RETURN(int64_t value, ParseNumber<int64_t>(text));
    return AttrValue(value);
  }
  if (type == "float") {
    SLUICE_ASSIGN_OR_RETURN(float value, ParseNumber<float>(text));
    return AttrValue(value);
  }
  if (type == "bool") return AttrValue(text == "true");
  if (type == "type") {
    const DType value = ParseDType(text);
    if (value == DType::kInvalid) {
      return InvalidArgument("'", text, "' is not a type");
    }
    return AttrValue(value);
  }
  if (type == "shape") {
    SLUICE_ASSIGN_OR_RETURN(PartialShape shape, ParseShapeText(text));
    return AttrValue(std::move(shape));
  }
  if (type == "func") return AttrValue(FunctionName{std::string(text), nullptr});
  return InvalidArgument("No defaults of type '", type, "'");
}

bool IsListType(std::string_view type) { return type.starts_with("list("); }
std::string_view ElementType(std::string_view type) {
  return IsListType(type) ? type.substr(5, type.size() - 6) : type;
}

void AppendToList(const AttrValue& value, AttrList* list) {
  if (auto* v = value.get<std::string>()) list->strings.push_back(*v);
  if (auto* v = value.get<int64_t>()) list->ints.push_back(*v);
  if (auto* v = value.get<float>()) list->floats.push_back(*v);
  if (auto* v = value.get<bool>()) list->bools.push_back(*v);
  if (auto* v = value.get<DType>()) list->types.push_back(*v);
  if (auto* v = value.get<PartialShape>()) list->shapes.push_back(*v);
  if (auto* v = value.get<FunctionName>()) list->functions.push_back(*v);
}

}  // namespace

const AttrDef* OpDef::FindAttr(std::string_view name) const {
  for (const AttrDef& attr : attrs) {
    if (attr.name == name) return &attr;
  }
  return nullptr;
}

absl::StatusOr<AttrValue> ParseAttrValue(std::string_view type,
                                         std::string_view text) {
  if (!IsListType(type)) return ParseScalarValue(type, text);
  text = Trim(text);
  if (!Consume(&text, "[")) return InvalidArgument("'", text, "' is not a list");
  SLUICE_ASSIGN_OR_RETURN(std::string_view inside,
                          TakeBracketed(&text, '[', ']'));
  AttrList list;
  for (std::string_view part : SplitTopLevel(inside)) {
    SLUICE_ASSIGN_OR_RETURN(AttrValue value,
                            ParseScalarValue(ElementType(type), part));
    AppendToList(value, &list);
  }
  return AttrValue(std::move(list));
}

absl::StatusOr<AttrDef> ParseAttr(std::string_view text) {
  const std::string_view all = text;
  AttrDef attr;
  attr.name = std::string(TakeWord(&text));
  if (attr.name.empty() || !Consume(&text, ":")) {
    return InvalidArgument("Attr definition '", all, "' has no name");
  }
  if (Consume(&text, "list(")) {
    SLUICE_RETURN_IF_ERROR(ParseAttrType(&text, &attr));
    if (!Consume(&text, ")")) return InvalidArgument("Missing ')' in '", all, "'");
    attr.type = StrCat("list(", attr.type, ")");
  } else {
    SLUICE_RETURN_IF_ERROR(ParseAttrType(&text, &attr));
  }
  if (Consume(&text, ">=")) {
    std::string_view number = Trim(text);
    const size_t end = std::min(number.find_first_not_of("-0123456789"),
                                number.size());
    SLUICE_ASSIGN_OR_RETURN(attr.minimum,
                            ParseNumber<int64_t>(number.substr(0, end)));
    text = number.substr(end);
  }
  if (Consume(&text, "=")) {
    SLUICE_ASSIGN_OR_RETURN(attr.default_value, ParseAttrValue(attr.type, text));
    text = "";
  }
  if (!Trim(text).empty()) {
    return InvalidArgument("Trailing '", text, "' in attr definition '", all, "'");
  }
  return attr;
}

absl::StatusOr<ArgDef> ParseArg(std::string_view text,
                                std::span<const AttrDef> attrs) {
  const std::string_view all = text;
  ArgDef arg;
  arg.name = std::string(TakeWord(&text));
  if (arg.name.empty() || !Consume(&text, ":")) {
    return InvalidArgument("Argument definition '", all, "' has no name");
  }
  arg.is_ref = Consume(&text, "Ref(");
  std::string_view word = TakeWord(&text);
  if (Consume(&text, "*")) {
    arg.number_attr = std::string(word);
    word = TakeWord(&text);
  }
  if (arg.is_ref && !Consume(&text, ")")) {
    return InvalidArgument("Missing ')' in '", all, "'");
  }
  for (const AttrDef& attr : attrs) {
    if (attr.name != word) continue;
    (IsListType(attr.type) ? arg.type_list_attr : arg.type_attr) = attr.name;
    return arg;
  }
  arg.type = ParseDType(word);
  if (arg.type == DType::kInvalid) {
    return InvalidArgument("Unknown type '", word, "' in '", all, "'");
  }
  return arg;
}

namespace {

// "int", "list(type)", … of a value, for comparison with a definition.
bool KindMatches(std::string_view type, const AttrValue& value) {
  if (value.get<AttrPlaceholder>() != nullptr) return true;
  if (IsListType(type)) {
    const AttrList* list = value.get<AttrList>();
    if (list == nullptr) return false;
    const std::string_view element = ElementType(type);
    size_t matching = 0;
    if (element == "string") matching = list->strings.size();
    if (element == "int") matching = list->ints.size();
    if (element == "float") matching = list->floats.size();
    if (element == "bool") matching = list->bools.size();
    if (element == "type") matching = list->types.size();
    if (element == "shape") matching = list->shapes.size();
    if (element == "tensor") matching = list->tensors.size();
    if (element == "func") matching = list->functions.size();
    return matching == list->size();
  }
  if (type == "string") return value.get<std::string>() != nullptr;
  if (type == "int") return value.get<int64_t>() != nullptr;
  if (type == "float") return value.get<float>() != nullptr;
  if (type == "bool") return value.get<bool>() != nullptr;
  if (type == "type") return value.get<DType>() != nullptr;
  if (type == "shape") return value.get<PartialShape>() != nullptr;
  if (type == "tensor") return value.get<Tensor>() != nullptr;
  if (type == "func") return value.get<FunctionName>() != nullptr;
  return false;
}

std::string AllowedText(const AttrList& allowed) {
  std::string text;
  for (DType type : allowed.types) {
    if (!text.empty()) text += ", ";
    text += DTypeName(type);
  }
  for (const std::string& s : allowed.strings) {
    if (!text.empty()) text += ", ";
    text += StrCat("\"", s, "\"");
  }
  return text;
}

absl::Status CheckType(const OpDef& op, const AttrDef& attr, DType type) {
  if (!IsKnown(type)) {
    return InvalidArgument("Attr '", attr.name, "' of op ", op.name,
                           " has ", DTypeName(type));
  }
  const auto& allowed = attr.allowed.types;
  if (allowed.empty() || std::ranges::count(allowed, type) > 0) {
    return absl::OkStatus();
  }
  return InvalidArgument("Value for attr '", attr.name, "' of ",
                         DTypeName(type), " is not in the list of allowed values: ",
                         AllowedText(attr.allowed), "; op ", op.name);
}

absl::Status CheckAttr(const OpDef& op, const AttrDef& attr,
                       const AttrValue& value) {
  if (!KindMatches(attr.type, value)) {
    return InvalidArgument("Attr '", attr.name, "' of op ", op.name,
                           " must be of type ", attr.type, " but is ",
                           value.DebugString());
  }
  if (const DType* type = value.get<DType>()) {
    SLUICE_RETURN_IF_ERROR(CheckType(op, attr, *type));
  }
  if (const AttrList* list = value.get<AttrList>()) {
    for (DType type : list->types) {
      SLUICE_RETURN_IF_ERROR(CheckType(op, attr, type));
    }
    if (attr.minimum && static_cast<int64_t>(list->size()) < *attr.minimum) {
      return InvalidArgument("Length for attr '", attr.name, "' of ",
                             list->size(), " must be at least minimum ",
                             *attr.minimum, "; op ", op.name);
    }
  }
  if (const int64_t* number = value.get<int64_t>();
      number && attr.minimum && *number < *attr.minimum) {
    return InvalidArgument("Value for attr '", attr.name, "' of ", *number,
                           " must be at least minimum ", *attr.minimum, "; op ",
                           op.name);
  }
  if (const std::string* text = value.get<std::string>();
      text && !attr.allowed.strings.empty() &&
      std::ranges::count(attr.allowed.strings, *text) == 0) {
    return InvalidArgument("Value for attr '", attr.name, "' of \"", *text,
                           "\" is not in the list of allowed values: ",
                           AllowedText(attr.allowed), "; op ", op.name);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckAttrs(const OpDef& op, AttrMap* attrs) {
  for (const AttrDef& attr : op.attrs) {
    const AttrValue* value = attrs->Find(attr.name);
    if (value != nullptr) {
      SLUICE_RETURN_IF_ERROR(CheckAttr(op, attr, *value));
    } else if (attr.default_value) {
      attrs->Set(attr.name, *attr.default_value);
    } else {
      return InvalidArgument("NodeDef missing attr '", attr.name, "' from Op ",
                             op.name);
    }
  }
  for (const auto& [name, value] : *attrs) {
    if (!name.starts_with('_') && op.FindAttr(name) == nullptr) {
      return InvalidArgument("NodeDef mentions attr '", name,
                             "' not in Op ", op.name);
    }
  }
  return absl::OkStatus();
}

namespace {

// A node may not claim to have more tensors than could ever be used.
constexpr int64_t kMaxArgCount = 1 << 20;

absl::StatusOr<std::vector<DType>> TypesOf(const ArgDef& arg,
                                           const AttrMap& attrs) {
  if (!arg.type_list_attr.empty()) {
    const AttrList* list = attrs.Find<AttrList>(arg.type_list_attr);
    if (list == nullptr) {
      return InvalidArgument("Missing attr '", arg.type_list_attr,
                             "' of argument '", arg.name, "'");
    }
    return list->types;
  }
  DType type = arg.type;
  if (!arg.type_attr.empty()) {
    const DType* value = attrs.Find<DType>(arg.type_attr);
    if (value == nullptr) {
      return InvalidArgument("Missing attr '", arg.type_attr,
                             "' of argument '", arg.name, "'");
    }
    type = *value;
  }
  int64_t count = 1;
  if (!arg.number_attr.empty()) {
    const int64_t* value = attrs.Find<int64_t>(arg.number_attr);
    if (value == nullptr || *value < 0 || *value > kMaxArgCount) {
      return InvalidArgument("Attr '", arg.number_attr, "' of argument '",
                             arg.name, "' is missing or out of range");
    }
    count = *value;
  }
  return std::vector<DType>(count, type);
}

}  // namespace

absl::StatusOr<int> ArgCount(const ArgDef& arg, const AttrMap& attrs) {
  SLUICE_ASSIGN_OR_RETURN(std::vector<DType> types, TypesOf(arg, attrs));
  return static_cast<int>(types.size());
}

absl::StatusOr<std::vector<DType>> ArgTypes(std::span<const ArgDef> args,
                                            const AttrMap& attrs) {
  std::vector<DType> all;
  for (const ArgDef& arg : args) {
    SLUICE_ASSIGN_OR_RETURN(std::vector<DType> types, TypesOf(arg, attrs));
    for (DType type : types) {
      all.push_back(arg.is_ref ? RefType(type) : type);
    }
  }
  return all;
}

}  // namespace sluice
