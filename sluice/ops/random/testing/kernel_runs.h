// KernelRuns: one kernel run several times on the same inputs, to see its state
// go on.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/graph/graph.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/kernel/run_kernel.h"
#include "sluice/kernel/testing/op_test.h"

namespace sluice {

class KernelRuns {
 public:
  KernelRuns(std::string_view op, AttrMap attrs, std::vector<Tensor> inputs)
      : inputs_(std::move(inputs)) {
    Build(op, std::move(attrs)).IgnoreError();  // Kept in status_.
  }

  // Output 0 of the next run.
  absl::StatusOr<Tensor> Next() {
    SLUICE_RETURN_IF_ERROR(status_);
    SLUICE_ASSIGN_OR_RETURN(
        std::vector<Tensor> outputs,
        RunKernel(*kernel_, *node_, ScratchDevice(), inputs_));
    return outputs[0];
  }
  // The same as values; empty, and a failed test, after an error.
  template <typename T>
  std::vector<T> NextValues() {
    absl::StatusOr<Tensor> output = Next();
    EXPECT_TRUE(output.ok()) << output.status();
    if (!output.ok()) return {};
    return std::vector<T>(output->data<T>().begin(), output->data<T>().end());
  }

 private:
  absl::Status Build(std::string_view op, AttrMap attrs) {
    NodeSpec spec{"op", std::string(op), {}, {}, std::move(attrs), ""};
    for (size_t i = 0; i < inputs_.size(); ++i) {
      auto input = graph_.AddNode({StrCat("input", i),
                                   "TestInput",
                                   {},
                                   {},
                                   {{"dtype", inputs_[i].dtype()}},
                                   ""});
      if (!input.ok()) return status_ = input.status();
      spec.inputs.push_back((*input)->output(0));
    }
    auto node = graph_.AddNode(std::move(spec));
    if (!node.ok()) return status_ = node.status();
    node_ = *node;
    auto kernel = MakeKernel(*node_, ScratchDevice());
    if (!kernel.ok()) return status_ = kernel.status();
    kernel_ = *std::move(kernel);
    return absl::OkStatus();
  }

  Graph graph_;
  std::vector<Tensor> inputs_;
  Node* node_ = nullptr;
  std::unique_ptr<Kernel> kernel_;
  absl::Status status_;
};

}  // namespace sluice
