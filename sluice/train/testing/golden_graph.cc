#include "sluice/train/testing/golden_graph.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "sluice/base/strings.h"
#include "sluice/graph/graph_def.h"
#include "sluice/proto/graph.pb.h"

namespace sluice {
namespace {

std::string NodeLine(const pb::NodeDef& def) {
  std::vector<std::string> inputs, controls;
  for (const std::string& input : def.input()) {
    (input.starts_with("^") ? controls : inputs).push_back(input);
  }
  std::ranges::sort(controls);
  std::string line = StrCat(def.name(), " = ", def.op(), "(");
  for (const std::string& input : inputs) line += input + " ";
  for (const std::string& input : controls) line += input + " ";
  line += ") @" + def.device();
  std::map<std::string, std::string> attrs;
  for (const auto& [name, value] : def.attr()) {
    const absl::StatusOr<AttrValue> attr = AttrFromProto(value);
    EXPECT_TRUE(attr.ok()) << def.name() << " " << name;
    if (!attr.ok() || name == "_output_shapes") continue;
    const Tensor* tensor = attr->get<Tensor>();
    attrs[name] = tensor ? tensor->DebugString(100) : attr->DebugString();
  }
  for (const auto& [name, value] : attrs) line += " " + name + "=" + value;
  static const auto* random = new std::regex("_temp_[0-9a-f]{32}");
  return std::regex_replace(line, *random, "_temp_X");
}

std::vector<std::string> LinesOf(const pb::GraphDef& def) {
  std::vector<std::string> lines;
  for (const pb::NodeDef& node : def.node()) lines.push_back(NodeLine(node));
  std::ranges::sort(lines);
  return lines;
}

}  // namespace

std::vector<std::string> SortedNodeLines(Graph& graph) {
  pb::GraphDef def;
  ExportGraphDef(graph, {}, &def);
  return LinesOf(def);
}

std::vector<std::string> GoldenNodeLines(const std::string& name) {
  std::ifstream file("tests/golden/graphs/" + name + ".pbtxt");
  std::stringstream text;
  text << file.rdbuf();
  pb::GraphDef def;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text.str(), &def))
      << name;
  return LinesOf(def);
}

}  // namespace sluice
