#include "sluice/ops/queue/accumulator.h"

#include "sluice/kernel/testing/op_test.h"
#include "sluice/ops/state/testing/op_session.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

// An accumulator of two floats and the ops on it.
class AccumulatorFixture {
 public:
  explicit AccumulatorFixture(bool resource,
                              std::string_view reduction = "MEAN")
      : device_(MakeTestDevice()),
        session_(*device_),
        prefix_(resource ? "Resource" : "") {
    accumulator_ = session_.Add(prefix_ + "ConditionalAccumulator", {},
                                {{"dtype", DType::kFloat},
                                 {"shape", Shape({2})},
                                 {"shared_name", "w/grad_accum"},
                                 {"reduction_type", reduction}});
  }
  absl::Status Apply(int64_t step, Tensor gradient) {
    return session_.Run(session_.Add(
        prefix_ + "AccumulatorApplyGradient",
        {accumulator_->output(0), session_.Value(Tensor::Scalar(step)),
         session_.Value(std::move(gradient))}));
  }
  std::shared_ptr<OpRun> Take(int32_t n) { return session_.Start(TakeNode(n)); }
  // In a step that has been cancelled.
  std::shared_ptr<OpRun> TakeTooLate(int32_t n) {
    return session_.StartCancelled(TakeNode(n));
  }
  absl::Status SetStep(int64_t step) {
    return session_.Run(session_.Add(
        prefix_ + "AccumulatorSetGlobalStep",
        {accumulator_->output(0), session_.Value(Tensor::Scalar(step))}));
  }
  int32_t Count() {
    return session_
        .Output0(session_.Add(prefix_ + "AccumulatorNumAccumulated",
                              {accumulator_->output(0)}))
        .scalar<int32_t>();
  }
  OpSession& session() { return session_; }
  Device& device() { return *device_; }

 private:
  Node* TakeNode(int32_t n) {
    return session_.Add(
        prefix_ + "AccumulatorTakeGradient",
        {accumulator_->output(0), session_.Value(Tensor::Scalar(n))},
        {{"dtype", DType::kFloat}});
  }

  std::unique_ptr<Device> device_;
  OpSession session_;
  std::string prefix_;
  Node* accumulator_;
};

class DenseAccumulatorTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(RefAndResource, DenseAccumulatorTest, testing::Bool());

TEST_P(DenseAccumulatorTest, AveragesOverAllThatCame) {
  AccumulatorFixture t(GetParam());
  SLUICE_ASSERT_OK(t.Apply(0, Tensor::Vector<float>({1, 2})));
  SLUICE_ASSERT_OK(t.Apply(0, Tensor::Vector<float>({3, 4})));
  SLUICE_ASSERT_OK(t.Apply(5, Tensor::Vector<float>({5, 9})));
  EXPECT_EQ(t.Count(), 3);
  auto take = t.Take(2);
  SLUICE_ASSERT_OK(take->Wait());
  ExpectClose(take->output(0), Tensor::Vector<float>({3, 5}));
  EXPECT_EQ(t.Count(), 0);
}

TEST_P(DenseAccumulatorTest, DropsGradientsOfPastSteps) {
  AccumulatorFixture t(GetParam());
  SLUICE_ASSERT_OK(t.Apply(0, Tensor::Vector<float>({1, 2})));
  SLUICE_ASSERT_OK(t.Take(1)->Wait());
  SLUICE_ASSERT_OK(t.Apply(0, Tensor::Vector<float>({9, 9})));
  EXPECT_EQ(t.Count(), 0);
  SLUICE_ASSERT_OK(t.Apply(1, Tensor::Vector<float>({1, 1})));
  EXPECT_EQ(t.Count(), 1);
  SLUICE_ASSERT_OK(t.SetStep(7));
  SLUICE_ASSERT_OK(t.Apply(6, Tensor::Vector<float>({9, 9})));
  EXPECT_EQ(t.Count(), 1);
}

