#include "sluice/autodiff/gradients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/autodiff/testing/node_text.h"
#include "sluice/autodiff/testing/test_ops.h"
#include "sluice/graph/python_text.h"
#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A graph, the nodes that gradients added to it, and their results.
class GradientsTest : public ::testing::Test {
 protected:
  std::vector<std::string> Added(const std::vector<Output>& ys,
                                 const std::vector<Output>& xs,
                                 const std::vector<Grad>& grad_ys = {}) {
    const int first = graph_.num_nodes();
    status_ = absl::OkStatus();
    auto result = AddGradients(root_, ys, xs, grad_ys, options_);
    if (result.ok()) {
      grads_ = *result;
    } else {
      status_ = result.status();
    }
    EXPECT_TRUE(status_.ok()) << status_;
    return NodeLines(graph_, first);
  }
  absl::Status Error(const std::vector<Output>& ys,
                     const std::vector<Output>& xs,
                     const std::vector<Grad>& grad_ys = {}) {
    return AddGradients(root_, ys, xs, grad_ys, options_).status();
  }
  std::string Name(int i) const {
    return grads_[i] ? TensorName(grads_[i].values) : "none";
  }

  Graph graph_;
  Scope root_{graph_};
  GradientOptions options_;
  std::vector<Grad> grads_;
  absl::Status status_;
};

TEST_F(GradientsTest, StartsWithOnesAndCallsTheGradientOfEachOp) {
  const Output a = TestSource(root_, "a");
  const Output b = TestSource(root_, "b");
  const Output y = root_.Named("y").Add("TestTimes", {a, b});
  EXPECT_THAT(
      Added({y}, {a, b}),
      ElementsAre("gradients/Shape = Const()", "gradients/grad_ys_0 = Const()",
                  "gradients/Fill = Fill(gradients/Shape, gradients/grad_ys_0)",
                  "gradients/y_grad/TestTimes = TestTimes(gradients/Fill, b)",
                  "gradients/y_grad/TestTimes_1 = TestTimes(a, "
                  "gradients/Fill)"));
  EXPECT_EQ(Name(0), "gradients/y_grad/TestTimes:0");
  EXPECT_EQ(Name(1), "gradients/y_grad/TestTimes_1:0");
}

TEST_F(GradientsTest, ReadsAShapeThatIsNotKnownFromTheTensor) {
  const Output a = TestSource(root_, "a", PartialShape{-1});
  EXPECT_THAT(
      Added({a}, {a}),
      ElementsAre("gradients/Shape = Shape(a)", "gradients/grad_ys_0 = Const()",
                  "gradients/Fill = Fill(gradients/Shape, "
                  "gradients/grad_ys_0)"));
  EXPECT_EQ(Name(0), "gradients/Fill:0");
}

TEST_F(GradientsTest, OpensANewScopeForEachCall) {
  const Output a = TestSource(root_, "a");
  Added({a}, {a});
  Added({a}, {a});
  EXPECT_EQ(Name(0), "gradients_1/Fill:0");
  options_.name = "mine";
  Added({a}, {a});
  EXPECT_EQ(Name(0), "mine/Fill:0");
}

TEST_F(GradientsTest, CopiesGivenGradientsIntoItsScope) {
  const Output a = TestSource(root_, "a");
  const Output b = TestSource(root_, "b");
  const Output g = TestSource(root_, "g");
  EXPECT_THAT(
      Added({a, b}, {a, b}, {g, Grad()}),
      ElementsAre("gradients/grad_ys_0 = Identity(g)",
                  "gradients/Shape = Const()", "gradients/grad_ys_1 = Const()",
                  "gradients/Fill = Fill(gradients/Shape, "
                  "gradients/grad_ys_1)"));
}

TEST_F(GradientsTest, CopiesAllPartsOfGivenSlices) {
  const Output a = TestSource(root_, "a");
  const Grad slices = Grad::Slices(TestSource(root_, "v"),
                                   TestSource(root_, "i", {2}, DType::kInt32),
                                   TestSource(root_, "s", {1}, DType::kInt32));
  EXPECT_THAT(Added({a}, {a}, {slices}),
              ElementsAre("gradients/grad_ys_0_indices = Identity(i)",
                          "gradients/grad_ys_0_values = Identity(v)",
                          "gradients/grad_ys_0_shape = Identity(s)"));
  EXPECT_EQ(TensorName(grads_[0].indices), "gradients/grad_ys_0_indices:0");
}

