// Scope: how C++ builds graphs. A cheap value: a graph, the context that new
// nodes get, and the first error. After an error every Add gives "none", so
// expressions stay readable; Session and status() report it.
// With: a Scope that is the graph's current one while it lives.
//
//   Scope root(graph);
//   Output w = root.NameScope("layer").Add("MatMul", {x, y}, {{"transpose_a",
//   true}});
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "sluice/graph/build_context.h"

namespace sluice {

// Thread-compatible. All scopes of a graph share its error.
class Scope {
 public:
  // Builds into `graph` under the graph's current context.
  explicit Scope(Graph& graph);
  // As that, with an error of its own: for a call that reports its failure and
  // leaves the graph as usable as before.
  static Scope Detached(Graph& graph);

  Graph& graph() const { return *graph_; }
  const BuildContext& context() const { return context_; }
  BuildContext& context() { return context_; }

  bool ok() const { return error_->ok(); }
  const absl::Status& status() const { return *error_; }
  // Remembers the first error.
  void Fail(absl::Status error) const;

  // Opens a name scope, made unique.
  Scope NameScope(std::string_view name) const;
  // The name of the next node(s), made unique.
  Scope Named(std::string_view name) const;
  // What Named gave; empty: the op's own name.
  const std::string& next_name() const { return next_name_; }
  Scope Device(std::string_view spec) const;
  Scope Device(DeviceFunction function) const;
  Scope Control(std::vector<Node*> nodes) const;
  Scope Control(const std::vector<Output>& outputs) const;
  Scope NoControl() const;
  Scope Colocate(Node* node) const;
  Scope Attr(std::string_view name, AttrValue value) const;
  Scope Container(std::string_view container) const;

  // Adds a node; list inputs are given one after the other. nullptr after an
  // error.
  Node* AddNode(std::string_view op, const std::vector<Output>& inputs,
                AttrMap attrs = {}) const;
  // Its output 0.
  Output Add(std::string_view op, const std::vector<Output>& inputs,
             AttrMap attrs = {}) const;
  // All its outputs.
  std::vector<Output> AddMulti(std::string_view op,
                               const std::vector<Output>& inputs,
                               AttrMap attrs = {}) const;
  // A Const, named "Const" unless Named says otherwise.
  Output Const(Tensor value) const;
  template <typename T>
  Output Scalar(T value) const {
    return Const(Tensor::Scalar<T>(value));
  }
  // A vector of int32, as shapes and axes are written.
  Output Ints(std::vector<int32_t> values) const;

 private:
  Graph* graph_;
  BuildContext context_;
  std::string next_name_;
  std::shared_ptr<absl::Status> error_;
};

// What Python's `with` does: until it dies, new scopes of the graph and the
// operators on its outputs (client/operators.h) build under it.
//
//   With ps(root.Device("/job:ps/task:0"));
//   Output y = ops::Const(ps, 3.0f) * 2;  // Both on the ps.
class With : public Scope {
 public:
  explicit With(Scope scope);
  ~With();
  With(const With&) = delete;
  With& operator=(const With&) = delete;

 private:
  BuildContext saved_;
};

// A scalar `value` converted to `dtype`; for 0, 1, 2 and the like.
Tensor ScalarOfType(DType dtype, double value);

}  // namespace sluice
