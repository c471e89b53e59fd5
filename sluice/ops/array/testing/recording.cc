#include "sluice/ops/array/testing/recording.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "sluice/graph/op_def.h"

namespace sluice {
namespace {

template <typename T>
T ParseElement(const std::string& text) {
  if constexpr (std::is_same_v<T, std::string>) {
    return text == "\"\"" ? "" : text;
  } else if constexpr (std::is_same_v<T, bool>) {
    return text == "1";
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    return std::strtoull(text.c_str(), nullptr, 10);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(std::strtoll(text.c_str(), nullptr, 10));
  } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    return static_cast<T>(std::strtod(text.c_str(), nullptr));
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return T(std::strtof(text.c_str(), nullptr));
  } else if constexpr (!std::is_same_v<T, ResourceHandle>) {
    const std::vector<std::string> parts = absl::StrSplit(text, ',');
    return T(std::strtod(parts.at(0).c_str(), nullptr),
             std::strtod(parts.at(1).c_str(), nullptr));
  } else {
    return T();
  }
}

}  // namespace

std::string Recorded::DebugString() const {
  std::string text = StrCat(name, ":");
  for (const auto& [attr, value] : attrs) {
    StrAppend(&text, " ", attr, "=", value.DebugString());
  }
  for (const RecordedInput& input : inputs) {
    StrAppend(&text, "; ", DTypeName(input.dtype), " ",
              input.shape.DebugString(), " ", absl::StrJoin(input.values, " "));
  }
  return text;
}

RecordedInput ParseRecordedInput(std::string_view text) {
  RecordedInput input;
  std::vector<std::string> words =
      absl::StrSplit(ToAbsl(text), ' ', absl::SkipEmpty());
  input.dtype = ParseDType(words.at(0));
  input.shape = *ParseAttrValue("shape", words.at(1))->get<PartialShape>();
  if (words.size() > 2) {
    input.has_value = words[2] == "=";
    input.packed = words[2] == "~";
    input.values.assign(words.begin() + 3, words.end());
  }
  return input;
}

std::vector<Recorded> ReadRecording(const std::string& path) {
  std::vector<Recorded> records;
  std::ifstream file(path);
  bool forward = true;
  for (std::string line; std::getline(file, line);) {
    const std::string rest = line.substr(line.find(' ') + 1);
    if (line.starts_with("== ")) {
      records.push_back({rest, rest, {}, {}, {}});
      forward = true;
    } else if (line == "--") {
      forward = false;
    } else if (forward && line.starts_with("op ")) {
      records.back().op = rest;
    } else if (forward && line.starts_with("attr ")) {
      const std::vector<std::string> parts =
          absl::StrSplit(rest, absl::MaxSplits(' ', 1));
      const OpInfo* op = OpRegistry::Global().Find(records.back().op);
      const AttrDef* attr =
          op == nullptr ? nullptr : op->def.FindAttr(parts[0]);
      if (attr == nullptr) {
        ADD_FAILURE() << records.back().op << " has no attr " << parts[0];
        continue;
      }
      records.back().attrs.Set(parts[0], *ParseAttrValue(attr->type, parts[1]));
    } else if (forward && line.starts_with("in ")) {
      records.back().inputs.push_back(ParseRecordedInput(rest));
    } else {
      records.back().results.push_back(line);
    }
  }
  return records;
}

Tensor TensorOf(const RecordedInput& input) {
  Tensor tensor(input.dtype, input.shape.AsShape());
  if (static_cast<int64_t>(input.values.size()) != tensor.size()) {
    ADD_FAILURE() << input.values.size() << " values for "
                  << input.shape.DebugString();
    return tensor;
  }
  for (int64_t i = 0; i < tensor.size(); ++i) {
    switch (input.dtype) {
#define SLUICE_PARSE(name, cpp)                                         \
  case DType::name:                                                     \
    tensor.mutable_data<cpp>()[i] = ParseElement<cpp>(input.values[i]); \
    break;
      SLUICE_FOR_EACH_STORED_TYPE(SLUICE_PARSE)
#undef SLUICE_PARSE
      default:
        ADD_FAILURE() << DTypeName(input.dtype);
    }
  }
  return tensor;
}

Output AddRecordedInput(const Scope& scope, std::string_view name,
                        const RecordedInput& input) {
  if (input.has_value) return scope.Named(name).Const(TensorOf(input));
  if (!input.packed) {
    return scope.Named(name).Add(
        "Placeholder", {}, {{"dtype", input.dtype}, {"shape", input.shape}});
  }
  std::vector<Output> parts;
  for (const std::string& value : input.values) {
    RecordedInput part;
    part.dtype = input.dtype;
    part.shape = PartialShape::Scalar();
    part.has_value = value != "?";
    if (part.has_value) part.values = {value};
    parts.push_back(AddRecordedInput(scope, "part", part));
  }
  return scope.Named(name).Add("Pack", parts);
}

}  // namespace sluice
