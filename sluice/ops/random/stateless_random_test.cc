#include "sluice/kernel/testing/op_test.h"

// Expected numbers are TensorFlow's.

namespace sluice {
namespace {

Tensor StatelessDraw(std::string_view op, DType dtype, int32_t n, Tensor seed) {
  OpTest test(op);
  test.AddInput<int32_t>({1}, {n}).AddInput(std::move(seed));
  test.Attr("dtype", dtype);
  const absl::Status status = test.Run();
  EXPECT_TRUE(status.ok()) << status;
  return status.ok() ? test.output(0) : Tensor();
}

TEST(StatelessRandom, GivesTensorFlowsNumbers) {
  const Tensor seed = Tensor::Vector<int32_t>({1, 2});
  ExpectClose(StatelessDraw("StatelessRandomUniform", DType::kFloat, 3, seed),
              Tensor::Vector<float>({0.8440604209899902f, 0.19204533100128174f,
                                     0.9962232112884521f}),
              0);
  ExpectClose(StatelessDraw("StatelessRandomUniform", DType::kDouble, 3, seed),
              Tensor::Vector<double>({0.7524837538451801, 0.9697857725627486,
                                      0.17592233912897481}),
              0);
  ExpectClose(StatelessDraw("StatelessRandomNormal", DType::kFloat, 3, seed),
              Tensor::Vector<float>({0.544110119342804f, 0.20738030970096588f,
                                     0.0735643208026886f}),
              2e-6);
  ExpectClose(
      StatelessDraw("StatelessTruncatedNormal", DType::kDouble, 3, seed),
      Tensor::Vector<double>(
          {-0.1423118100189212, 0.7406072461585091, -0.552387756244845}),
      1e-12);
}

TEST(StatelessRandom, UsesAllBitsOfTheSeed) {
  const Tensor seed = Tensor::Vector<int64_t>({-5, 1099511627776});
  ExpectClose(StatelessDraw("StatelessRandomUniform", DType::kFloat, 3, seed),
              Tensor::Vector<float>({0.9402140378952026f, 0.5625103712081909f,
                                     0.019165396690368652f}),
              0);
}

TEST(StatelessRandomUniformInt, GivesTensorFlowsNumbers) {
  OpTest op("StatelessRandomUniformInt");
  op.AddInput<int32_t>({1}, {5}).AddInput<int32_t>({2}, {1, 2});
  op.AddInput(Tensor::Scalar<int64_t>(-5));
  op.AddInput(Tensor::Scalar<int64_t>(1ll << 40));
  SLUICE_ASSERT_OK(op.Run());
  ExpectClose(op.output(0), Tensor::Vector<int64_t>(
                                {1036159160131, 635312348566, 846040150269,
                                 267342743203, 753202267753}));
}

TEST(StatelessRandom, RefusesASeedThatIsNoPair) {
  OpTest op("StatelessRandomUniform");
  op.AddInput<int32_t>({1}, {5}).AddInput<int32_t>({3}, {1, 2, 3});
  EXPECT_THAT(op.Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                 "seed must have shape [2], not [3]"));
}

TEST(StatelessRandom, InfersItsShapeAndChecksTheSeeds) {
  EXPECT_EQ(
      InferredShape("StatelessRandomNormal", {"[2]", "[2]"}, {}, DType::kInt32),
      "[?,?]");
  EXPECT_THAT(
      InferredShape("StatelessRandomNormal", {"[2]", "[3]"}, {}, DType::kInt32),
      testing::HasSubstr("Dimension must be 2 but is 3"));
}

}  // namespace
}  // namespace sluice
