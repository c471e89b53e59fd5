// OpTest: runs one op on given inputs, for the tests beside ops. Also shape
// inference in words and gradients against finite differences.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "sluice/graph/graph.h"
#include "sluice/kernel/device.h"
#include "sluice/tensor/tensor.h"

namespace sluice {

#define SLUICE_ASSERT_OK(expr)                                      \
  do {                                                              \
    const absl::Status sluice_assert_status = (expr);               \
    ASSERT_TRUE(sluice_assert_status.ok()) << sluice_assert_status; \
  } while (0)
#define SLUICE_EXPECT_OK(expr)                                      \
  do {                                                              \
    const absl::Status sluice_expect_status = (expr);               \
    EXPECT_TRUE(sluice_expect_status.ok()) << sluice_expect_status; \
  } while (0)

MATCHER_P2(StatusIs, code, message, "") {
  *result_listener << arg;
  return arg.code() == code &&
         testing::ExplainMatchResult(message, std::string(arg.message()),
                                     result_listener);
}

// A CPU whose kernels may touch files.
Device& TestDevice();

class OpTest {
 public:
  explicit OpTest(std::string_view op);
  ~OpTest();

  template <typename T>
  OpTest& AddInput(const Shape& shape, std::initializer_list<T> values) {
    return AddInput(Tensor::Of<T>(shape, values));
  }
  OpTest& AddInput(Tensor value);
  OpTest& Attr(std::string_view name, AttrValue value);

  // Builds the node (its inputs are placeholders of unknown shape), makes the
  // CPU kernel and runs it.
  absl::Status Run();
  const Tensor& output(int i) const { return outputs_[i]; }
  const Node& node() const { return *node_; }

 private:
  std::string op_;
  AttrMap attrs_;
  std::vector<Tensor> inputs_;
  std::unique_ptr<Graph> graph_;
  Node* node_ = nullptr;
  std::vector<Tensor> outputs_;
};

// Same type and shape, floats within `tolerance` (relative or absolute), the
// rest equal.
void ExpectClose(const Tensor& got, const Tensor& want,
                 double tolerance = 1e-5);

// The inferred shape of output 0 for inputs of these shapes ("[2,?]", "?"), or
// the error text. Inputs are floats unless `input_type` says otherwise.
std::string InferredShape(std::string_view op,
                          const std::vector<std::string>& input_shapes,
                          const AttrMap& attrs = {},
                          DType input_type = DType::kFloat);

}  // namespace sluice