TEST_P(DenseAccumulatorTest, TakersWaitInOrder) {
  AccumulatorFixture t(GetParam());
  auto first = t.Take(2);
  auto second = t.Take(1);
  SLUICE_ASSERT_OK(t.Apply(0, Tensor::Vector<float>({1, 1})));
  EXPECT_FALSE(first->finished());
  EXPECT_FALSE(second->finished());
  EXPECT_THAT(WaitTable::Global().List().back().what,
              HasSubstr("1 gradients in accumulator 'w/grad_accum'"));
  SLUICE_ASSERT_OK(t.Apply(0, Tensor::Vector<float>({3, 3})));
  SLUICE_ASSERT_OK(first->Wait());
  ExpectClose(first->output(0), Tensor::Vector<float>({2, 2}));
  EXPECT_FALSE(second->finished());
  SLUICE_ASSERT_OK(t.Apply(1, Tensor::Vector<float>({8, 8})));
  SLUICE_ASSERT_OK(second->Wait());
  ExpectClose(second->output(0), Tensor::Vector<float>({8, 8}));
}

TEST_P(DenseAccumulatorTest, CancellingTheStepEndsTheWait) {
  AccumulatorFixture t(GetParam());
  auto first = t.Take(2);
  auto second = t.Take(1);
  SLUICE_ASSERT_OK(t.Apply(0, Tensor::Vector<float>({1, 1})));
  first->cancellation().Cancel(absl::CancelledError("enough"));
  EXPECT_THAT(first->Wait(), StatusIs(absl::StatusCode::kCancelled,
                                      "TakeGrad operation was cancelled"));
  SLUICE_EXPECT_OK(second->Wait());
}

TEST_P(DenseAccumulatorTest, AStepThatIsOverTakesNothing) {
  AccumulatorFixture t(GetParam());
  SLUICE_ASSERT_OK(t.Apply(0, Tensor::Vector<float>({1, 1})));
  EXPECT_THAT(t.TakeTooLate(1)->Wait(),
              StatusIs(absl::StatusCode::kCancelled,
                       "TakeGrad operation was cancelled"));
  EXPECT_EQ(t.Count(), 1);
}

