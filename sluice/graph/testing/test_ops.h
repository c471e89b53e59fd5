// Small ops for tests of this folder; defined in test_ops.cc.
//
//   TestSource() -> dtype            shape from attr "shape"
//   TestVariable() -> Ref(dtype)     stateful
//   TestAdd(T, T) -> T               broadcasts
//   TestAddN(N * T) -> T             merges shapes
//   TestAssign(Ref(T), T) -> Ref(T)
//   TestSplit(T) -> N * T            same shapes
//   TestTuple(Ts) -> Ts
//   TestFill(int32) -> float         shape from the input's value
//   TestGroup()
#pragma once

#include <string>
#include <vector>

#include "sluice/base/status.h"
#include "sluice/graph/graph.h"

namespace sluice {

// Adds a node, or stops the program with what is wrong.
Node* AddTestNode(Graph& graph, std::string name, std::string op,
                  std::vector<Output> inputs = {}, AttrMap attrs = {});
// A TestSource of float.
Output AddTestSource(Graph& graph, std::string name, PartialShape shape = {});

}  // namespace sluice