TEST_F(GradientsTest, GivesNoneWhereNoYDependsOnX) {
  const Output a = TestSource(root_, "a");
  const Output b = TestSource(root_, "b");
  const Output y = root_.Named("y").Add("TestTimes", {a, a});
  Added({y}, {a, b});
  EXPECT_EQ(Name(1), "none");
}

TEST_F(GradientsTest, GivesZerosWhereNoYDependsOnXIfAskedTo) {
  const Output a = TestSource(root_, "a");
  const Output b = TestSource(root_, "b", {20, 50});
  const Output c = TestSource(root_, "c", PartialShape{-1});
  options_.zero_for_unconnected = true;
  EXPECT_THAT(
      Added({c}, {a, b}),
      ElementsAre(testing::_, testing::_, testing::_, "zeros_like = Const()",
                  "zeros_like_1/shape_as_tensor = Const()",
                  "zeros_like_1/Const = Const()",
                  "zeros_like_1 = Fill(zeros_like_1/shape_as_tensor, "
                  "zeros_like_1/Const)"));
  EXPECT_EQ(Name(0), "zeros_like:0");
  EXPECT_EQ(ShapeOf(grads_[0].values), PartialShape({2}));
  EXPECT_EQ(Name(1), "zeros_like_1:0");
}

TEST_F(GradientsTest, StopAtTypesWithoutGradients) {
  const Output a = TestSource(root_, "a", {2}, DType::kInt32);
  const Output y = root_.Named("y").Add("TestTimes", {a, a});
  EXPECT_THAT(Added({y}, {a}), ElementsAre(testing::_, testing::_, testing::_));
  EXPECT_EQ(Name(0), "none");
}

TEST_F(GradientsTest, GoThroughAnXToTheXsBeforeIt) {
  const Output a = TestSource(root_, "a");
  const Output b = root_.Named("b").Add("TestTimes", {a, a});
  const Output y = root_.Named("y").Add("TestTimes", {b, b});
  Added({y}, {a, b});
  EXPECT_EQ(Name(1), "gradients/AddN:0");
  EXPECT_EQ(Name(0), "gradients/AddN_1:0");
}

TEST_F(GradientsTest, StopAtAnXWithNoXBeforeIt) {
  const Output a = TestSource(root_, "a");
  // If the walk went on it would find that TestOpaque has no gradient.
  const Output b = root_.Named("b").Add("TestOpaque", {a});
  const Output y = root_.Named("y").Add("TestTimes", {b, a});
  Added({y}, {b});
  EXPECT_EQ(Name(0), "gradients/y_grad/TestTimes:0");
}

TEST_F(GradientsTest, StopWhereTheyAreTold) {
  const Output a = TestSource(root_, "a");
  const Output b = root_.Named("b").Add("TestTimes", {a, a});
  const Output y = root_.Named("y").Add("TestTimes", {b, a});
  options_.stop_gradients = {b};
  Added({y}, {a});
  EXPECT_EQ(Name(0), "gradients/y_grad/TestTimes_1:0");
}

TEST_F(GradientsTest, SumWhenAYDependsOnAnotherY) {
  const Output a = TestSource(root_, "a");
  const Output b = root_.Named("b").Add("TestTimes", {a, a});
  EXPECT_THAT(
      Added({a, b}, {a}),
      ElementsAre(
          "gradients/Shape = Const()", "gradients/grad_ys_0 = Const()",
          "gradients/Fill = Fill(gradients/Shape, gradients/grad_ys_0)",
          "gradients/Shape_1 = Const()", "gradients/grad_ys_1 = Const()",
          "gradients/Fill_1 = Fill(gradients/Shape_1, gradients/grad_ys_1)",
          "gradients/b_grad/TestTimes = TestTimes(gradients/Fill_1, a)",
          "gradients/b_grad/TestTimes_1 = TestTimes(a, gradients/Fill_1)",
          "gradients/AddN = AddN(gradients/Fill, gradients/b_grad/TestTimes, "
          "gradients/b_grad/TestTimes_1) loc:@gradients/Fill"));
}

TEST_F(GradientsTest, MakeZerosForOutputsThatNothingUses) {
  const Output a = TestSource(root_, "a");
  Node* halves = root_.Named("h").AddNode("TestHalves", {a});
  EXPECT_THAT(Added({halves->output(1)}, {a}),
              ElementsAre(testing::_, testing::_, testing::_,
                          "gradients/zeros_like = ZerosLike(h)",
                          "gradients/h_grad/TestTimes = TestTimes("
                          "gradients/zeros_like, gradients/Fill)"));
}

