#include "sluice/autodiff/control_flow_gradient.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/autodiff/gradients.h"
#include "sluice/autodiff/testing/node_text.h"
#include "sluice/autodiff/testing/test_ops.h"
#include "sluice/graph/control_flow.h"
#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// if (p) x * x else g(x), where g gives its input back.
class CondGradientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    x_ = TestSource(root_, "x");
    p_ = TestSource(root_, "p", PartialShape::Scalar(), DType::kBool);
    Node* pivots = root_.Named("pivots").AddNode("Switch", {p_, p_});
    ASSERT_NE(pivots, nullptr) << root_.status();
    for (int branch : {0, 1}) {
      const Output pivot = root_.Named(branch ? "pivot_t" : "pivot_f")
                               .Add("Identity", {pivots->output(branch)});
      contexts_[branch] =
          CondContext::Create(branch ? "t" : "f", p_, pivot, branch, nullptr);
    }
  }
  Scope Branch(int branch) {
    Scope scope = root_;
    scope.context().control_flow = contexts_[branch];
    return scope;
  }
  std::vector<std::string> Added(Output y, Output x) {
    const int first = graph_.num_nodes();
    auto grads = AddGradients(root_, {&y, 1}, {&x, 1});
    EXPECT_TRUE(grads.ok()) << grads.status();
    if (grads.ok()) grad_ = (*grads)[0];
    std::vector<std::string> lines = NodeLines(graph_, first);
    // The first three make the ones.
    lines.erase(lines.begin(), lines.begin() + 3);
    return lines;
  }

  Graph graph_;
  Scope root_{graph_};
  Output x_, p_;
  std::shared_ptr<CondContext> contexts_[2];
  Grad grad_;
};

TEST_F(CondGradientTest, GivesEachBranchItsShareAndGuardsTheZeros) {
  const Output t = Branch(1).Named("t").Add("TestTimes", {x_, x_});
  const Output f = Branch(0).Named("f").Add("Identity", {x_});
  const Output y = root_.Named("y").Add("Merge", {f, t});
  EXPECT_THAT(
      Added(y, x_),
      ElementsAre(
          "gradients/y_grad/cond_grad = Switch(gradients/Fill, p) "
          "loc:@gradients/Fill",
          "gradients/t_grad/TestTimes = "
          "TestTimes(gradients/y_grad/cond_grad:1, t/Switch:1)",
          "gradients/t_grad/TestTimes_1 = "
          "TestTimes(t/Switch:1, gradients/y_grad/cond_grad:1)",
          "gradients/Switch = Switch(x, p)",
          "gradients/Identity = Identity(gradients/Switch:1)",
          "gradients/Shape_1 = Shape(gradients/Switch:1)",
          "gradients/zeros/Const = Const(^gradients/Identity)",
          "gradients/zeros = Fill(gradients/Shape_1, gradients/zeros/Const)",
          "gradients/f/Switch_grad/cond_grad = "
          "Merge(gradients/y_grad/cond_grad, gradients/zeros)",
          "gradients/AddN = AddN(gradients/t_grad/TestTimes, "
          "gradients/t_grad/TestTimes_1) loc:@gradients/t_grad/TestTimes",
          "gradients/Switch_1 = Switch(x, p)",
          "gradients/Identity_1 = Identity(gradients/Switch_1)",
          "gradients/Shape_2 = Shape(gradients/Switch_1)",
          "gradients/zeros_1/Const = Const(^gradients/Identity_1)",
          "gradients/zeros_1 = Fill(gradients/Shape_2, "
          "gradients/zeros_1/Const)",
          "gradients/t/Switch_grad/cond_grad = "
          "Merge(gradients/zeros_1, gradients/AddN)",
          "gradients/AddN_1 = AddN(gradients/f/Switch_grad/cond_grad, "
          "gradients/t/Switch_grad/cond_grad) "
          "loc:@gradients/f/Switch_grad/cond_grad"));
}

TEST_F(CondGradientTest, AsksWhichInputCameIfTheContextIsNotKnown) {
  Node* sides = root_.Named("s").AddNode("Switch", {x_, p_});
  const Output y =
      root_.Named("y").Add("Merge", {sides->output(0), sides->output(1)});
  EXPECT_THAT(
      Added(y, x_),
      ElementsAre(
          "gradients/y_grad/Equal/y = Const()",
          "gradients/y_grad/Equal = Equal(y:1, gradients/y_grad/Equal/y)",
          "gradients/y_grad/Equal_1/y = Const()",
          "gradients/y_grad/Equal_1 = Equal(y:1, gradients/y_grad/Equal_1/y)",
          "gradients/y_grad/Switch = Switch(gradients/Fill, "
          "gradients/y_grad/Equal) loc:@gradients/Fill",
          "gradients/y_grad/Switch_1 = Switch(gradients/Fill, "
          "gradients/y_grad/Equal_1) loc:@gradients/Fill",
          "gradients/s_grad/Switch = Switch(gradients/y_grad/Switch:1, p)",
          "gradients/s_grad/Switch_1 = Switch(gradients/y_grad/Switch_1:1, p)",
          "gradients/s_grad/Merge = Merge(gradients/s_grad/Switch, "
          "gradients/s_grad/Switch_1:1)"));
}

TEST_F(CondGradientTest, MergesSlicesWithZerosAsSlices) {
  const Output params = TestSource(root_, "params", {4, 2});
  const Output ids = TestSource(root_, "ids", {3}, DType::kInt64);
  const Output t = Branch(1).Named("t").Add("TestRows", {params, ids});
  const Output f = Branch(0).Named("f").Add("Identity", {x_});
  const Output y = root_.Named("y").Add("Merge", {f, t});
  const std::vector<std::string> lines = Added(y, params);
  ASSERT_EQ(lines.size(), 19u);
  const std::string merge = "gradients/t/Switch_grad/cond_grad";
  EXPECT_EQ(lines[7], merge + "/Shape = Shape(gradients/zeros)");
  EXPECT_EQ(lines[14], merge + "/range = Range(" + merge + "/range/start, " +
                           merge + "/strided_slice, " + merge +
                           "/range/delta)");
  EXPECT_EQ(lines[15], merge + "/Cast = Cast(" + merge + "/range)");
  EXPECT_THAT(lines[16], HasSubstr(merge + "/Merge = Merge(gradients/zeros"));
  EXPECT_TRUE(grad_.is_slices());
  EXPECT_TRUE(grad_.dense_shape);
}

TEST_F(CondGradientTest, SaysThatALoopNeedsItsContext) {
  const Output enter =
      root_.Named("e").Add("Enter", {x_}, {{"frame_name", "f"}});
  const Output y = root_.Named("y").Add("Exit", {enter});
  EXPECT_THAT(AddGradients(root_, {&y, 1}, {&x_, 1}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'y' is of a while loop whose context")));
}

}  // namespace
}  // namespace sluice
