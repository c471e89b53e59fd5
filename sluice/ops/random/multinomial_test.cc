#include "sluice/kernel/testing/op_test.h"
#include "sluice/ops/random/testing/kernel_runs.h"

// Expected draws are TensorFlow's.

namespace sluice {
namespace {

using testing::ElementsAre;

template <typename T>
Tensor TwoRowsOfLogits() {
  return Tensor::Of<T>({2, 4}, {0, 1, 2, -1, 3, 0, 0, -30});
}

template <typename T>
void ExpectTensorFlowsDraws() {
  KernelRuns runs("Multinomial", {{"seed", 42}, {"seed2", 7}},
                  {TwoRowsOfLogits<T>(), Tensor::Scalar<int32_t>(9)});
  runs.NextValues<int64_t>();
  EXPECT_THAT(runs.NextValues<int64_t>(),
              ElementsAre(2, 2, 2, 2, 1, 2, 2, 3, 1,  //
                          0, 0, 0, 1, 0, 0, 2, 0, 0));
}

TEST(Multinomial, DrawsAsTensorFlowDoes) {
  ExpectTensorFlowsDraws<float>();
  ExpectTensorFlowsDraws<double>();
  KernelRuns ints("Multinomial",
                  {{"seed", 42}, {"seed2", 7}, {"output_dtype", DType::kInt32}},
                  {TwoRowsOfLogits<float>(), Tensor::Scalar<int32_t>(200)});
  ints.NextValues<int32_t>();
  const std::vector<int32_t> draws = ints.NextValues<int32_t>();
  EXPECT_THAT(std::vector<int32_t>(draws.begin(), draws.begin() + 9),
              ElementsAre(2, 2, 2, 2, 0, 2, 2, 1, 2));
}

TEST(Multinomial, DrawsManyRowsOnManyThreads) {
  Tensor logits = *Tensor::Zeros(DType::kFloat, {300, 50});
  KernelRuns runs("Multinomial", {{"seed", 42}, {"seed2", 7}},
                  {logits, Tensor::Scalar<int32_t>(100)});
  const std::vector<int64_t> draws = runs.NextValues<int64_t>();
  EXPECT_THAT(std::vector<int64_t>(draws.end() - 4, draws.end()),
              ElementsAre(17, 33, 32, 41));
}

TEST(Multinomial, NeverDrawsWhatIsNotFinite) {
  const float inf = std::numeric_limits<float>::infinity();
  KernelRuns runs("Multinomial", {{"seed", 1}, {"seed2", 1}},
                  {Tensor::Of<float>({2, 3}, {-inf, 0, inf, inf, inf, NAN}),
                   Tensor::Scalar<int32_t>(2)});
  // A row with nothing to draw gives its last class, not one past the end.
  EXPECT_THAT(runs.NextValues<int64_t>(), ElementsAre(1, 1, 2, 2));
}

TEST(Multinomial, RefusesWhatIsNoMatrix) {
  EXPECT_THAT(
      KernelRuns("Multinomial", {},
                 {Tensor::Vector<float>({1}), Tensor::Scalar<int32_t>(2)})
          .Next()
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "logits should be a matrix, got shape [1]"));
  EXPECT_THAT(
      KernelRuns("Multinomial", {},
                 {Tensor::Of<float>({1, 1}, {1}), Tensor::Scalar<int32_t>(-2)})
          .Next()
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "num_samples should be nonnegative, got -2"));
}

TEST(StatelessMultinomial, DrawsAsTensorFlowDoes) {
  OpTest op("StatelessMultinomial");
  op.AddInput(TwoRowsOfLogits<float>()).AddInput(Tensor::Scalar<int32_t>(9));
  op.AddInput<int64_t>({2}, {1, 2});
  SLUICE_ASSERT_OK(op.Run());
  const auto draws = op.output(0).data<int64_t>();
  EXPECT_THAT(std::vector<int64_t>(draws.begin(), draws.begin() + 5),
              ElementsAre(2, 3, 1, 2, 2));
}

}  // namespace
}  // namespace sluice
