#include "sluice/graph/frames.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>

#include "sluice/base/status.h"

namespace sluice {
namespace {

bool IsOneOf(const Node& node, const char* name, const char* ref_name) {
  return node.type() == name || node.type() == ref_name;
}

bool IsBackEdge(const Node& src, const Node& dst) {
  return IsMerge(dst) && IsNextIteration(src);
}

absl::Status Sort(const Graph& graph, std::vector<const Node*>* order) {
  const int n = graph.num_nodes();
  std::vector<int> pending(n, 0);
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (int i = 0; i < n; ++i) {
    const Node& node = *graph.node(i);
    for (const Output& input : node.inputs()) {
      if (!input) {
        return InvalidArgument("Incomplete graph, missing an input of ",
                               node.name());
      }
      if (!IsBackEdge(*input.node, node)) ++pending[i];
    }
    pending[i] += static_cast<int>(node.control_inputs().size());
    if (pending[i] == 0) ready.push(i);
  }
  while (!ready.empty()) {
    const Node& node = *graph.node(ready.top());
    ready.pop();
    order->push_back(&node);
    for (const OutEdge& edge : node.out_edges()) {
      if (edge.dst_input >= 0 && IsBackEdge(node, *edge.dst)) continue;
      if (--pending[edge.dst->id()] == 0) ready.push(edge.dst->id());
    }
  }
  if (static_cast<int>(order->size()) == n) return absl::OkStatus();
  for (int i = 0; i < n; ++i) {
    if (pending[i] > 0) {
      return InvalidArgument("Graph has a cycle through node ",
                             graph.node(i)->name());
    }
  }
  return Internal("Graph could not be ordered");
}

}  // namespace

bool IsSwitch(const Node& node) { return IsOneOf(node, "Switch", "RefSwitch"); }
bool IsMerge(const Node& node) { return IsOneOf(node, "Merge", "RefMerge"); }
bool IsEnter(const Node& node) { return IsOneOf(node, "Enter", "RefEnter"); }
bool IsExit(const Node& node) { return IsOneOf(node, "Exit", "RefExit"); }
bool IsNextIteration(const Node& node) {
  return IsOneOf(node, "NextIteration", "RefNextIteration");
}

int LoopFrames::OfOutputs(const Node& node) const {
  if (IsEnter(node)) return entered[node.id()];
  if (IsExit(node)) return std::max(0, frames[frame[node.id()]].parent);
  return frame[node.id()];
}

absl::StatusOr<LoopFrames> FindFrames(const Graph& graph) {
  LoopFrames found;
  SLUICE_RETURN_IF_ERROR(Sort(graph, &found.order));
  found.frame.resize(graph.num_nodes(), 0);
  found.entered.resize(graph.num_nodes(), -1);
  found.frames.emplace_back();
  std::map<std::pair<int, std::string>, int> known;
  for (const Node* node : found.order) {
    int& own = found.frame[node->id()];
    const Node* first = nullptr;
    const auto join = [&](const Node& input) -> absl::Status {
      const int frame = found.OfOutputs(input);
      if (first == nullptr) {
        first = &input;
        own = frame;
      } else if (frame != own) {
        return InvalidArgument(
            "{{node ", node->name(), "}} has inputs from different frames. ",
            "The input {{node ", first->name(), "}} is in frame '",
            found.frames[own].name, "'. The input {{node ", input.name(),
            "}} is in frame '", found.frames[frame].name, "'.");
      }
      return absl::OkStatus();
    };
    for (const Output& input : node->inputs()) {
      if (IsBackEdge(*input.node, *node)) continue;
      SLUICE_RETURN_IF_ERROR(join(*input.node));
    }
    for (const Node* input : node->control_inputs()) {
      SLUICE_RETURN_IF_ERROR(join(*input));
    }
    if (!IsEnter(*node)) continue;
    const std::string name = node->attr<std::string>("frame_name");
    if (name.empty()) {
      return InvalidArgument("The Enter {{node ", node->name(),
                             "}} must have a frame name.");
    }
    auto [it, added] =
        known.try_emplace({own, name}, static_cast<int>(found.frames.size()));
    if (added) {
      LoopFrames::Frame frame;
      frame.parent = own;
      frame.name = name;
      frame.parallel_iterations = static_cast<int>(
          std::max<int64_t>(1, node->attr<int64_t>("parallel_iterations")));
      found.frames.push_back(std::move(frame));
    }
    found.entered[node->id()] = it->second;
    ++found.frames[it->second].num_enters;
  }
  return found;
}

}  // namespace sluice
