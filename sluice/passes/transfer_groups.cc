#include "sluice/passes/transfer_groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "sluice/base/status.h"
#include "sluice/graph/frames.h"

namespace sluice {
namespace {

// Larger tensors travel alone, without being copied on their way.
constexpr int64_t kMaxMemberBytes = 64 << 10;
constexpr int64_t kMaxGroupBytes = 1 << 20;

// Whether a node may wait for another step. Ops with state other than variables
// and random numbers are taken for such.
bool MayWait(const Node& node) {
  static constexpr std::string_view kPrompt[] = {
      "_Recv",          "Variable",
      "VarHandleOp",    "VarIsInit",
      "ReadVariableOp", "Assign",
      "ResourceApply",  "ResourceSparseApply",
      "ResourceGather", "ResourceScatter",
      "Random",         "Truncated"};
  for (std::string_view prefix : kPrompt) {
    if (std::string_view(node.type()).starts_with(prefix)) return false;
  }
  if (node.op().def.stateful) return true;
  for (int i = 0; i < node.num_inputs(); ++i) {
    const DType type = node.input_type(i);
    // What a queue or a table is known by.
    if (type == DType::kResource || type == RefType(DType::kString))
      return true;
  }
  return false;
}

int64_t BytesOf(Output value) {
  const int64_t size = ElementSize(BaseType(TypeOf(value)));
  const int64_t elements = ShapeOf(value).NumElements();
  return size == 0 || elements < 0 ? -1 : size * elements;
}

class Grouper {
 public:
  Grouper(const Graph& graph, const std::vector<int>& part)
      : part_(part),
        borders_(graph.num_nodes(), 0),
        waits_(graph.num_nodes(), false) {}

  absl::StatusOr<std::vector<TransferGroup>> Run(const Graph& graph) {
    SLUICE_ASSIGN_OR_RETURN(const LoopFrames frames, FindFrames(graph));
    if (frames.frames.size() > 1) return std::vector<TransferGroup>();
    for (const Node* node : frames.order) Visit(*node);
    for (const Node* node : frames.order) FindWanted(*node);
    for (const Node* node : frames.order) Collect(*node);
    std::vector<TransferGroup> groups;
    for (auto& [where, group] : groups_) {
      if (group.members.size() > 1) groups.push_back(std::move(group.members));
    }
    return groups;
  }

 private:
  // Node, output, destination part.
  using Crossing = std::tuple<int, int, int>;
  // Source and destination device, borders crossed before, and which of those.
  using Where = std::tuple<std::string, std::string, int, int>;
  struct Group {
    TransferGroup members;
    int64_t bytes = 0;
  };

  void Visit(const Node& node) {
    const int id = node.id();
    waits_[id] = MayWait(node);
    const auto after = [&](const Node& before) {
      const int crossed = part_[before.id()] == part_[id] ? 0 : 1;
      borders_[id] = std::max(borders_[id], borders_[before.id()] + crossed);
      if (waits_[before.id()]) waits_[id] = true;
    };
    for (const Output& input : node.inputs()) after(*input.node);
    for (const Node* control : node.control_inputs()) after(*control);
  }

  // A node runs when its last input is there, so no other input need cross
  // before that one does.
  void FindWanted(const Node& node) {
    const int to = part_[node.id()];
    for (const Output& input : node.inputs()) {
      const Node& src = *input.node;
      if (part_[src.id()] == to) continue;
      int last = 0;
      for (const Output& other : node.inputs()) {
        const Node& from = *other.node;
        if (from.assigned_device() == src.assigned_device()) {
          last = std::max(last, borders_[from.id()]);
        }
      }
      const auto [wanted, first] =
          wanted_.emplace(Crossing(src.id(), input.index, to), last);
      if (!first) wanted->second = std::min(wanted->second, last);
    }
  }

  void Collect(const Node& node) {
    for (const Output& input : node.inputs()) {
      const Node& src = *input.node;
      const int to = part_[node.id()];
      if (part_[src.id()] == to || waits_[src.id()]) continue;
      if (IsReadLate(node, input)) continue;
      const int64_t bytes = BytesOf(input);
      if (bytes < 0 || bytes > kMaxMemberBytes) continue;
      const Crossing crossing(src.id(), input.index, to);
      if (!seen_.insert(crossing).second) continue;
      int which = 0;
      Group* group;
      do {
        group = &groups_[{src.assigned_device(), node.assigned_device(),
                          wanted_[crossing], which++}];
      } while (group->bytes + bytes > kMaxGroupBytes);
      group->members.push_back({input, to, node.assigned_device()});
      group->bytes += bytes;
    }
  }

  const std::vector<int>& part_;
  std::vector<int> borders_;  // By node id.
  std::vector<bool> waits_;   // By node id: it or something before it may.
  // Borders crossed by what the value is wanted with, at the least.
  std::map<Crossing, int> wanted_;
  std::set<Crossing> seen_;
  std::map<Where, Group> groups_;
};

}  // namespace

bool IsReadLate(const Node& reader, Output input) {
  return IsRef(TypeOf(input)) && !IsMerge(reader) &&
         (reader.num_inputs() > 1 || !reader.control_inputs().empty());
}

absl::StatusOr<std::vector<TransferGroup>> GroupTransfers(
    const Graph& graph, const std::vector<int>& part) {
  return Grouper(graph, part).Run(graph);
}

}  // namespace sluice