TEST_F(GradientsTest, PassNothingThroughOpsThatAreNotDifferentiable) {
  const Output a = TestSource(root_, "a");
  const Output y = root_.Named("y").Add("TestFloor", {a});
  EXPECT_THAT(Added({y}, {a}), ElementsAre(testing::_, testing::_, testing::_));
  EXPECT_EQ(Name(0), "none");
}

TEST_F(GradientsTest, FailAtAnOpWithoutGradient) {
  const Output a = TestSource(root_, "a");
  const Output y = root_.Named("y").Add("TestOpaque", {a});
  EXPECT_THAT(Error({y}, {a}),
              StatusIs(absl::StatusCode::kNotFound,
                       "No gradient defined for operation 'y' (op type: "
                       "TestOpaque)"));
}

TEST_F(GradientsTest, TakeTheGradientThatTheNodeNames) {
  const Output a = TestSource(root_, "a");
  const Output y = root_.Named("y").Add("TestOpaque", {a},
                                        {{"_gradient_op_type", "TestFloor"}});
  Added({y}, {a});
  EXPECT_EQ(Name(0), "none");
  const Output z = root_.Named("z").Add("TestTimes", {a, a},
                                        {{"_gradient_op_type", "Unheard"}});
  EXPECT_THAT(Error({z}, {a}), StatusIs(absl::StatusCode::kNotFound,
                                        HasSubstr("'z' (op type: TestTimes)")));
}

TEST_F(GradientsTest, RefuseAWrongNumberOfResults) {
  const Output a = TestSource(root_, "a");
  const Output y = root_.Named("y").Add("TestBadCount", {a, a});
  EXPECT_THAT(Error({y}, {a}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "Num gradients 1 generated for op y do not match num "
                       "inputs 2"));
}

TEST_F(GradientsTest, RefuseAResultOfAnotherShape) {
  const Output a = TestSource(root_, "a");
  const Output y = root_.Named("y").Add("TestBadShape", {a});
  EXPECT_THAT(
      Error({y}, {a}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "Incompatible shapes between op input and calculated input "
               "gradient.  Forward operation: y.  Input index: 0. Original "
               "input shape: (2,).  Calculated input gradient shape: (7,)"));
}

TEST_F(GradientsTest, LearnShapesFromTheForwardOp) {
  const Output a = TestSource(root_, "a", {2});
  const Output b = root_.Named("b").Add("TestTimes", {a, a});
  const Output g = TestSource(root_, "g", PartialShape());
  Added({b}, {a}, {g});
  const Node* part = graph_.FindNode("gradients/b_grad/TestTimes");
  ASSERT_NE(part, nullptr);
  EXPECT_EQ(part->output_shape(0), PartialShape({2}));
}

TEST_F(GradientsTest, RefuseAWrongNumberOfGivenGradients) {
  const Output a = TestSource(root_, "a");
  EXPECT_THAT(Error({a}, {a}, {a, a}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "Passed 2 grad_ys for 1 ys"));
}

TEST_F(GradientsTest, SayWhichPythonErrorATypeMismatchIs) {
  const Output c = TestSource(root_, "c", {2}, DType::kComplex64);
  const Output s = TestSource(root_, "s", {2}, DType::kString);
  const Output f = TestSource(root_, "f");
  absl::Status status = Error({c}, {c});
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "Gradients of complex tensors must set grad_ys (y.dtype "
                       "= tf.complex64)"));
  ASSERT_TRUE(status.GetPayload(kPythonErrorPayload).has_value());
  EXPECT_EQ(std::string(*status.GetPayload(kPythonErrorPayload)), "TypeError");
  EXPECT_THAT(Error({s}, {s}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "Expected string, got 1 of type 'int' instead."));
  EXPECT_THAT(
      Error({f}, {f}, {c}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "Gradient type complex64 generated for real or integer-valued "
               "tensor Tensor(\"f:0\", shape=(2,), dtype=float32) with type "
               "float32 must be real or integer"));
  EXPECT_THAT(Error({s}, {s}, {s}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("must be numeric to obtain a default")));
}

TEST_F(GradientsTest, RefuseTensorsOfAnotherGraph) {
  Graph other;
  const Output a = TestSource(Scope(other), "a");
  EXPECT_THAT(Error({a}, {a}), StatusIs(absl::StatusCode::kInvalidArgument,
                                        HasSubstr("Tensor a:0 in ys")));
  EXPECT_THAT(Error({Output()}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("ys[0] is missing")));
}

