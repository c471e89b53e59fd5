#include "sluice/train/scaffold.h"

#include "sluice/autodiff/gate.h"
#include "sluice/base/logging.h"
#include "sluice/base/status.h"
#include "sluice/client/collections.h"
#include "sluice/train/initialize.h"
#include "sluice/train/summary_writer.h"

namespace sluice {
namespace {

absl::Status SeveralIn(std::string_view key, std::string_view field) {
  return FailedPrecondition(
      "More than one item in the collection \"", key,
      "\". Please indicate which one to use by passing it to the Scaffold: "
      "Scaffold{.",
      field, " = item to use}");
}

// An op field: from the collection of that name, or made by `make`, which may
// give nothing.
template <typename T>
absl::Status Fill(const Scope& scope, std::string_view key, T* field,
                  const std::function<T(const Scope&)>& make) {
  if (*field != T()) return absl::OkStatus();
  Collections& collections = Collections::Of(scope.graph());
  std::vector<T> found;
  if constexpr (std::is_same_v<T, Node*>) {
    found = collections.nodes(key);
  } else {
    found = collections.outputs(key);
  }
  if (found.size() > 1) return SeveralIn(key, key);
  if (!found.empty()) {
    *field = found[0];
    return absl::OkStatus();
  }
  *field = make(scope);
  SLUICE_RETURN_IF_ERROR(scope.status());
  if (*field != T()) collections.Add(key, *field);
  return absl::OkStatus();
}

Node* DefaultLocalInit(const Scope& scope) {
  const std::vector<Node*> both = {LocalVariablesInitializer(scope),
                                   TablesInitializer(scope)};
  return scope.ok() ? Group(scope, both) : nullptr;
}

}  // namespace

absl::StatusOr<std::shared_ptr<Saver>> SaverOfGraph(Graph& graph) {
  const std::vector<std::string> savers =
      Collections::Of(graph).messages(keys::kSavers);
  if (savers.size() > 1) return SeveralIn(keys::kSavers, "saver");
  if (savers.empty()) return nullptr;
  pb::SaverDef def;
  if (!def.ParseFromString(savers[0])) {
    return InvalidArgument("the saver of the graph does not parse");
  }
  SLUICE_ASSIGN_OR_RETURN(std::shared_ptr<Saver> saver,
                          Saver::FromDef(graph, def));
  return saver;
}

absl::Status Scaffold::Finalize(Graph& graph) {
  if (graph.build().finalized && init_op != nullptr && saver != nullptr) {
    return absl::OkStatus();
  }
  const Scope scope(graph);
  SLUICE_RETURN_IF_ERROR(
      Fill<Node*>(scope, keys::kInitOp, &init_op, GlobalVariablesInitializer));
  SLUICE_RETURN_IF_ERROR(
      Fill<Output>(scope, keys::kReadyOp, &ready_op, [&](const Scope& s) {
        std::vector<Variable> all = GlobalVariables(graph);
        const std::vector<Variable> local = LocalVariables(graph);
        all.insert(all.end(), local.begin(), local.end());
        return ReportUninitializedVariables(s, all);
      }));
  SLUICE_RETURN_IF_ERROR(Fill<Output>(
      scope, keys::kReadyForLocalInitOp, &ready_for_local_init_op,
      [&](const Scope& s) {
        return ReportUninitializedVariables(s, GlobalVariables(graph));
      }));
  SLUICE_RETURN_IF_ERROR(
      Fill<Node*>(scope, keys::kLocalInitOp, &local_init_op, DefaultLocalInit));
  SLUICE_RETURN_IF_ERROR(
      Fill<Output>(scope, keys::kSummaryOp, &summary_op, MergeAllSummaries));
  if (saver == nullptr) {
    SLUICE_ASSIGN_OR_RETURN(saver, SaverOfGraph(graph));
  }
  if (saver == nullptr) {
    saver = std::make_shared<Saver>(
        scope, SaverOptions{.sharded = true, .allow_empty = true});
    SLUICE_RETURN_IF_ERROR(scope.status());
    if (!saver->empty()) {
      Collections::Of(graph).Add(keys::kSavers,
                                 saver->def().SerializeAsString());
    }
  }
  graph.build().finalized = true;
  SLUICE_LOG(INFO) << "Graph was finalized.";
  return absl::OkStatus();
}

}  // namespace sluice
