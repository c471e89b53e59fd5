// Fits the line y = 2x + 1 in one process.
#include <iostream>

#include "sluice/sluice.h"

using namespace sluice;

static absl::Status Fit() {
  Graph graph;
  const Scope root(graph);
  const Output x = ops::Const(root, {0.0f, 1.0f, 2.0f, 3.0f});
  const Output y = 2 * x + 1;
  const Variable w(root.Named("w"), 0.0f);
  const Variable b(root.Named("b"), 0.0f);
  const Output loss = losses::MeanSquaredError(root, y, w * x + b);

  const std::vector<Output> slope = Gradients(root, {loss}, {w, b});
  const Output step_w = w.AssignSub(root, 0.1f * slope[0]);
  const Output step_b = b.AssignSub(root, 0.1f * slope[1]);

  SLUICE_ASSIGN_OR_RETURN(auto session, Session::Create({}, graph));
  SLUICE_RETURN_IF_ERROR(session->Run(GlobalVariablesInitializer(root)));
  std::vector<Tensor> line;
  for (int i = 0; i < 200; ++i) {
    SLUICE_RETURN_IF_ERROR(session->Run({}, {step_w, step_b}, {}, &line));
  }
  std::cout << "y = " << line[0].scalar<float>() << " x + "
            << line[1].scalar<float>() << std::endl;
  return absl::OkStatus();
}

int main() {
  const absl::Status status = Fit();
  if (!status.ok()) std::cerr << status << std::endl;
  return status.ok() ? 0 : 1;
}
