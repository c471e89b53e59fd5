#include "sluice/graph/op_def.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/escaping.h"
#include "absl/strings/strip.h"
#include "google/protobuf/text_format.h"
#include "sluice/base/status.h"
#include "sluice/graph/graph_def.h"
#include "sluice/proto/tensor.pb.h"
#include "sluice/tensor/codec.h"

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
  while (n < rest.size() &&
         (isalnum(static_cast<unsigned char>(rest[n])) || rest[n] == '_')) {
    ++n;
  }
  *text = rest.substr(n);
  return rest.substr(0, n);
}

// The types behind the group words of attr definitions.
std::vector<DType> TypeGroup(std::string_view word) {
  using enum DType;
  const std::vector<DType> real = {kFloat,  kDouble, kInt32,  kUint8,
                                   kInt16,  kInt8,   kInt64,  kBfloat16,
                                   kUint16, kHalf,   kUint32, kUint64};
  if (word == "realnumbertype") return real;
  if (word == "numbertype") {
    return {kFloat,     kDouble,     kInt32, kUint8,  kInt16,  kInt8,
            kComplex64, kInt64,      kQint8, kQuint8, kQint32, kBfloat16,
            kUint16,    kComplex128, kHalf,  kUint32, kUint64};
  }
  if (word == "quantizedtype")
    return {kQint8, kQuint8, kQint32, kQint16, kQuint16};
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
  return InvalidArgument("Missing '", std::string(1, close), "' in '", *text,
                         "'");
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
  std::string plain;
  return absl::CUnescape(ToAbsl(text), &plain) ? plain : std::string(text);
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

// "{ dtype: DT_UINT8 … }": a message in protobuf's text form.
template <typename Message>
absl::StatusOr<Message> ParseBraces(std::string_view text) {
  Message message;
  std::string_view inside = Trim(text);
  if (!Consume(&inside, "{") || !inside.ends_with("}")) {
    return InvalidArgument("'", text, "' is not in braces");
  }
  inside.remove_suffix(1);
  if (!google::protobuf::TextFormat::ParseFromString(std::string(inside),
                                                     &message)) {
    return InvalidArgument("'", text, "' cannot be parsed");
  }
  return message;
}

absl::StatusOr<PartialShape> ParseShapeText(std::string_view text) {
  text = Trim(text);
  if (text == "?") text = "{unknown_rank: true}";
  if (text.starts_with("{")) {
    SLUICE_ASSIGN_OR_RETURN(const auto shape,
                            ParseBraces<pb::TensorShapeProto>(text));
    return PartialShapeFromProto(shape);
  }
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
    return PartialShape::Create(shape.dims());
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
  if (type == "bool") {
    if (text != "true" && text != "false") {
      return InvalidArgument("'", text, "' is not a bool");
    }
    return AttrValue(text == "true");
  }
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
  if (type == "tensor") {
    SLUICE_ASSIGN_OR_RETURN(const auto proto,
                            ParseBraces<pb::TensorProto>(text));
    SLUICE_ASSIGN_OR_RETURN(Tensor tensor, TensorFromProto(proto));
    return AttrValue(std::move(tensor));
  }
  if (type == "func")
    return AttrValue(FunctionName{std::string(text), nullptr});
  return InvalidArgument("No defaults of type '", type, "'");
}

bool IsListType(std::string_view type) { return type.starts_with("list("); }
std::string_view ElementType(std::string_view type) {
  if (!IsListType(type) || !type.ends_with(")")) return type;
  return type.substr(5, type.size() - 6);
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

bool IsAttrType(std::string_view type) {
  constexpr std::string_view kTypes[] = {"string", "int",   "float",  "bool",
                                         "type",   "shape", "tensor", "func"};
  return std::ranges::count(kTypes, ElementType(type)) > 0;
}

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
  if (!Consume(&text, "["))
    return InvalidArgument("'", text, "' is not a list");
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
    if (!Consume(&text, ")"))
      return InvalidArgument("Missing ')' in '", all, "'");
    attr.type = StrCat("list(", attr.type, ")");
  } else {
    SLUICE_RETURN_IF_ERROR(ParseAttrType(&text, &attr));
  }
  if (Consume(&text, ">=")) {
    std::string_view number = Trim(text);
    const size_t end =
        std::min(number.find_first_not_of("-0123456789"), number.size());
    SLUICE_ASSIGN_OR_RETURN(attr.minimum,
                            ParseNumber<int64_t>(number.substr(0, end)));
    text = number.substr(end);
  }
  if (Consume(&text, "=")) {
    SLUICE_ASSIGN_OR_RETURN(attr.default_value,
                            ParseAttrValue(attr.type, text));
    text = "";
  }
  if (!Trim(text).empty()) {
    return InvalidArgument("Trailing '", text, "' in attr definition '", all,
                           "'");
  }
  if (!IsAttrType(attr.type)) {
    return InvalidArgument("Unknown type '", attr.type, "' in '", all, "'");
  }
  return attr;
}

namespace {
const AttrDef* FindIn(std::span<const AttrDef> attrs, std::string_view name) {
  for (const AttrDef& attr : attrs) {
    if (attr.name == name) return &attr;
  }
  return nullptr;
}
}  // namespace

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
  if (!Trim(text).empty()) {
    return InvalidArgument("Trailing '", text, "' in '", all, "'");
  }
  if (!arg.number_attr.empty()) {
    const AttrDef* number = FindIn(attrs, arg.number_attr);
    if (number == nullptr || number->type != "int") {
      return InvalidArgument("'", arg.number_attr, "' in '", all,
                             "' is not an int attr");
    }
  }
  if (const AttrDef* attr = FindIn(attrs, word)) {
    if (attr->type == "list(type)") {
      arg.type_list_attr = attr->name;
    } else if (attr->type == "type") {
      arg.type_attr = attr->name;
    } else {
      return InvalidArgument("Attr '", word, "' in '", all, "' is no type");
    }
    return arg;
  }
  arg.type = ParseDType(word);
  if (arg.type == DType::kInvalid) {
    return InvalidArgument("Unknown type '", word, "' in '", all, "'");
  }
  return arg;
}

}  // namespace sluice
