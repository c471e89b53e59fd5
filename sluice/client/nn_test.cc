#include "sluice/client/nn.h"

#include "sluice/client/gradients.h"
#include "sluice/client/losses.h"
#include "sluice/client/math.h"
#include "sluice/client/ops.h"
#include "sluice/client/testing/graph_fixture.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;

using Nn = GraphFixture;

TEST_F(Nn, CrossEntropyIsTheNegativeLogOfTheTrueClass) {
  const Output logits = ops::Const(root_, {{0.0f, 0.0f}, {0.0f, 1.0f}});
  const float first = std::log(2.0f);
  const float second = std::log(1 + std::exp(-1.0f));
  EXPECT_THAT(Values<float>(nn::SparseSoftmaxCrossEntropyWithLogits(
                  root_, {0, 1}, logits)),
              ElementsAre(FloatNear(first, 1e-6), FloatNear(second, 1e-6)));
  EXPECT_THAT(Values<float>(nn::SoftmaxCrossEntropyWithLogits(
                  root_, {{1, 0}, {0, 1}}, logits)),
              ElementsAre(FloatNear(first, 1e-6), FloatNear(second, 1e-6)));
  EXPECT_NEAR(
      Scalar<float>(losses::SparseSoftmaxCrossEntropy(root_, {0, 1}, logits)),
      (first + second) / 2, 1e-6);
}

TEST_F(Nn, CrossEntropyKeepsTheOuterDimensions) {
  const Output logits = ops::Zeros(root_, {2, 3, 4});
  const Output labels = ops::Zeros(root_, {2, 3}, DType::kInt32);
  const Tensor sparse =
      *Eval(nn::SparseSoftmaxCrossEntropyWithLogits(root_, labels, logits));
  EXPECT_EQ(sparse.shape(), (Shape{2, 3}));
  const Tensor dense = *Eval(nn::SoftmaxCrossEntropyWithLogits(
      root_, ops::Ones(root_, {2, 3, 4}), logits));
  EXPECT_EQ(dense.shape(), (Shape{2, 3}));
}

TEST_F(Nn, SigmoidCrossEntropyDoesNotOverflow) {
  const Output loss = nn::SigmoidCrossEntropyWithLogits(root_, {0, 1, 1},
                                                        {200.0f, 0.0f, 200.0f});
  EXPECT_THAT(Values<float>(loss),
              ElementsAre(200, FloatNear(std::log(2.0f), 1e-6), 0));
}

TEST_F(Nn, DropoutKeepsTheMean) {
  const Output x = ops::Ones(root_, {10000});
  EXPECT_NEAR(
      Scalar<float>(ops::ReduceMean(root_, nn::Dropout(root_, x, 0.25f))), 1,
      0.1);
  nn::Dropout(root_, x, 1.5f);
  EXPECT_THAT(root_.status().message(), HasSubstr("rate must be in [0, 1)"));
}

TEST_F(Nn, LossesAreMeans) {
  const Output x = ops::Const(root_, {1.0f, 5.0f});
  EXPECT_EQ(Scalar<float>(losses::MeanSquaredError(root_, {2, 3}, x)), 2.5);
  EXPECT_EQ(Scalar<float>(losses::AbsoluteDifference(root_, {2, 3}, x)), 1.5);
  const Output loss = losses::MeanSquaredError(root_, {2, 3}, x);
  EXPECT_THAT(Values<float>(Gradients(root_, {loss}, {x})[0]),
              ElementsAre(-1, 2));
}

TEST_F(Nn, AMissingInputIsAnError) {
  EXPECT_FALSE(nn::Dropout(root_, Output(), 0.5f));
  EXPECT_THAT(root_.status().message(), HasSubstr("'x' is missing"));
}

}  // namespace
}  // namespace sluice
