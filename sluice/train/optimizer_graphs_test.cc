// Optimizers add the nodes that TensorFlow 1.15.5's add, one by one and in the
// same order (tests/golden/optimizer_graphs.txt).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "absl/strings/str_join.h"
#include "sluice/graph/graph_def.h"
#include "sluice/proto/graph.pb.h"
#include "sluice/train/global_step.h"
#include "sluice/train/optimizers.h"
#include "sluice/train/weight_decay.h"

namespace sluice {
namespace {
namespace optimizer_graphs_test {

using Lines = std::vector<std::string>;

// Config and variant -> the lines of the record.
const std::map<std::string, Lines>& Records() {
  static const auto* records = [] {
    auto* all = new std::map<std::string, Lines>;
    std::ifstream file("tests/golden/optimizer_graphs.txt");
    Lines* current = nullptr;
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("== ")) {
        current = &(*all)[line.substr(3)];
      } else {
        current->push_back(line);
      }
    }
    return all;
  }();
  return *records;
}

std::string Line(const pb::NodeDef& node) {
  Lines words = {node.name(), node.op()};
  Lines controls;
  for (const std::string& input : node.input()) {
    (input.starts_with("^") ? controls : words).push_back(input);
  }
  std::ranges::sort(controls);
  words.insert(words.end(), controls.begin(), controls.end());
  words.push_back("|");
  if (!node.device().empty()) words.push_back("device=" + node.device());
  for (const char* key : {"use_locking", "use_nesterov"}) {
    const auto it = node.attr().find(key);
    if (it == node.attr().end()) continue;
    words.push_back(StrCat(key, "=", it->second.b()));
  }
  if (const auto it = node.attr().find("_class"); it != node.attr().end()) {
    for (const std::string& s : it->second.list().s()) words.push_back(s);
  }
  return absl::StrJoin(words, " ");
}

// The nodes of the train op and of its scope.
Lines LinesBelow(Graph& graph, const std::string& train) {
  pb::GraphDef def;
  ExportGraphDef(graph, {}, &def);
  Lines lines;
  for (const pb::NodeDef& node : def.node()) {
    if (node.name() == train || node.name().starts_with(train + "/")) {
      lines.push_back(Line(node));
    }
  }
  return lines;
}

using NewFn = std::function<std::unique_ptr<Optimizer>(const Scope&)>;

template <typename T, typename... Args>
NewFn New(Args... args) {
  return [=](const Scope&) { return std::make_unique<T>(args...); };
}

const std::map<std::string, NewFn>& Optimizers() {
  static const auto* all = new std::map<std::string, NewFn>{
      {"sgd", New<GradientDescentOptimizer>(0.1)},
      {"momentum", New<MomentumOptimizer>(0.1, 0.9)},
      {"adagrad", New<AdagradOptimizer>(0.1)},
      {"adagrad_da",
       [](const Scope& scope) {
         return std::make_unique<AdagradDAOptimizer>(
             0.1, GetOrCreateGlobalStep(scope),
             ProximalOptions{.l1 = 0.01, .l2 = 0.02});
       }},
      {"adadelta", New<AdadeltaOptimizer>(1.0)},
      {"adam", New<AdamOptimizer>()},
      {"rmsprop", New<RmsPropOptimizer>(0.01)},
      {"rmsprop_centered",
       New<RmsPropOptimizer>(
           0.01, RmsPropOptions{.momentum = 0.3, .centered = true})},
      {"ftrl", New<FtrlOptimizer>(0.1)},
      {"ftrl_shrinkage",
       New<FtrlOptimizer>(
           0.1, FtrlOptions{.l1 = 0.05, .l2 = 0.1, .l2_shrinkage = 0.2})},
      {"proximal_adagrad", New<ProximalAdagradOptimizer>(0.1)},
      {"proximal_sgd", New<ProximalGradientDescentOptimizer>(0.1)},
      {"contrib_adamax", New<AdaMaxOptimizer>(0.05)},
      {"contrib_adamw", New<AdamWOptimizer>(0.01)},
      {"contrib_add_sign", New<AddSignOptimizer>()},
      {"contrib_lazy_adam", New<LazyAdamOptimizer>(0.05)},
      {"contrib_momentumw", New<MomentumWOptimizer>(0.01, 0.05, 0.9)},
      {"contrib_nadam", New<NadamOptimizer>(0.05)},
      {"contrib_power_sign", New<PowerSignOptimizer>()},
  };
  return *all;
}

Output FedLater(const Scope& scope, const char* name, DType dtype) {
  return scope.Named(name).Add("Placeholder", {}, {{"dtype", dtype}});
}

TEST(OptimizerGraphs, AreTensorFlowsNodeByNode) {
  ASSERT_EQ(Records().size(), 142u);
  for (const auto& [key, golden] : Records()) {
    std::istringstream words(key);
    std::string config, variant;
    words >> config >> variant;
    Graph graph;
    const Scope scope(graph);
    const bool sparse = variant.starts_with("sparse");
    const DType dtype =
        variant.ends_with("64") ? DType::kDouble : DType::kFloat;
    const Variable v(
        scope.Named("model/v"),
        ZerosInitializer(sparse ? Shape({6, 2}) : Shape({5}), dtype),
        {.resource = variant.find("resource") != std::string::npos});
    Grad grad = FedLater(scope, "values", dtype);
    if (sparse) {
      grad.indices = FedLater(scope, "indices", DType::kInt64);
      grad.dense_shape = scope.Named("shape").Ints({6, 2});
    }
    const std::unique_ptr<Optimizer> optimizer = Optimizers().at(config)(scope);
    Node* train =
        optimizer->ApplyGradients(scope, {{grad, v}}, GetGlobalStep(graph));
    ASSERT_NE(train, nullptr) << key << ": " << scope.status();
    EXPECT_EQ(LinesBelow(graph, train->name()), golden) << key;
  }
}

}  // namespace optimizer_graphs_test
}  // namespace
}  // namespace sluice