TEST_P(DenseAccumulatorTest, ChecksItsArguments) {
  AccumulatorFixture t(GetParam());
  EXPECT_THAT(t.Apply(0, Tensor::Vector<float>({1, 2, 3})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "Shape mismatch: expected [2], got [3]"));
  EXPECT_THAT(t.Take(0)->Wait(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "Argument num_required must be positive, but was 0"));
  EXPECT_THAT(t.Apply(0, Tensor::Vector<int32_t>({1, 2})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is float [2] MEAN")));
}

TEST(DenseAccumulator, GivesTheSumIfAskedTo) {
  AccumulatorFixture t(true, "SUM");
  SLUICE_ASSERT_OK(t.Apply(0, Tensor::Vector<float>({1, 2})));
  SLUICE_ASSERT_OK(t.Apply(0, Tensor::Vector<float>({3, 4})));
  auto take = t.Take(1);
  SLUICE_ASSERT_OK(take->Wait());
  ExpectClose(take->output(0), Tensor::Vector<float>({4, 6}));
}

TEST(DenseAccumulator, DoesNotWriteIntoGradientsOfOthers) {
  AccumulatorFixture t(true);
  const Tensor first = Tensor::Vector<float>({1, 2});
  SLUICE_ASSERT_OK(t.Apply(0, first));
  SLUICE_ASSERT_OK(t.Apply(0, Tensor::Vector<float>({3, 4})));
  ExpectClose(first, Tensor::Vector<float>({1, 2}));
}

TEST(DenseAccumulator, IsSharedOnlyByItsLike) {
  AccumulatorFixture t(true);
  SLUICE_ASSERT_OK(t.Apply(0, Tensor::Vector<float>({1, 2})));
  OpSession other(t.device());
  Node* sum = other.Add("ResourceConditionalAccumulator", {},
                        {{"dtype", DType::kFloat},
                         {"shape", Shape({2})},
                         {"shared_name", "w/grad_accum"},
                         {"reduction_type", "SUM"}});
  EXPECT_THAT(other.Run(sum), StatusIs(absl::StatusCode::kInvalidArgument,
                                       HasSubstr("declares it as")));
}

// A sparse accumulator and the ops on it.
class SparseAccumulatorFixture {
 public:
  explicit SparseAccumulatorFixture(
      const PartialShape& shape = PartialShape::Scalar())
      : device_(MakeTestDevice()), session_(*device_) {
    accumulator_ = session_.Add("SparseConditionalAccumulator", {},
                                {{"dtype", DType::kFloat}, {"shape", shape}});
  }
  absl::Status Apply(Tensor indices, Tensor values,
                     const std::optional<Tensor>& shape = std::nullopt) {
    const Tensor none = Tensor::Of<int64_t>({0}, {});
    return session_.Run(session_.Add(
        "SparseAccumulatorApplyGradient",
        {accumulator_->output(0), session_.Value(Tensor::Scalar<int64_t>(0)),
         session_.Value(std::move(indices)), session_.Value(std::move(values)),
         session_.Value(shape.value_or(none))},
        {{"has_known_shape", shape.has_value()}}));
  }
  absl::StatusOr<std::vector<Tensor>> Take(int32_t n) {
    return session_.Outputs(session_.Add(
        "SparseAccumulatorTakeGradient",
        {accumulator_->output(0), session_.Value(Tensor::Scalar(n))},
        {{"dtype", DType::kFloat}}));
  }

 private:
  std::unique_ptr<Device> device_;
  OpSession session_;
  Node* accumulator_;
};

TEST(SparseAccumulator, AveragesEachRowOverTheGradientsThatHaveIt) {
  SparseAccumulatorFixture t;
  SLUICE_ASSERT_OK(t.Apply(Tensor::Vector<int64_t>({0, 4}),
                           Tensor::Of<float>({2, 2}, {1, 2, 3, 4})));
  SLUICE_ASSERT_OK(t.Apply(Tensor::Vector<int64_t>({2, 4}),
                           Tensor::Of<float>({2, 2}, {5, 6, 7, 8})));
  auto taken = t.Take(2);
  SLUICE_ASSERT_OK(taken.status());
  ExpectClose((*taken)[0], Tensor::Vector<int64_t>({0, 2, 4}));
  ExpectClose((*taken)[1], Tensor::Of<float>({3, 2}, {1, 2, 5, 6, 5, 6}));
  ExpectClose((*taken)[2], Tensor::Vector<int64_t>({-1, 2}));
}

TEST(SparseAccumulator, SumsRepeatedAndSortsUnsortedIndices) {
  SparseAccumulatorFixture t({10, 1});
  SLUICE_ASSERT_OK(t.Apply(Tensor::Vector<int64_t>({7, 3, 7}),
                           Tensor::Of<float>({3, 1}, {1, 2, 4}),
                           Tensor::Vector<int64_t>({10, 1})));
  auto taken = t.Take(1);
  SLUICE_ASSERT_OK(taken.status());
  ExpectClose((*taken)[0], Tensor::Vector<int64_t>({3, 7}));
  ExpectClose((*taken)[1], Tensor::Of<float>({2, 1}, {2, 5}));
  ExpectClose((*taken)[2], Tensor::Vector<int64_t>({10, 1}));
}

TEST(SparseAccumulator, TakesGradientsWithoutRows) {
  SparseAccumulatorFixture t;
  SLUICE_ASSERT_OK(
      t.Apply(Tensor::Of<int64_t>({0}, {}), Tensor::Of<float>({0, 2}, {})));
  auto taken = t.Take(1);
  SLUICE_ASSERT_OK(taken.status());
  EXPECT_EQ((*taken)[1].shape().DebugString(), "[0,2]");
}

TEST(SparseAccumulator, ChecksGradients) {
  SparseAccumulatorFixture t({10, 2});
  const auto fails = [](std::string_view text) {
    return StatusIs(absl::StatusCode::kInvalidArgument,
                    HasSubstr(std::string(text)));
  };
  const Tensor row = Tensor::Of<float>({1, 2}, {1, 2});
  EXPECT_THAT(t.Apply(Tensor::Scalar<int64_t>(1), row),
              fails("Input indices should be vector but received shape: []"));
  EXPECT_THAT(t.Apply(Tensor::Vector<int64_t>({1}), Tensor::Scalar<float>(1)),
              fails("Values cannot be 0-dimensional."));
  EXPECT_THAT(t.Apply(Tensor::Vector<int64_t>({1, 2}), row),
              fails("Expected 2 non-empty input values, got 1"));
  EXPECT_THAT(t.Apply(Tensor::Vector<int64_t>({1}),
                      Tensor::Of<float>({1, 3}, {1, 2, 3})),
              fails("Shape mismatch"));
  EXPECT_THAT(t.Apply(Tensor::Vector<int64_t>({10}), row),
              fails("Shape mismatch"));
  EXPECT_THAT(t.Apply(Tensor::Vector<int64_t>({-1}), row),
              fails("Shape mismatch"));
  EXPECT_THAT(t.Apply(Tensor::Vector<int64_t>({1}), row,
                      Tensor::Vector<int64_t>({9, 2})),
              fails("Shape mismatch"));
}

}  // namespace
}  // namespace sluice
