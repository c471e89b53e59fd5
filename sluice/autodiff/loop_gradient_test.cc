#include "sluice/autodiff/loop_gradient.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "sluice/autodiff/gradients.h"
#include "sluice/autodiff/testing/node_text.h"
#include "sluice/graph/control_flow_def.h"
#include "sluice/graph/while_loop.h"
#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// for (i = 0; i < 3; ++i) x *= w;
class LoopGradientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    x_ = root_.Named("x").Scalar<float>(2);
    w_ = root_.Named("w").Scalar<float>(0.5);
    loop_.variables = {root_.Named("zero").Scalar<int32_t>(0), x_};
    loop_.condition = [](const Scope& scope, const std::vector<Output>& v) {
      const Output limit = scope.Named("limit").Scalar<int32_t>(3);
      return std::vector<Output>{scope.Add("Less", {v[0], limit})};
    };
    loop_.body = [this](const Scope& scope, const std::vector<Output>& v) {
      const Output one = scope.Named("one").Scalar<int32_t>(1);
      return std::vector<Output>{scope.Add("AddV2", {v[0], one}),
                                 scope.Add("Mul", {v[1], w_})};
    };
  }
  absl::StatusOr<WhileResult> Build() {
    return While(root_.NameScope("loop"), loop_);
  }
  std::string Line(std::string_view node) {
    for (const std::string& line : NodeLines(graph_, 0)) {
      if (line.starts_with(StrCat(node, " = "))) return line;
    }
    return StrCat("no node ", node);
  }

  Graph graph_;
  Scope root_{graph_};
  Output x_, w_;
  WhileLoop loop_;
};

TEST_F(LoopGradientTest, ALoopHasAFrameAndBringsConstantsIn) {
  auto result = Build();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->context->name(), "loop/while_context");
  EXPECT_EQ(result->values[1].node->name(), "loop/Exit_1");
  EXPECT_THAT(Line("loop/Merge_1"),
              HasSubstr("Merge(loop/Enter_1, loop/NextIteration_1)"));
  EXPECT_THAT(Line("loop/Mul"), HasSubstr("Mul(loop/Identity_1, loop/Mul/"));
  EXPECT_THAT(Line("loop/one"), HasSubstr("^loop/Identity"));
  EXPECT_TRUE(IsConstantEnter(*graph_.FindNode("loop/Mul/Enter")));
}

TEST_F(LoopGradientTest, TheGradientPopsWhatTheLoopPushed) {
  auto result = Build();
  ASSERT_TRUE(result.ok()) << result.status();
  const Output xs[] = {x_, w_};
  auto grads = AddGradients(root_, {&result->values[1], 1}, xs);
  ASSERT_TRUE(grads.ok()) << grads.status();
  EXPECT_EQ((*grads)[0].values.node->name(),
            "gradients/loop/Enter_1_grad/Exit");
  EXPECT_EQ((*grads)[1].values.node->name(),
            "gradients/loop/Mul/Enter_grad/b_acc_3");
  const std::string stack = "gradients/loop/Mul_grad/Mul_1/";
  EXPECT_THAT(Line(stack + "StackPushV2"), HasSubstr("loop/Identity_1"));
  EXPECT_THAT(Line("gradients/NextIteration"),
              HasSubstr(StrCat("^", stack, "StackPushV2")));
  // Nothing is saved of w, which is the same in all iterations.
  EXPECT_THAT(Line("gradients/loop/Mul_grad/Mul/Enter"), HasSubstr("(w)"));
}

TEST_F(LoopGradientTest, ALoopCanBeToldToHaveNoGradient) {
  loop_.options.back_prop = false;
  auto result = Build();
  ASSERT_TRUE(result.ok()) << result.status();
  auto grads = AddGradients(root_, {&result->values[1], 1}, {&x_, 1});
  ASSERT_TRUE(grads.ok()) << grads.status();
  EXPECT_FALSE((*grads)[0]);
}

TEST_F(LoopGradientTest, ShapesMayChangeOnlyIfTheLoopIsToldSo) {
  const Output row = root_.Named("row").Ints({1});
  loop_.variables[1] = row;
  loop_.body = [](const Scope& scope, const std::vector<Output>& v) {
    const Output axis = scope.Scalar<int32_t>(0);
    return std::vector<Output>{v[0], scope.Add("ConcatV2", {v[1], v[1], axis})};
  };
  EXPECT_THAT(Build().status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("enters the loop with shape (1,), but has "
                                 "shape (2,) after one iteration")));
  loop_.shape_invariants = {PartialShape::Scalar(), PartialShape({-1})};
  EXPECT_TRUE(Build().ok());
}

TEST_F(LoopGradientTest, WhatIsInALoopStaysThere) {
  auto result = Build();
  ASSERT_TRUE(result.ok()) << result.status();
  const Output inside = graph_.FindNode("loop/Mul")->output(0);
  root_.Named("y").Add("Neg", {inside});
  EXPECT_THAT(root_.status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("Cannot use 'loop/Mul' as input to 'y'")));
}

TEST_F(LoopGradientTest, AContextGoesThroughItsMessage) {
  auto result = Build();
  ASSERT_TRUE(result.ok()) << result.status();
  pb::ControlFlowContextDef def;
  ControlFlowToProto(*result->context, &def);
  EXPECT_THAT(def.while_ctxt().values_def().values(), Contains("loop/Mul:0"));
  for (int id = 0; id < graph_.num_nodes(); ++id) {
    graph_.node(id)->set_control_flow(nullptr);
  }
  auto read = ControlFlowFromProto(def, "", &graph_);
  ASSERT_TRUE(read.ok()) << read.status();
  pb::ControlFlowContextDef again;
  ControlFlowToProto(**read, &again);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(def, again))
      << again.DebugString();
  def.mutable_while_ctxt()->set_pivot_name("gone:0");
  EXPECT_FALSE(ControlFlowFromProto(def, "", &graph_).ok());
}

}  // namespace
}  // namespace sluice
