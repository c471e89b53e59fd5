#include "sluice/passes/partition.h"

#include <map>

#include "absl/container/flat_hash_map.h"
#include "sluice/base/status.h"
#include "sluice/passes/control_loops.h"
#include "sluice/passes/step_graph.h"

namespace sluice {
namespace {

class Partitioner {
 public:
  Partitioner(const Graph& graph, const PartitionOptions& options)
      : graph_(graph), options_(options) {}

  absl::StatusOr<std::vector<Part>> Run() {
    SLUICE_RETURN_IF_ERROR(CopyNodes());
    if (parts_.size() == 1) {
      ConnectAllInside();
      return std::move(parts_);
    }
    for (int id = 0; id < graph_.num_nodes(); ++id) {
      SLUICE_RETURN_IF_ERROR(ConnectInputs(*graph_.node(id)));
    }
    return std::move(parts_);
  }

 private:
  absl::Status CopyNodes() {
    absl::flat_hash_map<std::string, int> device_parts;
    std::map<std::string, int> by_name;
    for (int id = 0; id < graph_.num_nodes(); ++id) {
      const Node& node = *graph_.node(id);
      const std::string& device = node.assigned_device();
      if (device.empty()) {
        return Internal("Node ", node.name(), " was not placed on a device");
      }
      auto [it, added] = device_parts.try_emplace(device, 0);
      if (added) {
        const std::string name = options_.part_of(device);
        auto [part, new_part] =
            by_name.try_emplace(name, static_cast<int>(parts_.size()));
        if (new_part) {
          parts_.push_back({name, std::make_unique<Graph>()});
          parts_.back().graph->versions() = graph_.versions();
        }
        it->second = part->second;
      }
      part_.push_back(it->second);
      copies_.push_back(parts_[it->second].graph->CopyNode(node, node.name()));
    }
    return absl::OkStatus();
  }

  void ConnectAllInside() {
    Graph& part = *parts_[0].graph;
    for (int id = 0; id < graph_.num_nodes(); ++id) {
      const Node& node = *graph_.node(id);
      for (int i = 0; i < node.num_inputs(); ++i) {
        const Output input = node.input(i);
        if (input)
          part.Connect({copies_[input.node->id()], input.index}, copies_[id],
                       i);
      }
      for (const Node* control : node.control_inputs()) {
        part.AddControlEdge(copies_[control->id()], copies_[id]);
      }
    }
  }

  absl::Status ConnectInputs(const Node& node) {
    const int id = node.id();
    Graph& part = *parts_[part_[id]].graph;
    Node* copy = copies_[id];
    for (int i = 0; i < node.num_inputs(); ++i) {
      const Output input = node.input(i);
      if (!input) continue;
      if (part_[input.node->id()] == part_[id]) {
        part.Connect({copies_[input.node->id()], input.index}, copy, i);
        continue;
      }
      SLUICE_ASSIGN_OR_RETURN(Node * recv, Transfer(node, input));
      part.Connect(recv->output(0), copy, i);
    }
    for (const Node* control : node.control_inputs()) {
      if (part_[control->id()] == part_[id]) {
        part.AddControlEdge(copies_[control->id()], copy);
        continue;
      }
      SLUICE_ASSIGN_OR_RETURN(Node * signal, ControlTransfer(node, *control));
      part.AddControlEdge(signal, copy);
    }
    return absl::OkStatus();
  }

  std::string NewName(const std::string& base) {
    return StrCat(base, "/", options_.suffix, next_name_++);
  }

  // The receive, in the part of `dst`, of a value from another part.
  absl::StatusOr<Node*> Transfer(const Node& dst, Output input) {
    const int to = part_[dst.id()];
    const bool ref = IsRef(TypeOf(input));
    const Key key{input.node->id(), input.index, to};
    if (!ref) {
      if (auto it = recvs_.find(key); it != recvs_.end()) return it->second;
    }
    SLUICE_ASSIGN_OR_RETURN(
        Node * recv,
        MakePair({copies_[input.node->id()], input.index}, *input.node, dst));
    if (!ref) {
      recvs_[key] = recv;
      return recv;
    }
    // A variable is read as late as it would be without the cut: when the
    // node's other inputs are there.
    for (const Output& other : dst.inputs()) {
      if (other.node != input.node && part_[other.node->id()] == to) {
        parts_[to].graph->AddControlEdge(copies_[other.node->id()], recv);
      }
    }
    return recv;
  }

  // A control edge travels as an empty constant.
  absl::StatusOr<Node*> ControlTransfer(const Node& dst, const Node& src) {
    const Key key{src.id(), -1, part_[dst.id()]};
    if (auto it = recvs_.find(key); it != recvs_.end()) return it->second;
    Graph& from = *parts_[part_[src.id()]].graph;
    SLUICE_ASSIGN_OR_RETURN(
        Node * token,
        from.AddNode({NewName(src.name()),
                      "Const",
                      {},
                      {copies_[src.id()]},
                      {{"value", Tensor(DType::kFloat, Shape({0}))},
                       {"dtype", DType::kFloat}},
                      ""}));
    token->set_assigned_device(src.assigned_device());
    SLUICE_ASSIGN_OR_RETURN(Node * recv, MakePair(token->output(0), src, dst));
    Graph& to = *parts_[part_[dst.id()]].graph;
    SLUICE_ASSIGN_OR_RETURN(
        Node * signal,
        to.AddNode(
            {NewName(src.name()), "Identity", {recv->output(0)}, {}, {}, ""}));
    signal->set_assigned_device(dst.assigned_device());
    recvs_[key] = signal;
    return signal;
  }

  absl::StatusOr<Node*> MakePair(Output value, const Node& src,
                                 const Node& dst) {
    SLUICE_ASSIGN_OR_RETURN(uint64_t incarnation,
                            options_.incarnation(src.assigned_device()));
    AttrMap attrs = TransferAttrs(
        StrCat("edge_", next_edge_++, "_", src.name()), src.assigned_device(),
        incarnation, dst.assigned_device(), false);
    Graph& from = *parts_[part_[src.id()]].graph;
    Graph& to = *parts_[part_[dst.id()]].graph;
    SLUICE_ASSIGN_OR_RETURN(
        Node * send,
        from.AddNode({NewName(src.name()), "_Send", {value}, {}, attrs, ""}));
    send->set_assigned_device(src.assigned_device());
    attrs.Set("tensor_type", BaseType(TypeOf(value)));
    SLUICE_ASSIGN_OR_RETURN(
        Node * recv,
        to.AddNode(
            {NewName(src.name()), "_Recv", {}, {}, std::move(attrs), ""}));
    recv->set_assigned_device(dst.assigned_device());
    // Inside of a loop it runs once an iteration.
    for (const Node* control : dst.control_inputs()) {
      if (IsControlLoopMerge(*control) &&
          part_[control->id()] == part_[dst.id()]) {
        to.AddControlEdge(copies_[control->id()], recv);
      }
    }
    return recv;
  }

  using Key = std::tuple<int, int, int>;  // Node, output (-1: control), part.

  const Graph& graph_;
  const PartitionOptions& options_;
  std::vector<Part> parts_;
  std::vector<int> part_;      // By node id.
  std::vector<Node*> copies_;  // By node id.
  absl::flat_hash_map<Key, Node*> recvs_;
  int next_name_ = 0;
  int next_edge_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<Part>> Partition(const Graph& graph,
                                            const PartitionOptions& options) {
  return Partitioner(graph, options).Run();
}

}  // namespace sluice
