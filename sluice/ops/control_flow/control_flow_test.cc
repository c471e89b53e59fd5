#include "sluice/kernel/testing/op_test.h"
#include "sluice/ops/control_flow/summarize.h"
#include "sluice/ops/state/testing/op_session.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

TEST(Switch, GivesTheValueToTheTakenSideOnly) {
  const auto device = MakeTestDevice();
  OpSession session(*device);
  const Output data = session.Value(Tensor::Scalar<int32_t>(7));
  const Output pred = session.Value(Tensor::Scalar<bool>(true));
  Node* node = session.Add("Switch", {data, pred});
  auto run = session.Start(node);
  SLUICE_ASSERT_OK(run->Wait());
  EXPECT_EQ(run->slot(0).kind, Slot::Kind::kDead);
  EXPECT_EQ(run->output(1).scalar<int32_t>(), 7);
  session.SetValue(pred, Tensor::Scalar<bool>(false));
  run = session.Start(node);
  SLUICE_ASSERT_OK(run->Wait());
  EXPECT_EQ(run->output(0).scalar<int32_t>(), 7);
  EXPECT_EQ(run->slot(1).kind, Slot::Kind::kDead);
}

TEST(Switch, NeedsAScalarCondition) {
  const auto device = MakeTestDevice();
  OpSession session(*device);
  const Output data = session.Value(Tensor::Scalar<int32_t>(7));
  const Output pred = session.Value(Tensor::Vector<bool>({true, false}));
  EXPECT_THAT(session.Run(session.Add("Switch", {data, pred})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "The second input must be a scalar, but it has shape "
                       "[2]"));
  const Output known = session.Value(Tensor::Vector<bool>({true, false}), true);
  EXPECT_THAT(session.TryAdd("Switch", {data, known}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("Shape must be rank 0 but is rank 1")));
}

TEST(RefSwitch, PassesVariablesOnBeforeTheyHaveAValue) {
  const auto device = MakeTestDevice();
  OpSession session(*device);
  Node* v = session.Add("VariableV2", {},
                        {{"dtype", DType::kFloat}, {"shape", Shape({1})}});
  Node* node = session.Add(
      "RefSwitch", {v->output(0), session.Value(Tensor::Scalar<bool>(false))});
  auto run = session.Start(node);
  SLUICE_ASSERT_OK(run->Wait());
  EXPECT_EQ(run->slot(0).kind, Slot::Kind::kRef);
  EXPECT_EQ(run->slot(1).kind, Slot::Kind::kDead);
}

TEST(Merge, GivesTheLiveInputAndItsIndex) {
  const auto device = MakeTestDevice();
  OpSession session(*device);
  Node* node =
      session.Add("Switch", {session.Value(Tensor::Scalar<float>(5)),
                             session.Value(Tensor::Scalar<bool>(true))});
  Node* merge = session.Add("Merge", {node->output(0), node->output(1)});
  auto outputs = session.Outputs(merge);
  SLUICE_ASSERT_OK(outputs.status());
  EXPECT_EQ((*outputs)[0].scalar<float>(), 5);
  EXPECT_EQ((*outputs)[1].scalar<int32_t>(), 1);
}

TEST(Merge, ShapeIsWhatAllInputsAgreeOn) {
  EXPECT_EQ(InferredShape("Merge", {"[2,3]", "[2,3]"}), "[2,3]");
  EXPECT_EQ(InferredShape("Merge", {"[2,3]", "[4,3]"}), "[?,3]");
  EXPECT_EQ(InferredShape("Merge", {"[2,3]", "[2]"}), "?");
  EXPECT_EQ(InferredShape("Merge", {"[2,3]", "?"}), "?");
}

TEST(Merge, MayWaitForItsBackEdge) {
  Graph graph;
  auto value = graph.AddNode({"x",
                              "TestInput",
                              {},
                              {},
                              {{"dtype", DType::kFloat}, {"shape", Shape({2})}},
                              ""});
  SLUICE_ASSERT_OK(value.status());
  auto merge = graph.AddNode({"m",
                              "Merge",
                              {(*value)->output(0), Output()},
                              {},
                              {{"T", DType::kFloat}, {"N", 2}},
                              ""});
  SLUICE_ASSERT_OK(merge.status());
  EXPECT_EQ((*merge)->output_shape(0).DebugString(), "[2]");
}

