#include "sluice/passes/partition.h"

#include <map>
#include <span>

#include "absl/container/flat_hash_map.h"
#include "sluice/base/status.h"
#include "sluice/graph/functions.h"
#include "sluice/passes/control_loops.h"
#include "sluice/passes/step_graph.h"
#include "sluice/passes/transfer_groups.h"

namespace sluice {
namespace {

// Whether nothing happens when the node runs, and nobody waits for it but the
// end of the step, which is the end of all parts.
bool IsOnlyAwaited(const Node& node) {
  return node.type() == "NoOp" && node.out_edges().empty();
}

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
    if (options_.group_transfers) SLUICE_RETURN_IF_ERROR(MakeGroups());
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
    if (!graph_.functions().empty()) {
      for (Part& part : parts_) {
        part.graph->functions() = graph_.functions().ReachedFrom(*part.graph);
      }
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
    std::vector<Node*> others;  // Where inputs of the copy come from.
    std::vector<LateRead> late;
    for (int i = 0; i < node.num_inputs(); ++i) {
      const Output input = node.input(i);
      if (!input) continue;
      if (part_[input.node->id()] == part_[id]) {
        others.push_back(copies_[input.node->id()]);
        part.Connect({others.back(), input.index}, copy, i);
        continue;
      }
      if (IsReadLate(node, input)) {
        // Each reader of a variable has its own time to read it.
        SLUICE_ASSIGN_OR_RETURN(
            const Ends ends, MakePair({copies_[input.node->id()], input.index},
                                      *input.node, node));
        late.push_back({input.node, ends});
        part.Connect(ends.recv->output(0), copy, i);
        continue;
      }
      SLUICE_ASSIGN_OR_RETURN(Output received, Receive(node, input));
      others.push_back(received.node);
      part.Connect(received, copy, i);
    }
    for (const Node* control : node.control_inputs()) {
      if (part_[control->id()] == part_[id]) {
        others.push_back(copies_[control->id()]);
      } else if (IsOnlyAwaited(node)) {
        continue;
      } else {
        SLUICE_ASSIGN_OR_RETURN(others.emplace_back(),
                                ControlTransfer(node, *control));
      }
      part.AddControlEdge(others.back(), copy);
    }
    for (const LateRead& read : late) {
      for (Node* other : others) part.AddControlEdge(other, read.ends.recv);
      SLUICE_RETURN_IF_ERROR(WaitForOthers(node, read, late));
    }
    return absl::OkStatus();
  }

  // The two ends of a transfer.
  struct Ends {
    Node* send;
    Node* recv;
  };
  // Of a variable, by the node in question.
  struct LateRead {
    const Node* src;
    Ends ends;
  };

  // A variable may come from an update that another input of its reader is the
  // result of.
  absl::Status WaitForOthers(const Node& reader, const LateRead& read,
                             std::span<const LateRead> all) {
    for (const LateRead& other : all) {
      if (other.src == read.src || other.src->num_inputs() == 0) continue;
      if (part_[other.src->id()] == part_[read.src->id()]) {
        parts_[part_[read.src->id()]].graph->AddControlEdge(
            copies_[other.src->id()], read.ends.send);
        continue;
      }
      SLUICE_ASSIGN_OR_RETURN(Node * signal,
                              ControlTransfer(reader, *other.src));
      parts_[part_[reader.id()]].graph->AddControlEdge(signal, read.ends.recv);
    }
    return absl::OkStatus();
  }

  std::string NewName(const std::string& base) {
    return StrCat(base, "/", options_.suffix, next_name_++);
  }

  absl::Status MakeGroups() {
    SLUICE_ASSIGN_OR_RETURN(std::vector<TransferGroup> groups,
                            GroupTransfers(graph_, part_));
    for (const TransferGroup& group : groups) {
      SLUICE_RETURN_IF_ERROR(MakeGroup(group));
    }
    return absl::OkStatus();
  }

  absl::Status MakeGroup(const TransferGroup& group) {
    AttrList names, types;
    std::string src, dst;
    int64_t incarnation = 0;
    for (const Transfer& transfer : group) {
      const Node& node = *transfer.value.node;
      SLUICE_ASSIGN_OR_RETURN(
          const SendEnd send,
          MakeSend({copies_[node.id()], transfer.value.index}, node,
                   transfer.device));
      const AttrMap& attrs = send.attrs;
      names.strings.push_back(*attrs.Find<std::string>("tensor_name"));
      types.types.push_back(BaseType(TypeOf(transfer.value)));
      src = node.assigned_device();
      dst = transfer.device;
      incarnation = *attrs.Find<int64_t>("send_device_incarnation");
    }
    const int to = group[0].to;
    SLUICE_ASSIGN_OR_RETURN(
        Node * recv,
        parts_[to].graph->AddNode({NewName(group[0].value.node->name()),
                                   "_SluiceRecvGroup",
                                   {},
                                   {},
                                   {{"tensor_types", types},
                                    {"tensor_names", names},
                                    {"send_device", src},
                                    {"send_device_incarnation", incarnation},
                                    {"recv_device", dst}},
                                   ""}));
    recv->set_assigned_device(dst);
    for (size_t i = 0; i < group.size(); ++i) {
      const Output value = group[i].value;
      recvs_[{value.node->id(), value.index, to}] =
          recv->output(static_cast<int>(i));
    }
    return absl::OkStatus();
  }

