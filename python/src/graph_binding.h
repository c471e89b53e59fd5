// The graph as Python sees it. Nodes are numbers; Python keeps one Operation
// object for each.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <mutex>
#include <vector>

#include "sluice/graph/build_context.h"
#include "sluice/graph/graph.h"

namespace sluice::python {

// Thread-safe under the GIL. `mu` is taken by whoever reads the graph without
// it (a session that sends new nodes).
struct PyGraph {
  Graph graph;
  std::mutex mu;
  // What `with` blocks replaced, innermost last.
  std::vector<BuildContext> saved;
};

// Holds `graph.mu`. Gives the GIL up while it waits, so that a thread that runs
// a step and a thread that builds cannot block each other.
class GraphLock {
 public:
  explicit GraphLock(PyGraph& graph) : lock_(graph.mu, std::defer_lock) {
    if (lock_.try_lock()) return;
    pybind11::gil_scoped_release release;
    lock_.lock();
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

Output OutputOf(PyGraph& graph, int node, int index);
// [node, index, node, index, …]
std::vector<Output> OutputsOf(PyGraph& graph, const std::vector<int>& flat);
pybind11::object ShapeToPython(const PartialShape& shape);
PartialShape ShapeFromPython(const pybind11::handle& shape);

void BindGraph(pybind11::module_& m);

}  // namespace sluice::python
