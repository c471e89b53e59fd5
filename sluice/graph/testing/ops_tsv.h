// The table of TensorFlow's op definitions, tests/golden/ops.tsv. A header
// only, because fuzz targets use it too.
#pragma once

#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "sluice/base/logging.h"
#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"

namespace sluice {

struct OpsTsvEntry {
  OpDef def;    // As in 1.15, or in 2.x if it is only there.
  OpDef newer;  // With the changes of 2.x.
};

namespace ops_tsv {

using Texts = std::vector<std::string>;

inline std::string WithCommas(std::string_view text) {
  return absl::StrReplaceAll(ToAbsl(text), {{"|", ", "}});
}

// The table's notation of a default to that of SLUICE_OP.
inline std::string DefaultText(std::string_view text) {
  if (text == "shape(?)") return "?";
  if (text.starts_with("shape(")) {
    return StrCat("[", text.substr(6, text.size() - 7), "]");
  }
  if (!text.starts_with("tensor(")) return std::string(text);
  // tensor(uint8,(4),[255,0,0,255]): the only one there is.
  const Texts parts =
      absl::StrSplit(ToAbsl(text), absl::ByAnyChar("(),[]"), absl::SkipEmpty());
  std::string dtype = parts[1];
  for (char& c : dtype) c = static_cast<char>(toupper(c));
  std::string message = StrCat(
      "{ dtype: DT_", dtype, " tensor_shape { dim { size: ", parts[2], " } }");
  for (size_t i = 3; i < parts.size(); ++i) {
    StrAppend(&message, " int_val: ", parts[i]);
  }
  return message + " }";
}

// "T:type{float|half}>=1=float" to "T: {float, half} >= 1 = float".
inline std::string AttrText(std::string_view text) {
  const size_t colon = text.find(':');
  std::string out = StrCat(text.substr(0, colon), ": ");
  text.remove_prefix(colon + 1);
  const size_t type_end = std::min(text.find_first_of("{>="), text.size());
  std::string type(text.substr(0, type_end));
  text.remove_prefix(type_end);
  if (text.starts_with('{')) {
    const size_t end = text.find('}') + 1;
    const std::string allowed = WithCommas(text.substr(0, end));
    type = type.starts_with("list(") ? StrCat("list(", allowed, ")") : allowed;
    text.remove_prefix(end);
  }
  out += type;
  if (text.starts_with(">=")) {
    const size_t end = std::min(text.find('=', 2), text.size());
    StrAppend(&out, " ", text.substr(0, end));
    text.remove_prefix(end);
  }
  if (text.starts_with('=')) {
    StrAppend(&out, " = ", DefaultText(text.substr(1)));
  }
  return out;
}

// "a:&T,b:N*T,c:[types]" to one SLUICE_OP text for each.
inline Texts ArgTexts(std::string_view text) {
  Texts out;
  if (text == "-") return out;
  for (absl::string_view arg : absl::StrSplit(ToAbsl(text), ',')) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(arg, ':');
    std::string type = parts.second;
    const bool is_ref = type.starts_with('&');
    if (is_ref) type.erase(0, 1);
    type = absl::StrReplaceAll(type, {{"[", ""}, {"]", ""}, {"*", " * "}});
    if (is_ref) type = StrCat("Ref(", type, ")");
    out.push_back(StrCat(parts.first, ": ", type));
  }
  return out;
}

inline absl::Status ReadArgs(std::string_view text, const OpDef& def,
                             std::vector<ArgDef>* args) {
  args->clear();
  for (const std::string& each : ArgTexts(text)) {
    SLUICE_ASSIGN_OR_RETURN(ArgDef arg, ParseArg(each, def.attrs));
    args->push_back(std::move(arg));
  }
  return absl::OkStatus();
}

inline Texts SplitList(std::string_view text) {
  if (text == "-") return {};
  return absl::StrSplit(ToAbsl(text), " ; ");
}

// "T +{a|b}", "T any value", "N min 1 -> 0" or "T default None -> int64".
inline absl::Status ChangeAttr(std::string_view text, OpDef* def) {
  const size_t space = text.find(' ');
  const std::string_view name = text.substr(0, space);
  const std::string_view change = text.substr(space + 1);
  for (AttrDef& attr : def->attrs) {
    if (attr.name != name) continue;
    const Texts words = absl::StrSplit(ToAbsl(change), ' ');
    if (change.starts_with("+{")) {
      SLUICE_ASSIGN_OR_RETURN(
          const AttrDef more,
          ParseAttr(
              StrCat("x: ", WithCommas(change.substr(1, change.find('}'))))));
      auto append = [](auto& to, const auto& from) {
        to.insert(to.end(), from.begin(), from.end());
      };
      append(attr.allowed.types, more.allowed.types);
      append(attr.allowed.strings, more.allowed.strings);
    } else if (change == "any value") {
      attr.allowed = AttrList();
    } else if (words[0] == "min") {
      attr.minimum = std::stoi(words.back());
    } else if (words[0] == "default") {
      SLUICE_ASSIGN_OR_RETURN(attr.default_value,
                              ParseAttrValue(attr.type, words.back()));
    }
  }
  return absl::OkStatus();
}

inline absl::Status ApplyChange(std::string_view change, OpDef* def) {
  const auto rest = [&](std::string_view word) {
    return change.substr(word.size());
  };
  if (change.starts_with("+attr ")) {
    SLUICE_ASSIGN_OR_RETURN(AttrDef attr, ParseAttr(AttrText(rest("+attr "))));
    def->attrs.push_back(std::move(attr));
    return absl::OkStatus();
  }
  if (change.starts_with("in now ")) {
    return ReadArgs(rest("in now "), *def, &def->inputs);
  }
  if (change.starts_with("out now ")) {
    return ReadArgs(rest("out now "), *def, &def->outputs);
  }
  if (change.starts_with("attr ")) return ChangeAttr(rest("attr "), def);
  return absl::OkStatus();
}

inline absl::StatusOr<OpsTsvEntry> ParseLine(const Texts& columns) {
  OpsTsvEntry entry;
  OpDef& def = entry.def;
  def.name = columns[0];
  for (const std::string& text : SplitList(columns[3])) {
    SLUICE_ASSIGN_OR_RETURN(AttrDef attr, ParseAttr(AttrText(text)));
    def.attrs.push_back(std::move(attr));
  }
  SLUICE_RETURN_IF_ERROR(ReadArgs(columns[1], def, &def.inputs));
  SLUICE_RETURN_IF_ERROR(ReadArgs(columns[2], def, &def.outputs));
  for (absl::string_view flag : absl::StrSplit(columns[4], ',')) {
    def.stateful |= flag == "stateful";
    def.aggregate |= flag == "aggregate";
    def.commutative |= flag == "commutative";
    def.allows_uninitialized_input |= flag == "uninit_ok";
  }
  // The table has it for 2.x only, but graphs of 1.15.5 show it.
  if (def.name == "Equal" || def.name == "NotEqual") {
    SLUICE_RETURN_IF_ERROR(
        ApplyChange("+attr incompatible_shape_error:bool=true", &def));
  }
  entry.newer = def;
  // New attrs first: changed arguments speak of them.
  for (bool attrs : {true, false}) {
    for (const std::string& change : SplitList(columns[7])) {
      if (change.starts_with("+attr ") != attrs) continue;
      if (change.starts_with("+attr incompatible_shape_error:")) continue;
      SLUICE_RETURN_IF_ERROR(ApplyChange(change, &entry.newer));
    }
  }
  return entry;
}

}  // namespace ops_tsv

