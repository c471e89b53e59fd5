// The graph as Python sees it. Nodes are numbers; Python keeps one Operation
// object for each.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "sluice/graph/build_context.h"
#include "sluice/graph/graph.h"
#include "src/gil.h"

namespace sluice::python {

// Thread-safe under the GIL. `mu` is taken by whoever reads the graph without
// it (a session that sends new nodes), and by whoever changes the graph.
struct PyGraph {
  Graph graph;
  std::mutex mu;
  // Whose GraphLock holds `mu`; guarded by the GIL.
  std::optional<std::thread::id> builder;
  // What `with` blocks replaced, innermost last.
  std::vector<BuildContext> saved;
};

// Whether this thread is in the middle of a change of the graph: in a function
// that a loop, a gradient or a device scope calls back.
inline bool IsBuilding(const PyGraph& graph) {
  return graph.builder == std::this_thread::get_id();
}

// Holds `graph.mu`, unless a GraphLock further up on this thread does. Gives
// the GIL up while it waits, as whoever has `mu` may want it.
class GraphLock {
 public:
  explicit GraphLock(PyGraph& graph)
      : graph_(graph), lock_(graph.mu, std::defer_lock) {
    if (IsBuilding(graph)) return;
    if (!lock_.try_lock()) {
      WithoutGil release;
      lock_.lock();
    }
    graph_.builder = std::this_thread::get_id();
  }
  ~GraphLock() {
    if (lock_) graph_.builder.reset();
  }
  GraphLock(const GraphLock&) = delete;
  GraphLock& operator=(const GraphLock&) = delete;

 private:
  PyGraph& graph_;
  std::unique_lock<std::mutex> lock_;
};

Output OutputOf(PyGraph& graph, int node, int index);
// [node, index, node, index, …]
std::vector<Output> OutputsOf(PyGraph& graph, const std::vector<int>& flat);
pybind11::object ShapeToPython(const PartialShape& shape);
PartialShape ShapeFromPython(const pybind11::handle& shape);

void BindGraph(pybind11::module_& m);

}  // namespace sluice::python
