#include "sluice/autodiff/testing/node_text.h"

#include "sluice/base/strings.h"

namespace sluice {

std::vector<std::string> NodeLines(const Graph& graph, int first) {
  std::vector<std::string> lines;
  for (int id = first; id < graph.num_nodes(); ++id) {
    const Node& node = *graph.node(id);
    std::string inputs;
    auto add = [&](const std::string& input) {
      inputs += inputs.empty() ? input : ", " + input;
    };
    for (const Output& input : node.inputs()) {
      add(input.index == 0 ? input.node->name() : TensorName(input));
    }
    for (const Node* control : node.control_inputs()) {
      add("^" + control->name());
    }
    std::string line =
        StrCat(node.name(), " = ", node.type(), "(", inputs, ")");
    if (!node.device().empty()) line += " @" + node.device();
    for (const std::string& group : node.attr<AttrList>("_class").strings) {
      line += " " + group;
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace sluice
