#include "sluice/base/status.h"
#include "sluice/proto/graph.pb.h"
#include "sluice/rpc/services.h"

namespace sluice {

absl::Status CheckGraphSize(const pb::GraphDef& graph, int64_t known,
                            const Limits& limits) {
  int64_t nodes = known + graph.node_size();
  for (const pb::FunctionDef& function : graph.library().function()) {
    nodes += function.node_def_size();
  }
  if (nodes > limits.graph_nodes) {
    return OverLimit(StrCat("A graph of ", nodes, " nodes"), "graph_nodes",
                     limits.graph_nodes);
  }
  const auto bytes = static_cast<int64_t>(graph.ByteSizeLong());
  if (bytes > limits.graph_bytes) {
    return OverLimit(StrCat("A graph of ", bytes, " bytes"), "graph_bytes",
                     limits.graph_bytes);
  }
  return absl::OkStatus();
}

}  // namespace sluice
