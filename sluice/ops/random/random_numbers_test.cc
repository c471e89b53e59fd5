#include "sluice/kernel/testing/op_test.h"
#include "sluice/ops/random/testing/kernel_runs.h"

// Expected numbers are TensorFlow's.

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kNormalTolerance = 2e-6;

AttrMap SeededAs(DType dtype) {
  return {{"seed", 42}, {"seed2", 7}, {"dtype", dtype}};
}

KernelRuns FiveNumbers(std::string_view op, DType dtype) {
  return KernelRuns(op, SeededAs(dtype), {Tensor::Vector<int32_t>({5})});
}

TEST(RandomUniform, GoesOnWhereTheLastRunEnded) {
  KernelRuns runs = FiveNumbers("RandomUniform", DType::kFloat);
  EXPECT_THAT(
      runs.NextValues<float>(),
      ElementsAre(0.8627676963806152f, 0.6567625999450684f, 0.9905458688735962f,
                  0.9031013250350952f, 0.7336807250976562f));
  EXPECT_THAT(runs.NextValues<float>(),
              ElementsAre(0.06553566455841064f, 0.1508927345275879f,
                          0.4699270725250244f, 0.42449259757995605f,
                          0.37181222438812256f));
  // A new kernel, as in a new session, starts again.
  KernelRuns again = FiveNumbers("RandomUniform", DType::kFloat);
  EXPECT_EQ(again.NextValues<float>()[0], 0.8627676963806152f);
}

TEST(RandomUniform, HasNumbersForEachFloatingType) {
  KernelRuns doubles = FiveNumbers("RandomUniform", DType::kDouble);
  EXPECT_EQ(doubles.NextValues<double>()[4], 0.8116292357541852);
  EXPECT_EQ(doubles.NextValues<double>()[4], 0.05496204226789314);
  KernelRuns halves = FiveNumbers("RandomUniform", DType::kHalf);
  EXPECT_EQ(float(halves.NextValues<Half>()[4]), 0.3125f);
  EXPECT_EQ(float(halves.NextValues<Half>()[4]), 0.8857421875f);
}

TEST(RandomUniform, GivesTheSameLargeTensorOnManyThreads) {
  KernelRuns runs("RandomUniform", SeededAs(DType::kFloat),
                  {Tensor::Vector<int64_t>({1000003})});
  std::vector<float> values = runs.NextValues<float>();
  EXPECT_EQ(values[1000002], 0.4109046459197998f);
  values = runs.NextValues<float>();
  EXPECT_EQ(values[0], 0.39644408226013184f);
  EXPECT_EQ(values[1000002], 0.07287204265594482f);
}

TEST(RandomUniform, DiffersFromKernelToKernelWithoutSeeds) {
  const AttrMap attrs = {{"dtype", DType::kFloat}};
  KernelRuns one("RandomUniform", attrs, {Tensor::Vector<int32_t>({8})});
  KernelRuns other("RandomUniform", attrs, {Tensor::Vector<int32_t>({8})});
  EXPECT_NE(one.NextValues<float>(), other.NextValues<float>());
}

TEST(RandomUniform, RefusesShapesThatAreNone) {
  const AttrMap attrs = SeededAs(DType::kFloat);
  EXPECT_THAT(KernelRuns("RandomUniform", attrs, {Tensor::Scalar<int32_t>(3)})
                  .Next()
                  .status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("must be a vector of {int32,int64}, got "
                                 "shape []")));
  EXPECT_THAT(
      KernelRuns("RandomUniform", attrs, {Tensor::Vector<int32_t>({2, -1})})
          .Next()
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "Dimension -1 must be >= 0"));
  EXPECT_FALSE(KernelRuns("RandomUniform", attrs,
                          {Tensor::Vector<int64_t>({1ll << 40, 1ll << 40})})
                   .Next()
                   .ok());
}

TEST(RandomUniform, InfersTheRankFromTheLengthOfTheShape) {
  const AttrMap attrs = {{"dtype", DType::kFloat}};
  EXPECT_EQ(InferredShape("RandomUniform", {"[3]"}, attrs, DType::kInt32),
            "[?,?,?]");
  EXPECT_EQ(InferredShape("RandomUniform", {"?"}, attrs, DType::kInt32), "?");
}

