#include "sluice/client/operators.h"

#include "sluice/client/gradients.h"
#include "sluice/client/math.h"
#include "sluice/client/ops.h"
#include "sluice/client/testing/graph_fixture.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Operators = GraphFixture;

TEST_F(Operators, CombineOutputsAndLiterals) {
  const Output x = ops::Const(root_, {1.0f, 4.0f});
  EXPECT_THAT(Values<float>((x + x) * 2 - 1), ElementsAre(3, 15));
  EXPECT_THAT(Values<float>(1 - x), ElementsAre(0, -3));
  EXPECT_THAT(Values<float>(3.0 / x), ElementsAre(3, 0.75));
  EXPECT_THAT(Values<float>(-x % 3), ElementsAre(2, 2));
  EXPECT_THAT(Values<float>(x * Tensor::Vector<float>({10, 100})),
              ElementsAre(10, 400));
  EXPECT_THAT(Values<float>(x + Literal({1, 2})), ElementsAre(2, 6));
}

TEST_F(Operators, DivideIntegersAsNumbers) {
  const Output x = ops::Const(root_, {1, 3});
  EXPECT_THAT(Values<double>(x / 2), ElementsAre(0.5, 1.5));
  EXPECT_THAT(Values<double>(6 / x), ElementsAre(6, 2));
}

TEST_F(Operators, JoinStrings) {
  const Output x = ops::Const(root_, "slu");
  EXPECT_EQ(Scalar<std::string>(x + "ice"), "sluice");
}

TEST_F(Operators, AreNamedAsInPython) {
  const Output x = ops::Const(root_, 1.0f);
  EXPECT_EQ((x + 1.0f).node->name(), "add");
  EXPECT_NE(graph_.FindNode("add/y"), nullptr);
  EXPECT_EQ((2.0f * x).node->name(), "mul");
  EXPECT_NE(graph_.FindNode("mul/x"), nullptr);
  EXPECT_EQ((x - x).node->name(), "sub");
  EXPECT_EQ((x / x).node->name(), "truediv");
  EXPECT_EQ((x % x).node->name(), "mod");
  EXPECT_EQ((-x).node->name(), "Neg");
}

TEST_F(Operators, StandUnderTheScopeThatIsEntered) {
  const Output x = ops::Const(root_, 1.0f);
  {
    const With ps(root_.NameScope("model").Device("/job:ps/task:0"));
    const Output y = x + 1.0f;
    EXPECT_EQ(y.node->name(), "model/add");
    EXPECT_EQ(y.node->device(), "/job:ps/task:0");
    EXPECT_EQ(ops::Neg(ps, y).node->name(), "model/Neg");
    EXPECT_EQ(Scope(graph_).context().name_scope, "model/");
  }
  EXPECT_EQ((x + 1.0f).node->device(), "");
}

TEST_F(Operators, ReportTypesThatDoNotFit) {
  const Output x = ops::Const(root_, 1.0f);
  const Output bad = x + ops::Const(root_, 2);
  EXPECT_FALSE(bad);
  EXPECT_FALSE(bad * 2);
  EXPECT_FALSE(2 / bad);
  EXPECT_THAT(Eval(bad * 2).status().message(),
              HasSubstr("'add' (op: 'AddV2'): Input 'y'"));
}

TEST_F(Operators, HaveGradients) {
  const Output x = ops::Const(root_, {1.0f, 2.0f, 3.0f});
  const Output y = ops::ReduceSum(root_, x * x / 2 + 3 * x - 1);
  const std::vector<Output> dx = Gradients(root_, {y}, {x});
  ASSERT_EQ(dx.size(), 1);
  EXPECT_THAT(Values<float>(dx[0]), ElementsAre(4, 5, 6));
}

TEST_F(Operators, GradientsOfRowsAreDense) {
  const Output table = ops::Const(root_, {{1.0f}, {2.0f}, {3.0f}});
  const Output rows = ops::GatherV2(root_, table, {2, 2}, 0);
  const Output free = ops::Const(root_, 1.0f);
  const std::vector<Output> dx =
      Gradients(root_, {ops::ReduceSum(root_, rows * 2)}, {table, free});
  EXPECT_THAT(Values<float>(dx[0]), ElementsAre(0, 0, 4));
  EXPECT_FALSE(dx[1]);
}

TEST_F(Operators, GradientsThatDoNotExistFailTheScope) {
  const Output x = ops::Const(root_, Tensor::Scalar(std::complex<float>(1, 2)));
  EXPECT_FALSE(Gradients(root_, {x * x}, {x})[0]);
  EXPECT_THAT(Eval(x).status().message(),
              HasSubstr("Gradients of complex tensors"));
}

}  // namespace
}  // namespace sluice
