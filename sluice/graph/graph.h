// Graph: nodes and the edges between them. Nodes are only ever added, so ids
// (0, 1, 2, …) and pointers stay valid; a few properties of a node can change
// later (its device, attributes, an input for the back edge of a loop).
//
// Graph checks every node it takes: the op exists, attributes fit it, inputs
// have the right number and types, shapes agree. scope.h builds graphs with
// names, devices and control edges; graph_def.h reads and writes the wire's.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <typeindex>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/graph/attr_value.h"
#include "sluice/graph/op_registry.h"
#include "sluice/tensor/shape.h"

namespace sluice {

class ControlFlowContext;
class Graph;

// What a resource output says of the variable behind it.
struct HandleShape {
  DType dtype = DType::kInvalid;
  PartialShape shape;
  bool operator==(const HandleShape&) const = default;
};

// An edge as its source sees it; a control edge has both indices -1.
struct OutEdge {
  Node* dst;
  int src_output;
  int dst_input;
};

// Owned by its graph. Thread-compatible.
class Node {
 public:
  int id() const { return id_; }
  Graph& graph() const { return *graph_; }
  const std::string& name() const { return name_; }
  const OpInfo& op() const { return *op_; }
  const std::string& type() const { return op_->def.name; }

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  Output input(int i) const { return inputs_[i]; }
  std::span<const Output> inputs() const { return inputs_; }
  std::span<Node* const> control_inputs() const { return control_inputs_; }
  // The declared type, a ref type for ref inputs.
  DType input_type(int i) const { return input_types_[i]; }

  int num_outputs() const { return static_cast<int>(output_types_.size()); }
  Output output(int i) const { return {const_cast<Node*>(this), i}; }
  DType output_type(int i) const { return output_types_[i]; }
  std::span<const DType> output_types() const { return output_types_; }
  const PartialShape& output_shape(int i) const { return output_shapes_[i]; }
  const HandleShape& output_handle(int i) const;

  std::span<const OutEdge> out_edges() const { return out_edges_; }

  const AttrMap& attrs() const { return attrs_; }
  const AttrValue* FindAttr(std::string_view name) const {
    return attrs_.Find(name);
  }
  // The attribute, or a default T if there is none of that kind.
  template <typename T>
  T attr(std::string_view name) const {
    const T* value = attrs_.Find<T>(name);
    return value == nullptr ? T() : *value;
  }

  // The device the program asked for, as it wrote it; may be empty.
  const std::string& device() const { return device_; }
  // The full name of the device placement chose; empty before.
  const std::string& assigned_device() const { return assigned_device_; }
  // nullptr outside of cond and while.
  const std::shared_ptr<ControlFlowContext>& control_flow() const {
    return control_flow_;
  }

  bool IsControlFlow() const;  // Switch, Merge, Enter, Exit, NextIteration, …

  void set_device(std::string device) { device_ = std::move(device); }
  void set_assigned_device(std::string device) {
    assigned_device_ = std::move(device);
  }
  void set_attr(std::string_view name, AttrValue value) {
    attrs_.Set(name, std::move(value));
  }
  void erase_attr(std::string_view name) { attrs_.Erase(name); }
  void set_control_flow(std::shared_ptr<ControlFlowContext> context) {
    control_flow_ = std::move(context);
  }
  // Merges `shape` into what is known of output i.
  absl::Status RefineOutputShape(int i, const PartialShape& shape);

 private:
  friend class Graph;
  friend class ShapeContext;
  Node() = default;

  int id_ = -1;
  Graph* graph_ = nullptr;
  std::string name_;
  const OpInfo* op_ = nullptr;
  std::vector<Output> inputs_;
  std::vector<Node*> control_inputs_;
  std::vector<DType> input_types_;
  std::vector<DType> output_types_;
  std::vector<PartialShape> output_shapes_;
  std::vector<HandleShape> output_handles_;  // Empty, or one per output.
  std::vector<OutEdge> out_edges_;
  AttrMap attrs_;
  std::string device_;
  std::string assigned_device_;
  std::shared_ptr<ControlFlowContext> control_flow_;
};

inline DType TypeOf(Output output) {
  return output.node->output_type(output.index);
}
inline const PartialShape& ShapeOf(Output output) {
  return output.node->output_shape(output.index);
}
// "w:0".
std::string TensorName(Output output);

// What a new node is made of. Type and number attributes that follow from the
// inputs may be left out.
struct NodeSpec {
  std::string name;
  std::string op;
  std::vector<Output> inputs;
  std::vector<Node*> control_inputs;
  AttrMap attrs;
  std::string device;
  // False: attrs without a default must all be there.
  bool infer_attrs = true;
};

// Versions as they stand in a GraphDef.
struct GraphVersions {
  int producer = 134;
  int min_consumer = 0;
  std::vector<int> bad_consumers;
};

class BuildState;
class FunctionLibrary;

// Thread-compatible.
class Graph {
 public:
  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  int num_nodes() const { return static_cast<int>(nodes_.size()); }
  Node* node(int id) const { return nodes_[id].get(); }
  // nullptr if there is none.
  Node* FindNode(std::string_view name) const;
  // "w:0" or "w" -> the output; errors say what is wrong with the name.
  absl::StatusOr<Output> FindOutput(std::string_view tensor_name) const;

  // The op of this name, or the function of this graph that is called so.
  absl::StatusOr<const OpInfo*> FindOp(std::string_view type) const;

  // Adds a node with exactly this name. Nothing is added when it fails.
  absl::StatusOr<Node*> AddNode(NodeSpec spec);
  // Takes the nodes with ids from `first` on away again, to undo an import that
  // failed. No node before them may have them as input.
  void Truncate(int first);
  // A back edge: replaces input `index` of `node`.
  absl::Status SetInput(Node* node, int index, Output value);
  void AddControlEdge(Node* src, Node* dst);

  // For passes, which move checked nodes into graphs of their own. The copy has
  // room for its inputs but no edges yet; Connect makes them, unchecked.
  Node* CopyNode(const Node& from, std::string name);
  void Connect(Output src, Node* dst, int input);

  // Runs shape inference for one node again (after SetInput).
  absl::Status InferShapes(Node* node);

  // Names and the context that front ends push on.
  BuildState& build() { return *build_; }

  FunctionLibrary& functions() { return *functions_; }
  const FunctionLibrary& functions() const { return *functions_; }
  // What higher layers keep with a graph, one T each (client/collections.h).
  // Made when first asked for; lives as long as the graph.
  template <typename T>
  T& Attached() {
    std::shared_ptr<void>& slot = attached_[std::type_index(typeid(T))];
    if (slot == nullptr) slot = std::make_shared<T>();
    return *static_cast<T*>(slot.get());
  }
  GraphVersions& versions() { return versions_; }
  const GraphVersions& versions() const { return versions_; }

 private:
  std::vector<std::unique_ptr<Node>> nodes_;
  absl::flat_hash_map<std::string_view, Node*> by_name_;
  std::unique_ptr<FunctionLibrary> functions_;
  std::unique_ptr<BuildState> build_;
  std::map<std::type_index, std::shared_ptr<void>> attached_;
  GraphVersions versions_;
};

// Fills type, number and list attributes of `attrs` that follow from the types
// of the inputs. Leaves what is there; errors when the inputs contradict it.
absl::Status InferAttrs(const OpDef& op, std::span<const Output> inputs,
                        AttrMap* attrs);

// Whether a value of type `from` may feed an input of type `to`.
bool TypeFits(DType from, DType to);

}  // namespace sluice
