#include "sluice/train/global_step.h"

#include "sluice/base/logging.h"
#include "sluice/base/status.h"
#include "sluice/client/collections.h"
#include "sluice/client/initializers.h"

namespace sluice {
namespace {

constexpr char kReadKey[] = "global_step_read_op_cache";

// The variable of a node that was imported without its collections.
Variable FromNode(Node* node) {
  Variable::Nodes nodes;
  nodes.ref = node->output(0);
  nodes.value = nodes.ref;
  nodes.trainable = false;
  const bool resource = TypeOf(nodes.ref) == DType::kResource;
  const Graph& graph = node->graph();
  if (Node* read = graph.FindNode(
          node->name() + (resource ? "/Read/ReadVariableOp" : "/read"))) {
    nodes.value = read->output(0);
  }
  nodes.initializer = graph.FindNode(node->name() + "/Assign");
  return Variable(nodes);
}

}  // namespace

Variable GetGlobalStep(Graph& graph) {
  const std::vector<Variable> found =
      Collections::Of(graph).variables(keys::kGlobalStep);
  if (found.size() > 1) {
    SLUICE_LOG(ERROR) << "Multiple tensors in global_step collection.";
    return Variable();
  }
  Variable step;
  if (!found.empty()) {
    step = found[0];
  } else if (Node* node = graph.FindNode(keys::kGlobalStep);
             node != nullptr && node->FindAttr("dtype") != nullptr) {
    step = FromNode(node);
  }
  if (!step) return step;
  if (!IsInteger(step.dtype())) {
    SLUICE_LOG(ERROR) << "Existing \"global_step\" does not have integer type: "
                      << DTypeName(step.dtype());
    return Variable();
  }
  return step;
}

Variable CreateGlobalStep(const Scope& scope) {
  if (GetGlobalStep(scope.graph())) {
    scope.Fail(InvalidArgument("\"global_step\" already exists."));
    return Variable();
  }
  return Variable(scope.NameScope("").Named(keys::kGlobalStep),
                  ZerosInitializer({}, DType::kInt64),
                  {.trainable = false,
                   .collections = {keys::kGlobalVariables, keys::kGlobalStep}});
}

Variable GetOrCreateGlobalStep(const Scope& scope) {
  const Variable step = GetGlobalStep(scope.graph());
  return step ? step : CreateGlobalStep(scope);
}

Output GlobalStepRead(Graph& graph) {
  Collections& collections = Collections::Of(graph);
  const std::vector<Output> made = collections.outputs(kReadKey);
  if (!made.empty()) return made[0];
  const Variable step = GetGlobalStep(graph);
  if (!step) return Output();
  // A closed graph must not count as broken.
  const Scope inside = Scope::Detached(graph).NameScope(step.name() + "/");
  const Scope scope = inside.NameScope("add");
  const Output zero = scope.Named("y").Const(ScalarOfType(step.dtype(), 0));
  const Output read =
      scope.Named(scope.context().name_scope).Add("AddV2", {step, zero});
  if (!scope.ok()) {
    SLUICE_LOG(ERROR) << "The global step cannot be read: " << scope.status();
    return Output();
  }
  collections.Add(kReadKey, read);
  return read;
}

absl::StatusOr<int64_t> IntegerOf(const Tensor& tensor) {
  if (tensor.size() == 1 && tensor.dtype() == DType::kInt64) {
    return tensor.scalar<int64_t>();
  }
  if (tensor.size() == 1 && tensor.dtype() == DType::kInt32) {
    return tensor.scalar<int32_t>();
  }
  return InvalidArgument("expected one int32 or int64, got ",
                         tensor.DebugString());
}

absl::StatusOr<int64_t> GlobalStep(Session& session, const Variable& step) {
  std::vector<Tensor> values;
  SLUICE_RETURN_IF_ERROR(session.Run({}, {step.value()}, {}, &values));
  return IntegerOf(values[0]);
}

}  // namespace sluice
