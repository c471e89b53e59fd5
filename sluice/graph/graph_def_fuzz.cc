// Any bytes import as a graph or give an error; what imports goes out and comes
// in again.
#include <cstdlib>

#include "sluice/graph/graph_def.h"
#include "sluice/graph/testing/ops_tsv.h"
#include "sluice/proto/graph.pb.h"
#include "sluice/tensor/codec.h"

namespace {

// A value that stands for many is legal; here it would only cost time.
bool IsLarge(const sluice::pb::AttrValue& attr) {
  const auto large = [](const sluice::pb::TensorProto& tensor) {
    const auto shape = sluice::ShapeFromProto(tensor.tensor_shape());
    return shape.ok() && shape->size() > 4096;
  };
  for (const auto& tensor : attr.list().tensor()) {
    if (large(tensor)) return true;
  }
  // So is a node with very many outputs.
  return large(attr.tensor()) || attr.i() > 4096;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sluice::RegisterMissingOps();
  sluice::pb::GraphDef def;
  if (!def.ParseFromArray(data, static_cast<int>(size))) return 0;
  for (const auto& node : def.node()) {
    for (const auto& [name, attr] : node.attr()) {
      if (IsLarge(attr)) return 0;
    }
  }
  sluice::ImportOptions options;
  options.allow_internal = true;
  sluice::Graph graph;
  if (!sluice::ImportGraphDef(def, options, &graph).ok()) {
    if (graph.num_nodes() != 0) std::abort();
    return 0;
  }
  sluice::pb::GraphDef again;
  sluice::ExportGraphDef(graph, {}, &again);
  sluice::Graph copy;
  if (!sluice::ImportGraphDef(again, options, &copy).ok()) std::abort();
  if (copy.num_nodes() != graph.num_nodes()) std::abort();
  return 0;
}