TEST(RandomStandardNormal, GivesTensorFlowsNumbers) {
  KernelRuns floats = FiveNumbers("RandomStandardNormal", DType::kFloat);
  ExpectClose(*floats.Next(),
              Tensor::Vector<float>({-0.4527415633201599f, -0.3004075288772583f,
                                     -0.07882861793041229f,
                                     0.11306749284267426f, 0.539332389831543f}),
              kNormalTolerance);
  ExpectClose(*floats.Next(),
              Tensor::Vector<float>({1.8963923454284668f, 1.3616231679916382f,
                                     0.56142657995224f, -1.0932316780090332f,
                                     -1.3822191953659058f}),
              kNormalTolerance);
  KernelRuns doubles = FiveNumbers("RandomStandardNormal", DType::kDouble);
  EXPECT_NEAR(doubles.NextValues<double>()[4], -0.5074662822323086, 1e-12);
  KernelRuns halves = FiveNumbers("RandomStandardNormal", DType::kHalf);
  EXPECT_EQ(float(halves.NextValues<Half>()[4]), 0.53955078125f);
}

TEST(TruncatedNormal, GivesTensorFlowsNumbers) {
  KernelRuns floats = FiveNumbers("TruncatedNormal", DType::kFloat);
  EXPECT_NEAR(floats.NextValues<float>()[4], -1.4650040864944458,
              kNormalTolerance);
  EXPECT_NEAR(floats.NextValues<float>()[4], 0.7145650386810303,
              kNormalTolerance);
  KernelRuns doubles = FiveNumbers("TruncatedNormal", DType::kDouble);
  EXPECT_NEAR(doubles.NextValues<double>()[4], -1.052260730714152, 1e-12);
  EXPECT_NEAR(doubles.NextValues<double>()[4], 0.38348430935031663, 1e-12);
  KernelRuns halves = FiveNumbers("TruncatedNormal", DType::kHalf);
  EXPECT_EQ(float(halves.NextValues<Half>()[4]), -1.46484375f);
}

TEST(RandomUniformInt, GivesTensorFlowsNumbers) {
  KernelRuns ints("RandomUniformInt", {{"seed", 42}, {"seed2", 7}},
                  {Tensor::Vector<int32_t>({7}), Tensor::Scalar<int32_t>(0),
                   Tensor::Scalar<int32_t>(10)});
  EXPECT_THAT(ints.NextValues<int32_t>(), ElementsAre(6, 8, 9, 3, 2, 8, 7));
  EXPECT_THAT(ints.NextValues<int32_t>(), ElementsAre(6, 8, 7, 7, 7, 2, 3));
  KernelRuns wide(
      "RandomUniformInt", {{"seed", 42}, {"seed2", 7}},
      {Tensor::Vector<int32_t>({5}), Tensor::Scalar<int32_t>(INT32_MIN),
       Tensor::Scalar<int32_t>(INT32_MAX)});
  EXPECT_THAT(
      wide.NextValues<int32_t>(),
      ElementsAre(-403804372, 1700008140, -327235019, -713844525, 1709041984));
  KernelRuns longs("RandomUniformInt", {{"seed", 42}, {"seed2", 7}},
                   {Tensor::Vector<int32_t>({5}), Tensor::Scalar<int64_t>(0),
                    Tensor::Scalar<int64_t>(1ll << 60)});
  EXPECT_THAT(
      longs.NextValues<int64_t>(),
      ElementsAre(383950338336386860, 392825626337135157, 4329425380174144,
                  904898316885424369, 187798064528494));
}

TEST(RandomUniformInt, RefusesAnEmptyRangeUnlessNothingIsDrawn) {
  const auto run = [](int32_t numbers) {
    return KernelRuns("RandomUniformInt", {},
                      {Tensor::Vector<int32_t>({numbers}),
                       Tensor::Scalar<int32_t>(5), Tensor::Scalar<int32_t>(5)})
        .Next()
        .status();
  };
  EXPECT_THAT(run(2), StatusIs(absl::StatusCode::kInvalidArgument,
                               "Need minval < maxval, got 5 >= 5"));
  SLUICE_EXPECT_OK(run(0));
}

TEST(RandomUniformInt, RefusesBoundsThatAreNoScalars) {
  EXPECT_THAT(
      KernelRuns("RandomUniformInt", {},
                 {Tensor::Vector<int32_t>({2}), Tensor::Vector<int32_t>({1}),
                  Tensor::Scalar<int32_t>(5)})
          .Next()
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("minval must be 0-D, got shape [1]")));
}

}  // namespace
}  // namespace sluice
