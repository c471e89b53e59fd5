// VariableScope: a name below which variables are made once and found again,
// and what they inherit; Python's tf.variable_scope and tf.get_variable.
//
//   const VariableScope layer(scope, "layer");
//   const Variable w = layer.GetVariable("w", {784, 10});  // layer/w
//   Output y = ops::MatMul(layer, x, w);                   // layer/MatMul
//   const VariableScope again(scope, "layer", {.reuse = Reuse::kAlways});
//   again.GetVariable("w", {784, 10}) == w;
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/client/partitioners.h"
#include "sluice/client/variable.h"

namespace sluice {

// What GetVariable does: makes a variable, which must not be there yet; finds
// one, which must be there; or finds it if it is there, and else makes it.
enum class Reuse { kNever, kAlways, kAuto };

// Makes the first value for a shape and a type: ZerosInitializer, for example.
using InitializerOf = std::function<Initializer(const Shape&, DType)>;
// A term of the loss; none is fine.
using Regularizer = std::function<Output(const Scope&, const Variable&)>;

// What is not given is as in the scope around.
struct VariableScopeOptions {
  // Once a scope reuses, the ones inside do as well.
  Reuse reuse = Reuse::kNever;
  std::optional<DType> dtype = std::nullopt;
  // By default GlorotUniformInitializer for floats, ZerosInitializer for
  // integers, bools and strings.
  InitializerOf initializer = nullptr;
  Regularizer regularizer = nullptr;
  // For GetPartitionedVariable.
  Partitioner partitioner = nullptr;
  std::optional<bool> resource = std::nullopt;
  // False: ops are named as in the scope around.
  bool name_scope = true;
};

// What is not given is the scope's.
struct GetVariableOptions {
  std::optional<DType> dtype = std::nullopt;
  InitializerOf initializer = nullptr;
  Regularizer regularizer = nullptr;
  Partitioner partitioner = nullptr;
  std::optional<bool> resource = std::nullopt;
  bool trainable = true;
  std::vector<std::string> collections = {keys::kGlobalVariables};
};

// A value, and a Scope for ops inside; the graph keeps the variables.
// Thread-compatible. Errors go to the scope and give a variable that is none.
class VariableScope : public Scope {
 public:
  // Variables have the names they are given. A Scope is as good as one.
  VariableScope(const Scope& scope);  // NOLINT
  // Variables are called `<outer>/<name>/…`, ops as below name scope `name`.
  VariableScope(const VariableScope& outer, std::string_view name,
                const VariableScopeOptions& options = {});
  // The variables and defaults of `same`, wherever that was; ops as below its
  // last name.
  VariableScope(const VariableScope& outer, const VariableScope& same,
                const VariableScopeOptions& options = {});
  // A name that no scope has had below `outer`: "layer", "layer_1", …
  static VariableScope Unique(const VariableScope& outer,
                              std::string_view default_name,
                              const VariableScopeOptions& options = {});

  // The same variables and defaults, with ops and new variables as `scope` says
  // (devices and control dependencies).
  VariableScope On(const Scope& scope) const;

  // "a/b", or "" at the root.
  const std::string& name() const { return name_; }
  Reuse reuse() const { return defaults_.reuse; }

  Variable GetVariable(std::string_view name, const Shape& shape,
                       const GetVariableOptions& options = {}) const;
  // With that first value; of its shape.
  Variable GetVariableFrom(std::string_view name, const Output& initial_value,
                           const GetVariableOptions& options = {}) const;
  // One that is there already.
  Variable FindVariable(std::string_view name) const;

  // The parts `<name>/part_0`, …, as many as the partitioner says, or one.
  std::vector<Variable> GetPartitionedVariable(
      std::string_view name, const Shape& shape,
      const GetVariableOptions& options = {}) const;

 private:
  std::string FullName(std::string_view name) const;
  void Open(std::string_view name_scope, const VariableScopeOptions& options);
  // Found, or none if it is to be made; none after an error, too.
  Variable Find(const std::string& full_name, const Shape* shape,
                std::optional<DType> dtype) const;
  Variable Make(const std::string& full_name, const Initializer& initializer,
                const GetVariableOptions& options,
                std::optional<SaveSlice> slice = std::nullopt) const;
  Variable Register(const std::string& full_name, Variable made,
                    const GetVariableOptions& options) const;
  VariableOptions OptionsOf(const GetVariableOptions& options) const;
  DType TypeOfNew(const GetVariableOptions& options) const;
  // Null after an error. `whole` is what `shape` is a part of.
  Initializer InitializerFor(const std::string& full_name, const Shape& shape,
                             const Shape& whole,
                             const GetVariableOptions& options) const;
  std::vector<int> Cuts(const std::string& full_name, const Shape& shape,
                        const GetVariableOptions& options) const;

  std::string name_;
  VariableScopeOptions defaults_;
};

}  // namespace sluice
