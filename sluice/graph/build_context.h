// BuildContext: everything around a node that is being built — name scope,
// devices, control dependencies, colocation, extra attributes — and BuildNode,
// which applies it. Python's `with` blocks and C++'s Scope both end here
// (DESIGN D15), so both front ends build the same graphs.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "sluice/graph/device_name.h"
#include "sluice/graph/graph.h"

namespace sluice {

// Sees the new node, with the device that inner scopes gave it, and returns the
// device to use instead.
using DeviceFunction = std::function<absl::StatusOr<std::string>(const Node&)>;

// One tf.device block. Innermost first; persistent, so contexts share tails.
struct DeviceScope {
  enum class Kind { kSpec, kFunction, kClear };
  Kind kind = Kind::kSpec;
  DeviceName spec;
  DeviceFunction function;
  std::shared_ptr<const DeviceScope> outer;
};

// One control_dependencies block. `seen` are the nodes built inside: a node
// that takes one of them as input waits for the block's nodes already.
struct ControlScope {
  std::vector<Node*> nodes;
  absl::flat_hash_set<const Node*> seen;
};

// A cond branch or while body under construction (control_flow.h).
class ControlFlowContext;

// A value: copying one is how scopes nest.
struct BuildContext {
  std::string name_scope;  // Empty, or ends in '/'.
  std::shared_ptr<const DeviceScope> devices;
  std::vector<std::shared_ptr<ControlScope>> controls;
  std::vector<Node*> colocation;                         // Innermost last.
  std::vector<std::pair<std::string, AttrValue>> attrs;  // Later ones win.
  std::string container;
  // Op type -> name of the gradient to use for it.
  std::shared_ptr<const absl::flat_hash_map<std::string, std::string>>
      gradient_overrides;
  std::shared_ptr<ControlFlowContext> control_flow;

  void PushDevice(const DeviceName& spec);
  void PushDeviceFunction(DeviceFunction function);
  void ClearDevices();
  void PushControl(std::vector<Node*> nodes);
  // Drops the control dependencies and leaves the cond or while.
  void ClearControl();
  // Hides the devices around it; `replace` hides outer colocation too.
  void PushColocation(Node* node, bool replace = false);
};

// The names taken in a graph and its current context. Owned by the graph.
class BuildState {
 public:
  // TensorFlow's rule (runtime §4.1): case-insensitive, `_1`, `_2`, … appended;
  // op and scope names share the table.
  std::string UniqueName(std::string_view full_name, bool mark_as_used = true);
  void MarkUsed(std::string_view full_name);

  BuildContext& current() { return current_; }

  // True the first time it is asked for `key`. TensorFlow's gradients compute
  // some values with nodes only once per graph and remember the result.
  bool FirstTime(std::string key) {
    return remembered_.insert(std::move(key)).second;
  }

  bool finalized = false;

  // The first error of a Scope on this graph. It is kept here because operators
  // on outputs have no scope, and because Session, which reports it, sees only
  // the graph. Shared, as scopes are values.
  const std::shared_ptr<absl::Status>& error() const { return error_; }

 private:
  BuildContext current_;
  std::shared_ptr<absl::Status> error_ = std::make_shared<absl::Status>();
  absl::flat_hash_map<std::string, int> used_;
  absl::flat_hash_set<std::string> remembered_;
};

// Adds what the device blocks of `context` ask for to what `node` asks for.
absl::Status ApplyDevices(const BuildContext& context, Node* node);

// The nodes of the control_dependencies blocks, less those that a data input
// waits for already.
std::vector<Node*> ControlsFor(const BuildContext& context,
                               std::span<const Output> inputs);

struct NewNode {
  std::string op;
  // Without scope; empty means the op's name; a trailing '/' means exactly so.
  std::string name;
  std::vector<Output> inputs;
  AttrMap attrs;
  std::vector<Node*> control_inputs;  // Besides those of the context.
};
// Adds a node under `context`. FailedPrecondition when the graph is finalized.
absl::StatusOr<Node*> BuildNode(Graph& graph, const BuildContext& context,
                                NewNode node);

// "cond" in scope "a/" -> "a/cond/" or "a/cond_1/", marked as used. An empty
// name gives the root, a trailing '/' re-enters that scope as it stands.
absl::StatusOr<std::string> EnterNameScope(Graph& graph,
                                           const BuildContext& context,
                                           std::string_view name);

bool IsValidNodeName(std::string_view name);
bool IsValidScopeName(std::string_view name);

}  // namespace sluice
