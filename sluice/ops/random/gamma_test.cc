#include "sluice/kernel/testing/op_test.h"
#include "sluice/ops/random/testing/kernel_runs.h"

// Expected numbers are TensorFlow's.

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

AttrMap GammaSeeds() { return {{"seed", 42}, {"seed2", 7}}; }

TEST(RandomGamma, GoesOnWhereTheLastRunEnded) {
  KernelRuns runs(
      "RandomGamma", GammaSeeds(),
      {Tensor::Vector<int32_t>({6}), Tensor::Vector<double>({0.3, 1.0, 5.0})});
  absl::StatusOr<Tensor> first = runs.Next();
  SLUICE_ASSERT_OK(first.status());
  EXPECT_EQ(first->shape(), Shape({6, 3}));
  EXPECT_DOUBLE_EQ(first->data<double>()[0], 0.89088598595641044);
  EXPECT_DOUBLE_EQ(first->data<double>()[1], 0.54732097131731483);
  EXPECT_DOUBLE_EQ(first->data<double>()[2], 6.5693719147159886);
  EXPECT_DOUBLE_EQ(first->data<double>()[8], 4.3412127169554342);
  const std::vector<double> second = runs.NextValues<double>();
  EXPECT_DOUBLE_EQ(second[0], 4.4007702959029807e-04);
  EXPECT_DOUBLE_EQ(second[5], 6.8109852024110769);
}

TEST(RandomGamma, GivesTheSameLargeTensorOnManyThreads) {
  KernelRuns runs(
      "RandomGamma", GammaSeeds(),
      {Tensor::Vector<int32_t>({100003}), Tensor::Scalar<float>(0.7f)});
  std::vector<float> values = runs.NextValues<float>();
  EXPECT_EQ(values[0], 1.5515527725219727f);
  EXPECT_EQ(values[100002], 1.3048218488693237f);
  values = runs.NextValues<float>();
  EXPECT_EQ(values[100001], 0.934877872467041f);
}

TEST(RandomGamma, KnowsHalves) {
  KernelRuns runs("RandomGamma", GammaSeeds(),
                  {Tensor::Vector<int64_t>({4}),
                   Tensor::Vector<Half>({Half(0.5f), Half(3.0f)})});
  const std::vector<Half> values = runs.NextValues<Half>();
  EXPECT_EQ(values[0], Half(1.254f));
  EXPECT_EQ(values[7], Half(1.731f));
}

TEST(RandomGamma, JoinsItsShapes) {
  OpTest op("RandomGamma");
  op.AddInput<int32_t>({2}, {2, 0}).AddInput<float>({2, 1}, {1, 2});
  SLUICE_ASSERT_OK(op.Run());
  EXPECT_EQ(op.output(0).shape(), Shape({2, 0, 2, 1}));
  KernelRuns bad("RandomGamma", GammaSeeds(),
                 {Tensor::Vector<int32_t>({-1}), Tensor::Scalar<float>(1)});
  EXPECT_THAT(bad.Next().status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("Dimension -1 must be >= 0")));
}

TEST(RandomGammaGrad, Broadcasts) {
  OpTest op("RandomGammaGrad");
  op.AddInput<float>({2, 1}, {0.5f, 2.0f});
  op.AddInput<float>({2}, {0.1f, 5.0f});
  SLUICE_ASSERT_OK(op.Run());
  ExpectClose(op.output(0),
              Tensor::Of<float>(
                  {2, 2}, {0.50976557f, 3.4371237f, 0.16736174f, 1.6580687f}));
  EXPECT_EQ(InferredShape("RandomGammaGrad", {"[2,?]", "[?]"}), "[2,?]");
}

TEST(RandomPoisson, DrawsAsTensorFlowDoes) {
  KernelRuns runs(
      "RandomPoissonV2", {{"seed", 42}, {"seed2", 7}, {"dtype", DType::kFloat}},
      {Tensor::Vector<int32_t>({2}), Tensor::Vector<float>({0.5, 4.0, 50.0})});
  absl::StatusOr<Tensor> first = runs.Next();
  SLUICE_ASSERT_OK(first.status());
  EXPECT_EQ(first->shape(), Shape({2, 3}));
  KernelRuns ints(
      "RandomPoissonV2", {{"seed", 42}, {"seed2", 7}, {"dtype", DType::kInt32}},
      {Tensor::Vector<int32_t>({4}), Tensor::Vector<int64_t>({3, 20000})});
  EXPECT_THAT(ints.NextValues<int32_t>(),
              ElementsAre(11, 20185, 4, 20112, 5, 19968, 2, 20069));
  KernelRuns large(
      "RandomPoissonV2", {{"seed", 42}, {"seed2", 7}, {"dtype", DType::kFloat}},
      {Tensor::Vector<int32_t>({100003}), Tensor::Scalar<float>(4)});
  std::vector<float> values = large.NextValues<float>();
  EXPECT_THAT(std::vector<float>(values.end() - 4, values.end()),
              ElementsAre(3, 4, 2, 7));
  values = large.NextValues<float>();
  EXPECT_EQ(values[0], 8);
}

TEST(RandomPoisson, EndsWhereTheTypeDoes) {
  KernelRuns runs("RandomPoissonV2",
                  {{"seed", 1}, {"seed2", 1}, {"dtype", DType::kInt32}},
                  {Tensor::Vector<int32_t>({1}),
                   Tensor::Vector<double>({INFINITY, NAN, -1})});
  EXPECT_THAT(runs.NextValues<int32_t>(),
              ElementsAre(std::numeric_limits<int32_t>::max(), 0, 0));
}

}  // namespace
}  // namespace sluice
