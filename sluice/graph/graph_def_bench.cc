// What it costs to read and write a large graph.
#include <benchmark/benchmark.h>

#include "sluice/base/strings.h"
#include "sluice/graph/graph_def.h"
#include "sluice/graph/testing/ops_tsv.h"
#include "sluice/proto/graph.pb.h"

namespace sluice {
namespace {

// Every third node is a constant, as in real graphs.
pb::GraphDef LargeGraph(int nodes) {
  RegisterMissingOps();
  pb::GraphDef def;
  def.mutable_versions()->set_producer(kGraphDefVersion);
  for (int i = 0; i < nodes; ++i) {
    pb::NodeDef* node = def.add_node();
    node->set_name(StrCat("tower/layer_", i / 100, "/node_", i));
    node->set_device("/job:worker/task:0");
    if (i % 3 == 0) {
      node->set_op("Const");
      (*node->mutable_attr())["dtype"].set_type(pb::DT_FLOAT);
      pb::TensorProto* value =
          (*node->mutable_attr())["value"].mutable_tensor();
      value->set_dtype(pb::DT_FLOAT);
      value->mutable_tensor_shape();
      value->add_float_val(static_cast<float>(i));
      continue;
    }
    node->set_op("AddV2");
    node->add_input(def.node(i - 1).name());
    node->add_input(def.node(i / 3 * 3).name());
    if (i > 3) node->add_input(StrCat("^", def.node(i - 3).name()));
    (*node->mutable_attr())["T"].set_type(pb::DT_FLOAT);
  }
  return def;
}

void Import(benchmark::State& state) {
  const pb::GraphDef def = LargeGraph(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    Graph graph;
    const absl::Status status = ImportGraphDef(def, {}, &graph);
    if (!status.ok()) state.SkipWithError(status.ToString().c_str());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(Import)->Arg(1000)->Arg(100000)->Unit(benchmark::kMillisecond);

void Export(benchmark::State& state) {
  Graph graph;
  const absl::Status status =
      ImportGraphDef(LargeGraph(static_cast<int>(state.range(0))), {}, &graph);
  if (!status.ok()) state.SkipWithError(status.ToString().c_str());
  for (auto _ : state) {
    pb::GraphDef def;
    ExportGraphDef(graph, {}, &def);
    benchmark::DoNotOptimize(def);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(Export)->Arg(1000)->Arg(100000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sluice

BENCHMARK_MAIN();
