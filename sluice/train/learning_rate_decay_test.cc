#include "sluice/train/learning_rate_decay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "sluice/kernel/testing/op_test.h"
#include "sluice/session/session.h"

namespace sluice {
namespace {
namespace learning_rate_decay_test {

using ::testing::HasSubstr;

// Call -> the rate at each step.
const std::map<std::string, std::vector<double>>& RecordedRates() {
  static const auto* recorded = [] {
    auto* all = new std::map<std::string, std::vector<double>>;
    std::ifstream file("tests/golden/schedules.txt");
    for (std::string line; std::getline(file, line);) {
      const size_t bar = line.find(" | ");
      std::istringstream numbers(line.substr(bar + 3));
      for (double x; numbers >> x;) (*all)[line.substr(0, bar)].push_back(x);
    }
    return all;
  }();
  return *recorded;
}

using Schedule = std::function<Output(const Scope&, Output step)>;

const std::map<std::string, Schedule>& Schedules() {
  using S = const Scope&;
  static const auto* all = new std::map<std::string, Schedule>{
      {"exponential_decay(0.1, step, 10, 0.9)",
       [](S s, Output n) { return ExponentialDecay(s, 0.1f, n, 10, 0.9f); }},
      {"exponential_decay(0.1, step, 10, 0.9, staircase=True)",
       [](S s, Output n) {
         return ExponentialDecay(s, 0.1f, n, 10, 0.9f, {.staircase = true});
       }},
      {"natural_exp_decay(0.1, step, 10, 0.5)",
       [](S s, Output n) { return NaturalExpDecay(s, 0.1f, n, 10, 0.5f); }},
      {"natural_exp_decay(0.1, step, 10, 0.5, staircase=True)",
       [](S s, Output n) {
         return NaturalExpDecay(s, 0.1f, n, 10, 0.5f, {.staircase = true});
       }},
      {"inverse_time_decay(0.1, step, 10, 0.5)",
       [](S s, Output n) { return InverseTimeDecay(s, 0.1f, n, 10, 0.5f); }},
      {"inverse_time_decay(0.1, step, 10, 0.5, staircase=True)",
       [](S s, Output n) {
         return InverseTimeDecay(s, 0.1f, n, 10, 0.5f, {.staircase = true});
       }},
      {"polynomial_decay(0.1, step, 30)",
       [](S s, Output n) { return PolynomialDecay(s, 0.1f, n, 30); }},
      {"polynomial_decay(0.1, step, 30, 0.01, power=2.0)",
       [](S s, Output n) {
         return PolynomialDecay(s, 0.1f, n, 30,
                                {.end_learning_rate = 0.01f, .power = 2});
       }},
      {"polynomial_decay(0.1, step, 30, 0.01, power=0.5, cycle=True)",
       [](S s, Output n) {
         return PolynomialDecay(
             s, 0.1f, n, 30,
             {.end_learning_rate = 0.01f, .power = 0.5f, .cycle = true});
       }},
      {"piecewise_constant(step, [10, 20, 40], [1.0, 0.5, 0.1, 0.05])",
       [](S s, Output n) {
         return PiecewiseConstant(s, n, {10, 20, 40}, {1, 0.5f, 0.1f, 0.05f});
       }},
      {"cosine_decay(0.1, step, 40)",
       [](S s, Output n) { return CosineDecay(s, 0.1f, n, 40); }},
      {"cosine_decay(0.1, step, 40, alpha=0.1)",
       [](S s, Output n) { return CosineDecay(s, 0.1f, n, 40, 0.1f); }},
      {"cosine_decay_restarts(0.1, step, 10)",
       [](S s, Output n) { return CosineDecayRestarts(s, 0.1f, n, 10); }},
      {"cosine_decay_restarts(0.1, step, 10, t_mul=1.5, m_mul=0.9, alpha=0.01)",
       [](S s, Output n) {
         return CosineDecayRestarts(
             s, 0.1f, n, 10, {.t_mul = 1.5f, .m_mul = 0.9f, .alpha = 0.01f});
       }},
      {"linear_cosine_decay(0.1, step, 40)",
       [](S s, Output n) { return LinearCosineDecay(s, 0.1f, n, 40); }},
      {"linear_cosine_decay(0.1, step, 40, num_periods=2, alpha=0.1, "
       "beta=0.01)",
       [](S s, Output n) {
         return LinearCosineDecay(
             s, 0.1f, n, 40, {.num_periods = 2, .alpha = 0.1f, .beta = 0.01f});
       }},
  };
  return *all;
}

// The rate at step `n`, of steps of type int64.
std::vector<float> Rates(const Schedule& schedule,
                         const std::vector<double>& steps) {
  Graph graph;
  const Scope scope(graph);
  const Output step =
      scope.Add("Placeholder", {},
                {{"dtype", DType::kInt64}, {"shape", PartialShape::Scalar()}});
  const Output rate = schedule(scope, step);
  EXPECT_TRUE(scope.ok()) << scope.status();
  if (!scope.ok()) return {};
  auto session = *Session::Create({}, graph);
  std::vector<float> rates;
  for (double n : steps) {
    std::vector<Tensor> now;
    const absl::Status run = session->Run(
        {{step, Tensor::Scalar(static_cast<int64_t>(n))}}, {rate}, {}, &now);
    EXPECT_TRUE(run.ok()) << run;
    rates.push_back(run.ok() ? now[0].scalar<float>() : NAN);
  }
  return rates;
}

TEST(LearningRateDecay, FollowsTheStepAsInTensorFlow) {
  const std::vector<double>& steps = RecordedRates().at("steps");
  EXPECT_EQ(RecordedRates().size(), Schedules().size() + 1);
  for (const auto& [call, schedule] : Schedules()) {
    const std::vector<double>& golden = RecordedRates().at(call);
    const std::vector<float> rates = Rates(schedule, steps);
    ASSERT_EQ(rates.size(), golden.size());
    for (size_t i = 0; i < rates.size(); ++i) {
      EXPECT_NEAR(rates[i], golden[i], 2e-6) << call << " at " << steps[i];
    }
  }
}

TEST(LearningRateDecay, IsNoisyWhereAskedTo) {
  const std::vector<float> rates =
      Rates([](const Scope& s,
               Output n) { return NoisyLinearCosineDecay(s, 0.1f, n, 40); },
            {1, 1, 1});
  EXPECT_NE(rates[0], rates[1]);
  const std::vector<float> quiet = Rates(
      [](const Scope& s, Output n) {
        return NoisyLinearCosineDecay(s, 0.1f, n, 40, {.initial_variance = 0});
      },
      {1, 20});
  const std::vector<double>& golden =
      RecordedRates().at("linear_cosine_decay(0.1, step, 40)");
  EXPECT_NEAR(quiet[0], golden[1], 2e-6);
  EXPECT_NEAR(quiet[1], golden[20], 2e-6);
}

TEST(LearningRateDecay, NeedsOneValueMoreThanBoundaries) {
  Graph graph;
  const Scope scope(graph);
  EXPECT_FALSE(PiecewiseConstant(scope, 1, {10}, {1}));
  EXPECT_THAT(
      scope.status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("boundaries should be 1 less than the length of")));
}

}  // namespace learning_rate_decay_test
}  // namespace
}  // namespace sluice
