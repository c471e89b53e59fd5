// Graphs, nodes, attributes and op definitions as wire messages, both ways.
// What comes in is checked: bad input gives an error that names the node, and
// then nothing has been added.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/graph/graph.h"

namespace sluice {

namespace pb {
class AttrValue;
class GraphDef;
class NodeDef;
class OpDef;
}  // namespace pb

// The newest GraphDef version we read, and the one we write.
inline constexpr int kGraphDefVersion = 134;

absl::StatusOr<AttrValue> AttrFromProto(const pb::AttrValue& proto);
void AttrToProto(const AttrValue& value, pb::AttrValue* proto);

absl::StatusOr<OpDef> OpDefFromProto(const pb::OpDef& proto);
void OpDefToProto(const OpDef& def, pb::OpDef* proto);

struct ImportOptions {
  // Goes before every name; with or without the '/' at its end.
  std::string prefix;
  // A name that is taken gets `_1`, `_2`, … appended instead of being an error.
  bool uniquify_names = false;
  // Tensor name in the GraphDef ("a", "a:1"; "^a" for control edges) -> what to
  // use instead. A key that names nothing in the GraphDef is an error.
  std::map<std::string, Output> input_map;
  // Leaves out nodes all of whose outputs are mapped.
  bool skip_mapped_nodes = false;
  // Every imported node waits for these, itself or through its inputs.
  std::vector<Node*> control_dependencies;
  std::vector<std::string> return_tensors;
  std::vector<std::string> return_nodes;
  // For nodes without a device.
  std::string default_device;
  // Whether `_class` may name only nodes that exist.
  bool validate_colocation = true;
  // The GraphDef goes on where the graph ends (ExtendSession): inputs may name
  // nodes that are in the graph already.
  bool extend = false;
  // Names may begin with '_', as in graphs that a master registers.
  bool allow_internal = false;
  // What all tensors of attributes together may take in memory.
  int64_t max_tensor_bytes = int64_t{8} << 30;
};

struct ImportResults {
  std::vector<Output> return_tensors;
  std::vector<Node*> return_nodes;
  // The new nodes have the ids from here on.
  int first_node = 0;
};

// Adds the nodes and functions of `def`. Nodes may stand in any order; they are
// added in that of the file as far as inputs allow. The only cycles are those
// from NextIteration to Merge. `_output_shapes` refines inferred shapes and is
// not kept. Attributes newer than ours that hold their default are dropped
// (DESIGN D1). `results` may be null.
absl::Status ImportGraphDef(const pb::GraphDef& def,
                            const ImportOptions& options, Graph* graph,
                            ImportResults* results = nullptr);

struct ExportOptions {
  // Nodes with smaller ids are left out.
  int from_node = 0;
  // Adds `_output_shapes`.
  bool add_shapes = false;
  // Writes the device placement chose, where it has.
  bool assigned_devices = false;
  // Null: all nodes.
  std::function<bool(const Node&)> filter;
};

void ExportGraphDef(const Graph& graph, const ExportOptions& options,
                    pb::GraphDef* def);
void NodeToDef(const Node& node, pb::NodeDef* def);

// "{{node a}} = Neg[T=DT_FLOAT](x)", as error messages show a node.
std::string NodeSummary(const Node& node);
std::string NodeSummary(const pb::NodeDef& def);

}  // namespace sluice
