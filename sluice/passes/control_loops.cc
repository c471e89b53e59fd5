#include "sluice/passes/control_loops.h"

#include <algorithm>
#include <map>
#include <set>

#include "sluice/base/status.h"
#include "sluice/graph/frames.h"

namespace sluice {
namespace {

constexpr char kPrefix[] = "_cloop";

class ControlLoopBuilder {
 public:
  explicit ControlLoopBuilder(Graph& graph) : graph_(graph) {}

  absl::Status Run() {
    SLUICE_ASSIGN_OR_RETURN(frames_, FindFrames(graph_));
    for (const Node* node : frames_.order) MoveToItsValue(node->id());
    conditions_.resize(frames_.frames.size(), nullptr);
    const int num_nodes = graph_.num_nodes();
    for (int id = 0; id < num_nodes; ++id) {
      Node* node = graph_.node(id);
      if (node->type() == "LoopCond") conditions_[frames_.frame[id]] = node;
    }
    for (int id = 0; id < num_nodes; ++id) {
      Node* node = graph_.node(id);
      if (frames_.frame[id] == 0 || !TakesFromElsewhere(*node)) continue;
      SLUICE_ASSIGN_OR_RETURN(
          Node * merge, MergeOf(frames_.frame[id], node->assigned_device()));
      graph_.AddControlEdge(merge, node);
    }
    return LoopWhereInvariantsAreSent(num_nodes);
  }

 private:
  // What does not change in a loop is sent in each iteration, so its device
  // must have them, though nothing else there does.
  absl::Status LoopWhereInvariantsAreSent(int num_nodes) {
    std::set<std::pair<int, std::string>> looping;
    for (int id = 0; id < num_nodes; ++id) {
      const Node* node = graph_.node(id);
      if (IsNextIteration(*node)) {
        looping.emplace(frames_.frame[id], node->assigned_device());
      }
    }
    for (int id = 0; id < num_nodes; ++id) {
      const Node* node = graph_.node(id);
      const int frame = frames_.OfOutputs(*node);
      if (frame == 0 || !GoesElsewhere(*node) ||
          looping.contains({frame, node->assigned_device()})) {
        continue;
      }
      SLUICE_RETURN_IF_ERROR(MergeOf(frame, node->assigned_device()).status());
    }
    return absl::OkStatus();
  }

  static bool GoesElsewhere(const Node& node) {
    return std::ranges::any_of(node.out_edges(), [&](const OutEdge& edge) {
      return edge.dst->assigned_device() != node.assigned_device();
    });
  }

  // So that the back edge of a loop is never cut, and a value that a branch
  // does not need stays where it is.
  void MoveToItsValue(int id) {
    Node& node = *graph_.node(id);
    if (IsSwitch(node) || IsExit(node)) {
      node.set_assigned_device(node.input(0).node->assigned_device());
    } else if (node.type() == "Enter" || IsNextIteration(node)) {
      for (const OutEdge& edge : node.out_edges()) {
        if (edge.dst_input < 0) continue;
        node.set_assigned_device(edge.dst->assigned_device());
        break;
      }
    }
  }

  static bool TakesFromElsewhere(const Node& node) {
    const auto elsewhere = [&](const Node& input) {
      return input.assigned_device() != node.assigned_device();
    };
    return std::ranges::any_of(
               node.inputs(),
               [&](const Output& o) { return elsewhere(*o.node); }) ||
           std::ranges::any_of(node.control_inputs(),
                               [&](const Node* n) { return elsewhere(*n); });
  }

  absl::StatusOr<Node*> Add(const char* op, std::vector<Output> inputs,
                            AttrMap attrs, const std::string& device) {
    NodeSpec spec;
    spec.name = StrCat(kPrefix, "/", op, "_", next_name_++);
    spec.op = op;
    spec.inputs = std::move(inputs);
    spec.attrs = std::move(attrs);
    SLUICE_ASSIGN_OR_RETURN(Node * node, graph_.AddNode(std::move(spec)));
    node->set_assigned_device(device);
    return node;
  }

  // The Merge of the control loop for `frame` on `device`, made at first use
  // with those of the frames around it.
  absl::StatusOr<Node*> MergeOf(int frame, const std::string& device) {
    if (auto it = merges_.find({frame, device}); it != merges_.end()) {
      return it->second;
    }
    const LoopFrames::Frame& def = frames_.frames[frame];
    Node* condition = conditions_[frame];
    if (condition == nullptr) {
      return InvalidArgument(
          "A cross-device loop must have a pivot predicate: ", def.name);
    }
    Node* outside;
    if (def.parent == 0) {
      SLUICE_ASSIGN_OR_RETURN(outside,
                              Add("Const", {},
                                  {{"value", Tensor(DType::kFloat, Shape({0}))},
                                   {"dtype", DType::kFloat}},
                                  device));
    } else {
      SLUICE_ASSIGN_OR_RETURN(outside, MergeOf(def.parent, device));
    }
    SLUICE_ASSIGN_OR_RETURN(
        Node * enter,
        Add("Enter", {outside->output(0)},
            {{"frame_name", def.name},
             {"is_constant", false},
             {"parallel_iterations", int64_t{def.parallel_iterations}}},
            device));
    SLUICE_ASSIGN_OR_RETURN(
        Node * merge,
        Add("Merge", {enter->output(0), enter->output(0)}, {}, device));
    SLUICE_ASSIGN_OR_RETURN(
        Node * branch,
        Add("Switch", {merge->output(0), condition->output(0)}, {}, device));
    SLUICE_ASSIGN_OR_RETURN(
        Node * next, Add("NextIteration", {branch->output(1)}, {}, device));
    SLUICE_RETURN_IF_ERROR(graph_.SetInput(merge, 1, next->output(0)));
    // The condition is received once an iteration, too.
    graph_.AddControlEdge(merge, branch);
    merges_[{frame, device}] = merge;
    return merge;
  }

  Graph& graph_;
  LoopFrames frames_;
  std::vector<Node*> conditions_;  // By frame.
  std::map<std::pair<int, std::string>, Node*> merges_;
  int next_name_ = 0;
};

}  // namespace

absl::Status AddControlLoops(Graph& graph) {
  for (int id = 0; id < graph.num_nodes(); ++id) {
    if (graph.node(id)->IsControlFlow()) return ControlLoopBuilder(graph).Run();
  }
  return absl::OkStatus();
}

bool IsControlLoopMerge(const Node& node) {
  return IsMerge(node) && node.name().starts_with(kPrefix);
}

}  // namespace sluice
