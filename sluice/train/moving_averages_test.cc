#include "sluice/train/moving_averages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "sluice/client/collections.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/session/session.h"
#include "sluice/train/arithmetic.h"
#include "sluice/train/initialize.h"

namespace sluice {
namespace {
namespace moving_averages_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kUpdates = 15;

std::vector<double> Recorded(const std::string& name) {
  std::ifstream file("tests/golden/moving_averages.txt");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name + " ")) continue;
    std::istringstream numbers(line.substr(name.size()));
    std::vector<double> values;
    for (double x; numbers >> x;) values.push_back(x);
    return values;
  }
  ADD_FAILURE() << "no record of " << name;
  return {};
}

// What tests/golden/moving_averages.txt was recorded from: x grows, then the
// averages move.
struct Growing {
  explicit Growing(bool resource)
      : x(scope.Named("x"), Tensor::Vector<float>({1, -2, 0}),
          {.resource = resource}),
        n(scope.Named("n"), Tensor::Scalar<int32_t>(0),
          {.trainable = false, .resource = resource}),
        grow{x.AssignAdd(scope, {1.0f, 0.5f, -0.25f}), n.AssignAdd(scope, 1)},
        target(Times(scope.Named("target"), x, 2.0f)) {}

  void Expect(const std::string& name, Node* apply, Output average) {
    Node* init = GlobalVariablesInitializer(scope);
    ASSERT_TRUE(scope.ok()) << scope.status();
    auto session = *Session::Create({}, graph);
    SLUICE_ASSERT_OK(session->Run({}, {}, {init}, nullptr));
    const std::vector<double> golden = Recorded(name);
    ASSERT_EQ(golden.size(), 3u * (kUpdates + 1));
    for (int i = 0; i <= kUpdates; ++i) {
      std::vector<Tensor> now;
      if (i > 0) {
        SLUICE_ASSERT_OK(session->Run({}, grow, {}, &now));
        SLUICE_ASSERT_OK(session->Run({}, {}, {apply}, nullptr));
      }
      SLUICE_ASSERT_OK(session->Run({}, {average}, {}, &now));
      for (int j = 0; j < 3; ++j) {
        EXPECT_NEAR(now[0].data<float>()[j], golden[3 * i + j], 1e-5)
            << name << " after " << i << " updates";
      }
    }
  }

  Graph graph;
  Scope scope{graph};
  Variable x, n;
  std::vector<Output> grow;
  Output target;
};

std::string Kind(bool resource) { return resource ? "_resource" : "_ref"; }

TEST(MovingAverages, FollowAVariableAsInTensorFlow) {
  for (const bool resource : {false, true}) {
    Growing g(resource);
    ExponentialMovingAverage ema(0.9);
    Node* apply = ema.Apply(g.scope);
    ASSERT_NE(apply, nullptr) << g.scope.status();
    EXPECT_EQ(apply->name(), "ExponentialMovingAverage");
    EXPECT_EQ(ema.average(g.x).name(), "x/ExponentialMovingAverage");
    EXPECT_THAT(
        Collections::Of(g.graph).variables(keys::kMovingAverageVariables),
        ElementsAre(g.x));
    g.Expect("plain" + Kind(resource), apply, ema.average(g.x));
  }
}

TEST(MovingAverages, MoveFasterWhileThereAreFewUpdates) {
  for (const bool resource : {false, true}) {
    Growing g(resource);
    ExponentialMovingAverage ema(0.9, {.num_updates = g.n});
    Node* apply = ema.Apply(g.scope, {g.x});
    g.Expect("num_updates" + Kind(resource), apply, ema.average(g.x));
  }
}

TEST(MovingAverages, FollowATensorFromZero) {
  for (const bool resource : {false, true}) {
    for (const bool zero_debias : {false, true}) {
      Growing g(resource);
      ExponentialMovingAverage ema(0.9, {.zero_debias = zero_debias});
      Node* apply = ema.ApplyToTensors(g.scope, {g.target});
      EXPECT_EQ(ema.average(g.target).name(),
                "target/ExponentialMovingAverage");
      g.Expect((zero_debias ? "zero_debias_tensor" : "plain_tensor") +
                   Kind(resource),
               apply, ema.average(g.target));
    }
  }
}

TEST(MovingAverages, AreRestoredInPlaceOfTheirVariables) {
  Growing g(false);
  const Variable other(g.scope.Named("other"), 1.0f, {.trainable = false});
  ExponentialMovingAverage ema(0.9);
  ema.Apply(g.scope, {g.x});
  const std::multimap<std::string, Variable> restored =
      ema.variables_to_restore(g.graph);
  EXPECT_EQ(restored.find("x/ExponentialMovingAverage")->second, g.x);
  EXPECT_EQ(restored.find("other")->second, other);
  EXPECT_FALSE(restored.contains("x"));
}

TEST(MovingAverages, AreOfFloatingPointNumbers) {
  Growing g(false);
  ExponentialMovingAverage ema(0.9);
  EXPECT_EQ(ema.Apply(g.scope, {g.n}), nullptr);
  EXPECT_THAT(
      g.scope.status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("The variables must be half, float, or double: n")));
}

}  // namespace moving_averages_test
}  // namespace
}  // namespace sluice