// Reads the table; the working directory is the project's.
inline absl::StatusOr<std::map<std::string, OpsTsvEntry>> ParseOpsTsv(
    const std::string& path = "tests/golden/ops.tsv") {
  std::ifstream file(path);
  std::map<std::string, OpsTsvEntry> ops;
  std::string line;
  std::getline(file, line);  // The heading.
  while (std::getline(file, line)) {
    const ops_tsv::Texts columns = absl::StrSplit(line, '\t');
    if (columns.size() != 8) return InvalidArgument("Bad line: ", line);
    auto entry = ops_tsv::ParseLine(columns);
    if (!entry.ok()) return Annotate(entry.status(), StrCat(columns[0], ":"));
    ops[columns[0]] = *std::move(entry);
  }
  if (ops.empty()) return NotFound("No ops in ", path);
  return ops;
}

// Gives every op of the table that has no implementation at least a definition,
// so that any graph of TensorFlow can be imported.
inline void RegisterMissingOps() {
  static const bool done = [] {
    auto ops = ParseOpsTsv();
    SLUICE_CHECK(ops.ok()) << ops.status().message();
    for (auto& [name, entry] : *ops) {
      if (OpRegistry::Global().Find(name) != nullptr) continue;
      SLUICE_CHECK(OpRegistry::Global().AddDefinition(entry.def).ok()) << name;
    }
    return true;
  }();
  static_cast<void>(done);
}

}  // namespace sluice
