#include "sluice/autodiff/aggregate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/autodiff/testing/node_text.h"
#include "sluice/autodiff/testing/test_ops.h"
#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AggregateTest : public ::testing::Test {
 protected:
  std::vector<std::string> Added(
      const std::vector<Grad>& grads,
      AggregationMethod method = AggregationMethod::kAddN) {
    if (op_ == nullptr) op_ = TestSource(root_, "op").node;
    const int first = graph_.num_nodes();
    auto sum = Aggregate(root_.NameScope("g"), *op_, grads, method);
    status_ = sum.status();
    if (sum.ok()) sum_ = *sum;
    return NodeLines(graph_, first);
  }
  Grad Slices(std::string_view name, DType index_type, bool shape = true) {
    const Scope scope = root_.NameScope(name);
    return Grad::Slices(
        TestSource(scope, "v", {3, 2}), TestSource(scope, "i", {3}, index_type),
        shape ? TestSource(scope, "s", {2}, DType::kInt32) : Output());
  }

  Graph graph_;
  Scope root_{graph_};
  Node* op_ = nullptr;
  Grad sum_;
  absl::Status status_;
};

TEST_F(AggregateTest, AddsOnEachDeviceFirst) {
  const Scope one = root_.Device("/job:ps/task:1");
  const Scope zero = root_.Device("/job:ps/task:0");
  EXPECT_THAT(Added({TestSource(one, "a"), TestSource(zero, "b"),
                     TestSource(one, "c"), TestSource(root_, "d")}),
              ElementsAre("g/AddN = AddN(a, c) @/job:ps/task:1 loc:@a",
                          "g/AddN_1 = AddN(d, b, g/AddN)"));
}

TEST_F(AggregateTest, AddsInPairs) {
  EXPECT_THAT(Added({TestSource(root_, "a"), TestSource(root_, "b"),
                     TestSource(root_, "c")},
                    AggregationMethod::kTree),
              ElementsAre("g/op_gradient_sum/AddN = AddN(a, b)",
                          "g/op_gradient_sum/AddN_1 = "
                          "AddN(g/op_gradient_sum/AddN, c)"));
}

TEST_F(AggregateTest, AccumulatesThreeOrMoreOfAKnownShape) {
  const Output a = TestSource(root_, "a");
  const Output b = TestSource(root_, "b", PartialShape());
  EXPECT_THAT(Added({a, b, a}, AggregationMethod::kAccumulateN),
              ElementsAre("g/AccumulateNV2 = AccumulateNV2(a, b, a)"));
  EXPECT_EQ(sum_.values.node->attr<PartialShape>("shape"), PartialShape({2}));
  EXPECT_THAT(Added({a, b}, AggregationMethod::kAccumulateN),
              ElementsAre("g_1/op_gradient_sum/AddN = AddN(a, b)"));
  EXPECT_THAT(Added({b, b, b}, AggregationMethod::kAccumulateN),
              ElementsAre(HasSubstr("AddN"), HasSubstr("AddN_1")));
}

TEST_F(AggregateTest, RefusesShapesThatDiffer) {
  Added({TestSource(root_, "a", {2}), TestSource(root_, "b", {3})});
  EXPECT_EQ(status_.code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(AggregateTest, RefusesAnUnknownMethod) {
  EXPECT_THAT(CheckAggregationMethod(static_cast<AggregationMethod>(7)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "Invalid aggregation_method specified 7."));
}

TEST_F(AggregateTest, JoinsTheRowsOfSlices) {
  EXPECT_THAT(Added({Slices("a", DType::kInt32), Slices("b", DType::kInt32)}),
              ElementsAre("g/concat/axis = Const()",
                          "g/concat = ConcatV2(a/v, b/v, g/concat/axis)",
                          "g/concat_1/axis = Const()",
                          "g/concat_1 = ConcatV2(a/i, b/i, g/concat_1/axis)"));
  EXPECT_EQ(TensorName(sum_.dense_shape), "a/s:0");
}

TEST_F(AggregateTest, WidensIndicesThatDiffer) {
  const auto lines =
      Added({Slices("a", DType::kInt64), Slices("b", DType::kInt32)});
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0], "g/Cast = Cast(b/i)");
  EXPECT_EQ(lines[4], "g/concat_1 = ConcatV2(a/i, g/Cast, g/concat_1/axis)");
}

TEST_F(AggregateTest, MakesSlicesDenseBesideADenseTerm) {
  EXPECT_THAT(
      Added({TestSource(root_, "d", {4, 2}), Slices("a", DType::kInt32)}),
      ElementsAre("g/AddN/strided_slice/stack = Const()",
                  "g/AddN/strided_slice/stack_1 = Const()",
                  "g/AddN/strided_slice/stack_2 = Const()",
                  "g/AddN/strided_slice = StridedSlice(a/s, "
                  "g/AddN/strided_slice/stack, g/AddN/strided_slice/stack_1, "
                  "g/AddN/strided_slice/stack_2)",
                  "g/AddN/inputs_1 = UnsortedSegmentSum(a/v, a/i, "
                  "g/AddN/strided_slice)",
                  "g/AddN = AddN(d, g/AddN/inputs_1)"));
  EXPECT_FALSE(sum_.is_slices());
}

TEST_F(AggregateTest, CannotMakeSlicesOfUnknownSizeDense) {
  Added({TestSource(root_, "d", {4, 2}),
         Slices("a", DType::kInt32, /*shape=*/false)});
  EXPECT_THAT(status_, StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("IndexedSlices without "
                                          "dense_shape: a/v:0")));
}

}  // namespace
}  // namespace sluice
