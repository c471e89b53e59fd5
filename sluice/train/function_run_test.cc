// Functions of client/function.h in a session.

#include <gtest/gtest.h>

#include "sluice/autodiff/gradients.h"
#include "sluice/client/function.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/session/session.h"

namespace sluice {
namespace {

TEST(FunctionRun, GivesResultsAndGradients) {
  Graph graph;
  const Scope root(graph);
  const Function square = Function::Define(
      root, "MySquare", {DType::kFloat},
      [](const Scope& body, std::span<const Output> args) {
        return std::vector<Output>{body.Add("Mul", {args[0], args[0]})};
      });
  const Function outer = Function::Define(
      root, "Outer", {DType::kFloat, DType::kFloat},
      [&](const Scope& body, std::span<const Output> args) {
        const Output first = square(body, {args[0]})[0];
        return std::vector<Output>{body.Add("Add", {first, args[1]}), args[1]};
      });
  const Output x = root.Scalar(3.0f), y = root.Scalar(4.0f);
  const std::vector<Output> results = outer(root.Named("call"), {x, y});
  SLUICE_ASSERT_OK(root.status());
  ASSERT_EQ(results.size(), 2u);
  const auto dx =
      AddGradients(root, std::vector{results[0]}, std::vector{x, y});
  SLUICE_ASSERT_OK(dx.status());
  auto session = Session::Create({}, graph);
  SLUICE_ASSERT_OK(session.status());
  std::vector<Tensor> values;
  SLUICE_ASSERT_OK((*session)->Run(
      {}, {results[0], results[1], (*dx)[0].values, (*dx)[1].values}, {},
      &values));
  EXPECT_EQ(values[0].scalar<float>(), 13);
  EXPECT_EQ(values[1].scalar<float>(), 4);
  EXPECT_EQ(values[2].scalar<float>(), 6);
  EXPECT_EQ(values[3].scalar<float>(), 1);
}

}  // namespace
}  // namespace sluice