  // A value from another part, in the part of `dst`.
  absl::StatusOr<Output> Receive(const Node& dst, Output input) {
    const Key key{input.node->id(), input.index, part_[dst.id()]};
    if (auto it = recvs_.find(key); it != recvs_.end()) return it->second;
    SLUICE_ASSIGN_OR_RETURN(
        const Ends ends,
        MakePair({copies_[input.node->id()], input.index}, *input.node, dst));
    if (!IsRef(TypeOf(input))) recvs_[key] = ends.recv->output(0);
    return ends.recv->output(0);
  }

  // A control edge travels as an empty constant.
  absl::StatusOr<Node*> ControlTransfer(const Node& dst, const Node& src) {
    const Key key{src.id(), -1, part_[dst.id()]};
    if (auto it = recvs_.find(key); it != recvs_.end()) return it->second.node;
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
    SLUICE_ASSIGN_OR_RETURN(const Ends ends,
                            MakePair(token->output(0), src, dst));
    Graph& to = *parts_[part_[dst.id()]].graph;
    SLUICE_ASSIGN_OR_RETURN(Node * signal, to.AddNode({NewName(src.name()),
                                                       "Identity",
                                                       {ends.recv->output(0)},
                                                       {},
                                                       {},
                                                       ""}));
    signal->set_assigned_device(dst.assigned_device());
    recvs_[key] = signal->output(0);
    return signal;
  }

  struct SendEnd {
    Node* node;
    AttrMap attrs;  // Of both ends.
  };
  absl::StatusOr<SendEnd> MakeSend(Output value, const Node& src,
                                   const std::string& device) {
    SLUICE_ASSIGN_OR_RETURN(uint64_t incarnation,
                            options_.incarnation(src.assigned_device()));
    AttrMap attrs =
        TransferAttrs(StrCat("edge_", next_edge_++, "_", src.name()),
                      src.assigned_device(), incarnation, device, false);
    SLUICE_ASSIGN_OR_RETURN(
        Node * send,
        parts_[part_[src.id()]].graph->AddNode(
            {NewName(src.name()), "_Send", {value}, {}, attrs, ""}));
    send->set_assigned_device(src.assigned_device());
    return SendEnd{send, std::move(attrs)};
  }

  absl::StatusOr<Ends> MakePair(Output value, const Node& src,
                                const Node& dst) {
    SLUICE_ASSIGN_OR_RETURN(SendEnd send,
                            MakeSend(value, src, dst.assigned_device()));
    Graph& to = *parts_[part_[dst.id()]].graph;
    send.attrs.Set("tensor_type", BaseType(TypeOf(value)));
    SLUICE_ASSIGN_OR_RETURN(
        Node * recv,
        to.AddNode({NewName(src.name()), "_Recv", {}, {}, send.attrs, ""}));
    recv->set_assigned_device(dst.assigned_device());
    // Inside of a loop it runs once an iteration.
    for (const Node* control : dst.control_inputs()) {
      if (IsControlLoopMerge(*control) &&
          part_[control->id()] == part_[dst.id()]) {
        to.AddControlEdge(copies_[control->id()], recv);
      }
    }
    return Ends{send.node, recv};
  }

  using Key = std::tuple<int, int, int>;  // Node, output (-1: control), part.

  const Graph& graph_;
  const PartitionOptions& options_;
  std::vector<Part> parts_;
  std::vector<int> part_;      // By node id.
  std::vector<Node*> copies_;  // By node id.
  absl::flat_hash_map<Key, Output> recvs_;
  int next_name_ = 0;
  int next_edge_ = 0;
};

}  // namespace

absl::Status SpreadConstants(Graph& graph) {
  constexpr int64_t kMaxElements = 256;
  const int num_nodes = graph.num_nodes();
  for (int id = 0; id < num_nodes; ++id) {
    Node* node = graph.node(id);
    if (node->type() != "Const" || !node->control_inputs().empty()) continue;
    if (node->attr<Tensor>("value").size() > kMaxElements) continue;
    std::map<std::string, Node*> copies;
    const std::vector<OutEdge> edges(node->out_edges().begin(),
                                     node->out_edges().end());
    for (const OutEdge& edge : edges) {
      const std::string& device = edge.dst->assigned_device();
      // What a client fetches comes from the device it was placed on.
      if (edge.src_output < 0 || device == node->assigned_device() ||
          edge.dst->type() == "_Send") {
        continue;
      }
      Node*& copy = copies[device];
      if (copy == nullptr) {
        copy = graph.CopyNode(*node, StrCat(node->name(), "/_C",
                                            static_cast<int>(copies.size())));
        copy->set_assigned_device(device);
      }
      SLUICE_RETURN_IF_ERROR(
          graph.SetInput(edge.dst, edge.dst_input, copy->output(0)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Part>> Partition(const Graph& graph,
                                            const PartitionOptions& options) {
  return Partitioner(graph, options).Run();
}

}  // namespace sluice
