#include "sluice/client/function.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/autodiff/gradients.h"
#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {

using testing::HasSubstr;

std::vector<Output> Square(const Scope& body, std::span<const Output> args) {
  return {body.Add("Mul", {args[0], args[0]})};
}

TEST(Function, StandsInTheLibraryAndIsCalledByOneNode) {
  Graph graph;
  const Scope root(graph);
  const Function square =
      Function::Define(root, "MySquare", {DType::kFloat}, Square);
  const Output x = root.Scalar(3.0f);
  const std::vector<Output> y = square(root.Named("call"), {x});
  SLUICE_ASSERT_OK(root.status());
  ASSERT_EQ(y.size(), 1u);
  EXPECT_EQ(y[0].node->name(), "call");
  EXPECT_EQ(y[0].node->type(), "MySquare");
  EXPECT_EQ(graph.num_nodes(), 2);
  const auto dx = AddGradients(root, y, std::vector{x});
  SLUICE_ASSERT_OK(dx.status());
  EXPECT_EQ((*dx)[0].values.node->type(), "SymbolicGradient");
  square(root, {x, x});
  EXPECT_FALSE(root.ok());
}

TEST(Function, SaysWhatIsWrongWithIt) {
  Graph graph;
  const Scope root(graph);
  Function::Define(root, "MatMul", {DType::kFloat}, Square);
  EXPECT_THAT(root.status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("an op with the same name already exists")));
  Graph other;
  const Scope outside(other);
  const Output x = outside.Scalar(1.0f);
  Function::Define(
      outside, "Takes", {},
      [&](const Scope&, std::span<const Output>) { return std::vector{x}; });
  EXPECT_THAT(outside.status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("returns what its body did not build")));
}

}  // namespace
}  // namespace sluice
