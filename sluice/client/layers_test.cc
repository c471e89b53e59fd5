#include "sluice/client/layers.h"

#include "sluice/client/collections.h"
#include "sluice/client/gradients.h"
#include "sluice/client/initializers.h"
#include "sluice/client/math.h"
#include "sluice/client/operators.h"
#include "sluice/client/ops.h"
#include "sluice/client/testing/graph_fixture.h"
#include "sluice/train/initialize.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Layers : public GraphFixture {
 protected:
  void InitializeVariables() {
    if (session_ == nullptr) session_ = *Session::Create({}, graph_);
    const absl::Status status =
        session_->Run(GlobalVariablesInitializer(root_));
    ASSERT_TRUE(status.ok()) << status;
  }
};

TEST_F(Layers, DenseMultipliesAddsAndActivates) {
  const Output y =
      layers::Dense(root_, {{1.0f, 2.0f}, {3.0f, -4.0f}}, 2,
                    {.activation = ops::Relu,
                     .kernel_initializer = OnesInitializer({2, 2}),
                     .bias_initializer = ConstantInitializer(0.5, {2})});
  ASSERT_TRUE(root_.ok()) << root_.status();
  EXPECT_EQ(y.node->name(), "dense/Relu");
  InitializeVariables();
  EXPECT_THAT(Values<float>(y), ElementsAre(3.5, 3.5, 0, 0));
}

TEST_F(Layers, DenseLayersHaveVariablesOfTheirOwn) {
  const Output x = ops::Placeholder(root_, DType::kFloat, {.shape = {-1, 3}});
  const Output hidden = layers::Dense(root_, x, 4);
  const Output y =
      layers::Dense(root_.Named("out"), hidden, 1, {.use_bias = false});
  ASSERT_TRUE(root_.ok()) << root_.status();
  EXPECT_EQ(ShapeOf(y).DebugString(), "[?,1]");
  std::vector<std::string> names;
  std::vector<Output> refs;
  for (const Variable& variable : TrainableVariables(graph_)) {
    names.push_back(variable.name());
    refs.push_back(variable.ref());
  }
  EXPECT_THAT(names, ElementsAre("dense/kernel", "dense/bias", "out/kernel"));
  for (const Output& gradient : Gradients(root_, {y}, refs)) {
    EXPECT_TRUE(gradient);
  }
}

TEST_F(Layers, DenseNeedsToKnowTheNumberOfColumns) {
  layers::Dense(root_, ops::Placeholder(root_, DType::kFloat), 2);
  EXPECT_THAT(root_.status().message(),
              HasSubstr("known number of columns, got Placeholder:0"));
}

TEST_F(Layers, VariablesStandForTheirValueInExpressions) {
  const Variable w(root_.Named("w"), 3.0f);
  const Output y = 2 * w + w * w - ops::Neg(root_, w);
  InitializeVariables();
  EXPECT_EQ(Scalar<float>(y), 18);
  const std::vector<Output> dw = Gradients(root_, {y}, {w, w.ref()});
  EXPECT_EQ(Scalar<float>(dw[0]), 9);
  EXPECT_EQ(Scalar<float>(dw[1]), 9);
}

TEST_F(Layers, VariablesAreAssignedLiterals) {
  for (const bool resource : {false, true}) {
    const Variable w(root_, 3.0f, {.resource = resource});
    InitializeVariables();
    EXPECT_EQ(Scalar<float>(w.AssignAdd(root_, 2)), 5);
    EXPECT_EQ(Scalar<float>(w.AssignSub(root_, 0.5)), 4.5);
    EXPECT_EQ(Scalar<float>(w.Assign(root_, 1)), 1);
  }
}

TEST_F(Layers, AVariableThatIsNoneCanBeUsedUntilTheErrorIsSeen) {
  const Variable w(root_.Named("not a name"), 1.0f);
  EXPECT_FALSE(w.AssignAdd(root_, 1));
  EXPECT_FALSE(2 * w);
  EXPECT_THAT(Eval(w).status().message(), HasSubstr("not a name"));
}

}  // namespace
}  // namespace sluice
