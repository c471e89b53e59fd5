// The functions of any graph that imports are put in the place of their calls,
// or give an error; no call is left.
#include <cstdlib>

#include "sluice/graph/graph_def.h"
#include "sluice/passes/inline_functions.h"
#include "sluice/proto/graph.pb.h"
#include "sluice/tensor/codec.h"

namespace {

// Legal, but it would only cost time.
bool IsLarge(const sluice::pb::AttrValue& attr) {
  const auto shape = sluice::ShapeFromProto(attr.tensor().tensor_shape());
  return attr.i() > 4096 || (shape.ok() && shape->size() > 4096);
}

bool HasLargeNode(
    const google::protobuf::RepeatedPtrField<sluice::pb::NodeDef>& nodes) {
  for (const auto& node : nodes) {
    for (const auto& [name, attr] : node.attr()) {
      if (IsLarge(attr)) return true;
    }
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sluice::pb::GraphDef def;
  if (!def.ParseFromArray(data, static_cast<int>(size))) return 0;
  if (HasLargeNode(def.node())) return 0;
  for (const auto& function : def.library().function()) {
    if (HasLargeNode(function.node_def())) return 0;
  }
  sluice::Graph graph;
  if (!sluice::ImportGraphDef(def, {}, &graph).ok()) return 0;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    graph.node(id)->set_assigned_device("/job:a/replica:0/task:0/device:CPU:0");
  }
  const auto inlined = sluice::InlineFunctions(graph);
  if (inlined.ok() && sluice::HasFunctionCalls(**inlined)) std::abort();
  return 0;
}
