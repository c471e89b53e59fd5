// Gradients against finite differences, and a small evaluator of graphs that
// computes both without a session.
#pragma once

#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/graph/graph.h"
#include "sluice/kernel/kernel.h"

namespace sluice {

// Computes tensors of a graph of plain kernels (no variables, no control flow)
// one by one. Thread-compatible.
class GraphEvaluator {
 public:
  GraphEvaluator();
  ~GraphEvaluator();

  // Gives an output its value; what was computed before is forgotten.
  void Feed(Output output, Tensor value);
  absl::StatusOr<Tensor> Evaluate(Output output);

 private:
  absl::Status Run(const Node& node);

  std::map<std::pair<int, int>, Tensor> fed_;
  std::map<int, std::vector<Tensor>> values_;  // By node id.
  std::map<int, std::unique_ptr<Kernel>> kernels_;
};

struct GradientCheckOptions {
  // Whether the graph knows the shapes of the inputs and the values of those
  // that are no floats. Gradients often build other nodes if it does not.
  bool static_shapes = true;
  // How many of the first outputs count, and of the first double inputs are
  // varied; -1: all.
  int outputs = -1;
  int inputs = -1;
};

// The largest difference between the gradient that AddGradients builds for one
// op and finite differences, relative where the gradient exceeds 1. All outputs
// that can have a gradient count, under weights that tell elements apart. Only
// double inputs are varied. Infinite, with a test failure that says why, if
// something cannot be built or run.
double MaxGradientError(std::string_view op, const std::vector<Tensor>& inputs,
                        const AttrMap& attrs = {},
                        const GradientCheckOptions& options = {});

template <typename... Tensors>
double MaxGradientError(std::string_view op, const Tensor& first,
                        const Tensors&... rest) {
  return MaxGradientError(op, std::vector<Tensor>{first, rest...});
}

}  // namespace sluice