TEST(Enter, KnowsTheShapeOnlyOfConstants) {
  const auto shape = [](bool constant) {
    return InferredShape("Enter", {"[2]"},
                         {{"frame_name", "f"}, {"is_constant", constant}});
  };
  EXPECT_EQ(shape(true), "[2]");
  EXPECT_EQ(shape(false), "?");
}

TEST(LoopOps, PassTheirInputOn) {
  for (const char* op : {"Exit", "NextIteration"}) {
    OpTest test(op);
    test.AddInput<float>({2}, {1, 2});
    SLUICE_ASSERT_OK(test.Run());
    ExpectClose(test.output(0), Tensor::Vector<float>({1, 2}));
    EXPECT_EQ(InferredShape(op, {"[2,?]"}), "[2,?]");
  }
  OpTest cond("LoopCond");
  cond.AddInput<bool>({}, {true});
  SLUICE_ASSERT_OK(cond.Run());
  EXPECT_TRUE(cond.output(0).scalar<bool>());
}

TEST(Assert, FailsWithItsDataOnlyIfTheConditionIsFalse) {
  OpTest good("Assert");
  good.AddInput<bool>({}, {true}).AddInput<int32_t>({}, {1});
  SLUICE_EXPECT_OK(good.Run());
  OpTest bad("Assert");
  bad.AddInput<bool>({}, {false})
      .AddInput<int32_t>({2}, {1, 2})
      .AddInput<std::string>({}, {"text"});
  EXPECT_THAT(bad.Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  "assertion failed: [1 2] [text]"));
  OpTest many("Assert");
  many.AddInput<bool>({}, {false}).AddInput<float>({4}, {0.5, 1, 2, 3});
  EXPECT_THAT(many.Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                   "assertion failed: [0.5 1 2...]"));
}

TEST(SummarizeValue, PutsInnerDimensionsInBrackets) {
  const Tensor square = Tensor::Of<int32_t>({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(SummarizeValue(square, -1), "[1 2][3 4]");
  EXPECT_EQ(SummarizeValue(square, 3), "[1 2][3...]...");
  EXPECT_EQ(SummarizeValue(square, 2), "[1 2]...");
  EXPECT_EQ(SummarizeValue(square, 0), "...");
  EXPECT_EQ(SummarizeValue(Tensor::Vector<bool>({true, false}), 3), "1 0");
  EXPECT_EQ(SummarizeValue(Tensor::Scalar<std::string>("a\nb"), 3), "a\\nb");
  EXPECT_EQ(SummarizeValue(Tensor::Of<float>({0}, {}), 3), "");
}

TEST(Print, ShowsItsDataTheFirstTimesAndPassesTheInputOn) {
  const auto device = MakeTestDevice();
  OpSession session(*device);
  Node* print = session.Add("Print",
                            {session.Value(Tensor::Scalar<float>(5)),
                             session.Value(Tensor::Vector<int32_t>({1, 2}))},
                            {{"message", "here: "}, {"first_n", 1}});
  testing::internal::CaptureStderr();
  EXPECT_EQ(session.Output0(print).scalar<float>(), 5);
  EXPECT_EQ(session.Output0(print).scalar<float>(), 5);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "here: [1 2]\n");
}

TEST(PrintV2, WritesToTheStreamItNames) {
  OpTest op("PrintV2");
  op.AddInput<std::string>({}, {"hello"}).Attr("output_stream", "stdout");
  testing::internal::CaptureStdout();
  SLUICE_EXPECT_OK(op.Run());
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "hello\n");
  OpTest unknown("PrintV2");
  unknown.AddInput<std::string>({}, {"x"}).Attr("output_stream", "nowhere");
  EXPECT_THAT(unknown.Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("nowhere")));
}

}  // namespace
}  // namespace sluice
