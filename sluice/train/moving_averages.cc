#include "sluice/train/moving_averages.h"

#include <algorithm>

#include "sluice/autodiff/gate.h"
#include "sluice/base/status.h"
#include "sluice/client/collections.h"
#include "sluice/client/op_call.h"
#include "sluice/train/arithmetic.h"
#include "sluice/train/variable_ops.h"

namespace sluice {
namespace {

Output Debiased(const Scope& scope, const Variable& average, Output value,
                Output weight) {
  const VariableOptions hidden = {.trainable = false,
                                  .resource = average.resource()};
  const Scope beside = scope.NoControl().NameScope("").Colocate(average.node());
  const Variable biased(
      beside.Named(average.name() + "/biased"),
      ZerosInitializer(average.shape().AsShape(), average.dtype()), hidden);
  const Variable count(beside.Named(average.name() + "/local_step"),
                       ZerosInitializer({}, average.dtype()), hidden);
  if (!scope.ok()) return Output();
  const Output off = Minus(scope, ReadValue(scope, biased), value);
  const Output delta = Times(scope, off, weight);
  const Output sum =
      UpdateVariable(scope, "AssignSub", biased, delta, false).value;
  const Output one = scope.Const(ScalarOfType(average.dtype(), 1));
  const Output counted =
      UpdateVariable(scope, "AssignAdd", count, one, false).value;
  const Output kept = Minus(scope, 1.0f, weight);
  const Output lost = scope.Add("Pow", {kept, counted});
  const Output found = Minus(scope, 1, lost);
  const Output unbiased = Over(scope, sum, found);
  return UpdateVariable(scope, "Assign", average, unbiased, true).value;
}

}  // namespace

Output AssignMovingAverage(const Scope& outer, const Variable& variable,
                           Output value, Output decay, bool zero_debias) {
  const Scope scope = outer.NameScope("AssignMovingAvg");
  if (!variable.shape().FullyDefined()) {
    scope.Fail(InvalidArgument("the moving average ", variable.name(),
                               " needs a known shape"));
    return Output();
  }
  const Output rest = Minus(scope, 1.0f, decay);
  const Output weight = CastTo(scope, rest, variable.dtype());
  if (zero_debias) return Debiased(scope, variable, value, weight);
  const Output off = Minus(scope, ReadValue(scope, variable), value);
  const Output delta = Times(scope, off, weight);
  return UpdateVariable(scope.Named(scope.context().name_scope), "AssignSub",
                        variable, delta, false)
      .value;
}

ExponentialMovingAverage::ExponentialMovingAverage(Hyper decay,
                                                   MovingAverageOptions options)
    : decay_(decay), options_(std::move(options)) {}

Node* ExponentialMovingAverage::Apply(const Scope& scope,
                                      std::vector<Variable> variables) {
  if (variables.empty()) variables = TrainableVariables(scope.graph());
  std::vector<Average> all;
  for (const Variable& var : variables) {
    if (!scope.ok()) return nullptr;
    if (!IsFloating(var.dtype())) {
      scope.Fail(InvalidArgument("The variables must be half, float, or ",
                                 "double: ", var.name()));
      return nullptr;
    }
    Variable shadow = average(var);
    if (!shadow) {
      const Scope beside = scope.NoControl().NameScope("").Colocate(var.node());
      const std::string name = average_name(var);
      shadow = Variable(beside.Named(name), InitializedValue(beside, var),
                        {.trainable = false,
                         .resource = var.resource(),
                         .slice = SliceOfSlot(var, name)});
      averages_.push_back({var.ref(), {var.value(), shadow}});
      Collections::Of(scope.graph()).Add(keys::kMovingAverageVariables, var);
    }
    all.push_back({ReadValue(scope, var), shadow});
  }
  return Update(scope, all);
}

Node* ExponentialMovingAverage::ApplyToTensors(
    const Scope& scope, const std::vector<Output>& tensors) {
  std::vector<Average> all;
  for (const Output& tensor : tensors) {
    if (!scope.ok() || !tensor) return nullptr;
    const DType dtype = BaseType(TypeOf(tensor));
    if (!IsFloating(dtype) || !ShapeOf(tensor).FullyDefined()) {
      scope.Fail(InvalidArgument(
          "The tensors must be half, float, or double, of a known shape: ",
          TensorName(tensor)));
      return nullptr;
    }
    Variable shadow = average(tensor);
    const bool debias = !shadow && options_.zero_debias;
    if (!shadow) {
      shadow = Variable(scope.NoControl().NameScope("").Named(
                            tensor.node->name() + "/" + options_.name),
                        ZerosInitializer(ShapeOf(tensor).AsShape(), dtype),
                        {.trainable = false});
      averages_.push_back({tensor, {tensor, shadow, debias}});
    }
    all.push_back({tensor, shadow, debias});
  }
  return Update(scope, all);
}

Node* ExponentialMovingAverage::Update(
    const Scope& outer, const std::vector<Average>& averages) const {
  const Scope scope = outer.NameScope(options_.name);
  Output decay = decay_.In(scope, "decay");
  if (options_.num_updates) {
    const Output n =
        CastTo(scope, ReadValue(scope, options_.num_updates), DType::kFloat);
    const Output above = Plus(scope, 1.0f, n);
    const Output below = Plus(scope, 10.0f, n);
    decay = scope.Add("Minimum", {decay, Over(scope, above, below)});
  }
  std::vector<Node*> updates;
  for (const Average& average : averages) {
    if (!scope.ok()) return nullptr;
    updates.push_back(AssignMovingAverage(scope, average.shadow, average.value,
                                          decay, average.zero_debias)
                          .node);
  }
  return scope.ok() ? Group(scope, updates, scope.context().name_scope)
                    : nullptr;
}

Variable ExponentialMovingAverage::average(const Variable& variable) const {
  return average(variable.ref());
}

Variable ExponentialMovingAverage::average(Output tensor) const {
  const auto it =
      std::ranges::find(averages_, tensor, &std::pair<Output, Average>::first);
  return it == averages_.end() ? Variable() : it->second.shadow;
}

std::string ExponentialMovingAverage::average_name(
    const Variable& variable) const {
  const Variable shadow = average(variable);
  return shadow ? shadow.name() : StrCat(variable.name(), "/", options_.name);
}

std::multimap<std::string, Variable>
ExponentialMovingAverage::variables_to_restore(Graph& graph) const {
  std::vector<Variable> averaged = TrainableVariables(graph);
  for (const Variable& var :
       Collections::Of(graph).variables(keys::kMovingAverageVariables)) {
    if (std::ranges::find(averaged, var) == averaged.end()) {
      averaged.push_back(var);
    }
  }
  std::multimap<std::string, Variable> restored;
  for (const Variable& var : averaged) {
    const std::string name = average_name(var);
    const std::optional<SaveSlice> slice = SliceOfSlot(var, name);
    restored.emplace(slice ? slice->full_name : name, var);
  }
  for (const Variable& var : GlobalVariables(graph)) {
    if (std::ranges::find(averaged, var) == averaged.end()) {
      restored.emplace(var.saved_name(), var);
    }
  }
  return restored;
}

}  // namespace sluice
