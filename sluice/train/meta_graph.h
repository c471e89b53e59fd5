// Meta graphs: a graph with its collections and its saver, as one message.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/graph/graph.h"
#include "sluice/proto/meta_graph.pb.h"

namespace sluice {

// `saver` may be null.
pb::MetaGraphDef ExportMetaGraph(Graph& graph, const pb::SaverDef* saver);

// Adds the nodes and fills the collections. Nothing is added after an error.
absl::Status ImportMetaGraph(const pb::MetaGraphDef& meta, Graph* graph);

// Reads a `.meta` file, binary or text.
absl::StatusOr<pb::MetaGraphDef> ReadMetaGraph(const std::string& path);

// Writes the graph to `<dir>/<name>` as text, in one step.
absl::Status WriteGraph(Graph& graph, const std::string& dir,
                        const std::string& name);

}  // namespace sluice
