// Meta graphs: a graph with its collections and its saver, as one message.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/graph/graph.h"
#include "sluice/proto/meta_graph.pb.h"

namespace sluice {

class Saver;

// `saver` may be null.
pb::MetaGraphDef ExportMetaGraph(Graph& graph, const pb::SaverDef* saver);

struct ImportMetaGraphOptions {
  // Goes before all names, in the collections too.
  std::string import_scope = {};
  // Leaves the placement to this program.
  bool clear_devices = false;
  // As ImportOptions::input_map.
  std::map<std::string, Output> input_map = {};
};

// Adds the nodes and fills the collections. No node is added after an error of
// the graph.
absl::Status ImportMetaGraph(const pb::MetaGraphDef& meta, Graph* graph,
                             const ImportMetaGraphOptions& options = {});
// The same for a file; the Saver is the one of the meta graph, one of all
// variables, or none if there are none.
absl::StatusOr<std::unique_ptr<Saver>> ImportMetaGraphFile(
    const std::string& path, Graph* graph,
    const ImportMetaGraphOptions& options = {});

// Reads a `.meta` file, binary or text.
absl::StatusOr<pb::MetaGraphDef> ReadMetaGraph(const std::string& path);

// Writes the graph to `<dir>/<name>` as text, in one step.
absl::Status WriteGraph(Graph& graph, const std::string& dir,
                        const std::string& name);

}  // namespace sluice