TEST_F(GradientsTest, GateTheInputsOfAnOp) {
  const Output a = TestSource(root_, "a");
  const Output b = TestSource(root_, "b");
  const Output y = root_.Named("y").Add("TestTimes", {a, b});
  options_.gate = true;
  options_.colocate_with_ops = true;
  const std::vector<std::string> lines = Added({y}, {a, b});
  ASSERT_EQ(lines.size(), 8u);
  EXPECT_EQ(lines[5],
            "gradients/y_grad/tuple/group_deps = NoOp(^gradients/y_grad/"
            "TestTimes, ^gradients/y_grad/TestTimes_1)");
  EXPECT_EQ(lines[6],
            "gradients/y_grad/tuple/control_dependency = Identity(gradients/"
            "y_grad/TestTimes, ^gradients/y_grad/tuple/group_deps) loc:@y");
  EXPECT_EQ(Name(1), "gradients/y_grad/tuple/control_dependency_1:0");
}

TEST_F(GradientsTest, StandBesideTheirOpsIfAskedTo) {
  const Scope ps = root_.Device("/job:ps");
  const Output a = TestSource(ps, "a");
  const Output y = ps.Named("y").Add("TestTimes", {a, a});
  options_.colocate_with_ops = true;
  EXPECT_THAT(
      Added({y}, {a}),
      ElementsAre("gradients/Shape = Const() @/job:ps loc:@y",
                  "gradients/grad_ys_0 = Const() @/job:ps loc:@y",
                  "gradients/Fill = Fill(gradients/Shape, gradients/grad_ys_0) "
                  "@/job:ps loc:@y",
                  "gradients/y_grad/TestTimes = TestTimes(gradients/Fill, a) "
                  "@/job:ps loc:@y",
                  "gradients/y_grad/TestTimes_1 = TestTimes(a, gradients/Fill) "
                  "@/job:ps loc:@y",
                  "gradients/AddN = AddN(gradients/y_grad/TestTimes, "
                  "gradients/y_grad/TestTimes_1) @/job:ps loc:@y"));
}

TEST_F(GradientsTest, AskTheCallbackFirst) {
  const Output a = TestSource(root_, "a");
  const Output b = root_.Named("b").Add("TestTimes", {a, a});
  const Output y = root_.Named("y").Add("TestOpaque", {b});
  std::vector<std::string> asked;
  options_.callback = [&](const Node& op, std::span<const Grad> dy,
                          Scope&) -> std::optional<Grads> {
    asked.push_back(op.name());
    if (op.type() != "TestOpaque") return std::nullopt;
    // As Python does: into the graph's current context.
    const Output twice =
        Scope(op.graph()).Add("TestTimes", {dy[0].values, dy[0].values});
    return Grads(std::vector<Grad>{twice});
  };
  Added({y}, {a});
  EXPECT_THAT(asked, ElementsAre("y", "b"));
  EXPECT_NE(graph_.FindNode("gradients/y_grad/TestTimes"), nullptr);
  EXPECT_NE(graph_.FindNode("gradients/b_grad/TestTimes"), nullptr);
  EXPECT_EQ(graph_.build().current().name_scope, "");
}

TEST_F(GradientsTest, PassTheErrorOfTheCallbackOn) {
  const Output a = TestSource(root_, "a");
  const Output y = root_.Named("y").Add("TestTimes", {a, a});
  options_.callback = [](const Node&, std::span<const Grad>,
                         Scope&) -> std::optional<Grads> {
    return Grads(Aborted("raised in Python"));
  };
  EXPECT_EQ(Error({y}, {a}), Aborted("raised in Python"));
  EXPECT_EQ(graph_.build().current().name_scope, "");
}

TEST_F(GradientsTest, BuildNothingForOpsDeclaredNotDifferentiable) {
  const Output a = TestSource(root_, "a");
  Node* halves = root_.Named("h").AddNode("TestHalves", {a});
  options_.not_differentiable = [](const Node&) { return true; };
  EXPECT_THAT(Added({halves->output(0)}, {a}),
              ElementsAre(testing::_, testing::_, testing::_));
  EXPECT_EQ(Name(0), "none");
}

TEST_F(GradientsTest, BuildNothingWithoutYs) {
  const Output a = TestSource(root_, "a");
  EXPECT_THAT(Added({}, {a}), IsEmpty());
  EXPECT_EQ(Name(0), "none");
}

}  // namespace
}  // namespace sluice
