#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "sluice/client/collections.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/session/session.h"
#include "sluice/train/initialize.h"
#include "sluice/train/optimizers.h"
#include "sluice/train/weight_decay.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// `step` counts the updates.
using MakeFn = std::function<std::unique_ptr<Optimizer>(const Variable& step)>;

struct OptimizerCase {
  std::string config;  // In tests/golden/optimizer_traces.txt.
  MakeFn make;
  std::vector<std::string> state;  // Names of its variables.
};

template <typename T, typename... Args>
MakeFn Make(Args... args) {
  return [=](const Variable&) { return std::make_unique<T>(args...); };
}

std::vector<OptimizerCase> OptimizerCases() {
  return {
      {"sgd", Make<GradientDescentOptimizer>(0.1), {}},
      {"momentum", Make<MomentumOptimizer>(0.1, 0.9), {"v/Momentum"}},
      {"momentum_nesterov",
       Make<MomentumOptimizer>(0.1, 0.9, true),
       {"v/Momentum"}},
      {"adagrad", Make<AdagradOptimizer>(0.1), {"v/Adagrad"}},
      {"adagrad_init", Make<AdagradOptimizer>(0.1, 1.0), {"v/Adagrad"}},
      {"adadelta",
       Make<AdadeltaOptimizer>(1.0),
       {"v/Adadelta", "v/Adadelta_1"}},
      {"adadelta_params",
       Make<AdadeltaOptimizer>(0.5, 0.9, 1e-6),
       {"v/Adadelta", "v/Adadelta_1"}},
      {"adam",
       Make<AdamOptimizer>(),
       {"beta1_power", "beta2_power", "v/Adam", "v/Adam_1"}},
      {"adam_params",
       Make<AdamOptimizer>(AdamOptions{.learning_rate = 0.05,
                                       .beta1 = 0.8,
                                       .beta2 = 0.99,
                                       .epsilon = 1e-4}),
       {"beta1_power", "beta2_power", "v/Adam", "v/Adam_1"}},
      {"rmsprop", Make<RmsPropOptimizer>(0.01), {"v/RMSProp", "v/RMSProp_1"}},
      {"rmsprop_momentum",
       Make<RmsPropOptimizer>(
           0.01,
           RmsPropOptions{.decay = 0.8, .momentum = 0.5, .epsilon = 1e-6}),
       {"v/RMSProp", "v/RMSProp_1"}},
      {"rmsprop_centered",
       Make<RmsPropOptimizer>(
           0.01, RmsPropOptions{.momentum = 0.3, .centered = true}),
       {"v/RMSProp", "v/RMSProp_1", "v/RMSProp_2"}},
      {"ftrl", Make<FtrlOptimizer>(0.1), {"v/Ftrl", "v/Ftrl_1"}},
      {"ftrl_l1_l2",
       Make<FtrlOptimizer>(0.1, FtrlOptions{.l1 = 0.05, .l2 = 0.1}),
       {"v/Ftrl", "v/Ftrl_1"}},
      {"ftrl_shrinkage",
       Make<FtrlOptimizer>(
           0.1, FtrlOptions{.l1 = 0.05, .l2 = 0.1, .l2_shrinkage = 0.2}),
       {"v/Ftrl", "v/Ftrl_1"}},
      {"ftrl_power",
       Make<FtrlOptimizer>(0.1, FtrlOptions{.learning_rate_power = -0.3,
                                            .initial_accumulator_value = 0.2}),
       {"v/Ftrl", "v/Ftrl_1"}},
      {"adam_locking",
       Make<AdamOptimizer>(
           AdamOptions{.learning_rate = 0.05, .use_locking = true}),
       {"beta1_power", "beta2_power", "v/Adam", "v/Adam_1"}},
      {"adagrad_da",
       [](const Variable& step) {
         return std::make_unique<AdagradDAOptimizer>(
             0.1, step, ProximalOptions{.l1 = 0.01, .l2 = 0.02});
       },
       {"v/AdagradDA", "v/AdagradDA_1"}},
      {"proximal_adagrad",
       Make<ProximalAdagradOptimizer>(0.1,
                                      ProximalOptions{.l1 = 0.05, .l2 = 0.1}),
       {"v/ProximalAdagrad"}},
      {"proximal_sgd",
       Make<ProximalGradientDescentOptimizer>(
           0.1, ProximalOptions{.l1 = 0.05, .l2 = 0.1}),
       {}},
      {"proximal_sgd_plain", Make<ProximalGradientDescentOptimizer>(0.1), {}},
      {"contrib_adamax",
       Make<AdaMaxOptimizer>(0.05),
       {"beta1_power", "v/AdaMax", "v/AdaMax_1"}},
      {"contrib_adamw",
       Make<AdamWOptimizer>(
           0.01, AdamOptions{.learning_rate = 0.05, .name = "AdamW"}),
       {"beta1_power", "beta2_power", "v/AdamW", "v/AdamW_1"}},
      {"contrib_add_sign",
       Make<AddSignOptimizer>(SignOptions{.learning_rate = 0.05}),
       {"v/AddSignOptimizer"}},
      {"contrib_lazy_adam",
       Make<LazyAdamOptimizer>(0.05),
       {"beta1_power", "beta2_power", "v/Adam", "v/Adam_1"}},
      {"contrib_momentumw",
       Make<MomentumWOptimizer>(0.01, 0.05, 0.9),
       {"v/MomentumW"}},
      {"contrib_nadam",
       Make<NadamOptimizer>(0.05),
       {"beta1_power", "beta2_power", "v/Adam", "v/Adam_1"}},
      {"contrib_power_sign",
       Make<PowerSignOptimizer>(SignOptions{.learning_rate = 0.05}),
       {"v/PowerSignOptimizer"}},
  };
}

// The numbers of a line, by its words.
const std::map<std::string, std::vector<double>>& Traces() {
  static const auto* traces = [] {
    auto* all = new std::map<std::string, std::vector<double>>;
    std::ifstream file("tests/golden/optimizer_traces.txt");
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      const int keys = line.starts_with("input") ? 2 : 4;
      std::string key, word;
      for (int i = 0; i < keys && words >> word; ++i) key += word + " ";
      for (double number; words >> number;) (*all)[key].push_back(number);
    }
    return all;
  }();
  return *traces;
}

template <typename T>
Tensor Numbers(const Shape& shape, const std::string& key, int64_t from) {
  const std::vector<double>& all = Traces().at(key);
  Tensor tensor(DTypeOf<T>::value, shape);
  for (int64_t i = 0; i < shape.size(); ++i) {
    tensor.mutable_data<T>()[i] = static_cast<T>(all[from + i]);
  }
  return tensor;
}

// Hyper-parameters are rounded to float32, whatever the variable's type.
template <typename T>
void ExpectClose(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.shape(), want.shape());
  for (int64_t i = 0; i < want.size(); ++i) {
    const double expected = want.data<T>()[i];
    ASSERT_NEAR(got.data<T>()[i], expected,
                2e-6 * std::max(1.0, std::abs(expected)));
  }
}

constexpr int kSteps = 20;
constexpr int kRows = 4;  // Of a sparse gradient.

template <typename T>
void Train(const OptimizerCase& c, bool sparse, bool resource) {
  SCOPED_TRACE(StrCat(c.config, sparse ? " sparse" : " dense",
                      resource ? " resource" : " ref"));
  Graph graph;
  const Scope scope(graph);
  const Shape shape = sparse ? Shape({6, 2}) : Shape({5});
  const Variable v(
      scope.Named("v"),
      Numbers<T>(shape, sparse ? "input sparse_init " : "input dense_init ", 0),
      {.resource = resource});
  const Output values =
      scope.Add("Placeholder", {}, {{"dtype", DTypeOf<T>::value}});
  const Output rows = scope.Add("Placeholder", {}, {{"dtype", DType::kInt64}});
  const Variable step(scope.Named("step"), Tensor::Scalar<int64_t>(0),
                      {.trainable = false});
  const std::unique_ptr<Optimizer> optimizer = c.make(step);
  const Output all = scope.Named("shape").Ints({6, 2});
  const Grad grad = sparse ? Grad::Slices(values, rows, all) : Grad(values);
  Node* train = optimizer->ApplyGradients(scope, {{grad, v}}, step);
  Node* init = GlobalVariablesInitializer(scope);
  ASSERT_TRUE(scope.ok()) << scope.status();
  std::vector<std::string> state;
  for (const Variable& variable : optimizer->variables()) {
    state.push_back(variable.name());
  }
  EXPECT_EQ(state, c.state);

  auto session = *Session::Create({}, graph);
  SLUICE_ASSERT_OK(session->Run({}, {}, {init}, nullptr));
  const Shape grad_shape = sparse ? Shape({kRows, 2}) : shape;
  const std::string type = sizeof(T) == 4 ? "float32" : "float64";
  for (int i = 0; i < kSteps; ++i) {
    std::vector<Session::Feed> feeds = {
        {values,
         Numbers<T>(grad_shape,
                    sparse ? "input sparse_values " : "input dense_grads ",
                    i * grad_shape.size())}};
    if (sparse) {
      feeds.emplace_back(
          rows, Numbers<int64_t>({kRows}, "input sparse_indices ", i * kRows));
    }
    SLUICE_ASSERT_OK(session->Run(feeds, {}, {train}, nullptr));
    const std::string key = StrCat(c.config, sparse ? " sparse " : " dense ",
                                   type, " ", i + 1, " ");
    if (!Traces().contains(key)) continue;
    std::vector<Tensor> now;
    SLUICE_ASSERT_OK(session->Run({}, {v.value()}, {}, &now));
    ExpectClose<T>(now[0], Numbers<T>(shape, key, 0));
  }
  std::vector<Tensor> count;
  SLUICE_ASSERT_OK(session->Run({}, {step.value()}, {}, &count));
  EXPECT_EQ(count[0].scalar<int64_t>(), kSteps);
}

TEST(Optimizers, StepAsTensorFlowsDoAndKeepTheirStateUnderItsNames) {
  for (const OptimizerCase& c : OptimizerCases()) {
    for (const bool sparse : {false, true}) {
      for (const bool resource : {false, true}) {
        const std::string kind = sparse ? " sparse " : " dense ";
        ASSERT_TRUE(Traces().contains(c.config + kind + "float32 20 "))
            << c.config << kind;
        if (sparse && resource && c.config.ends_with("_sign")) continue;
        Train<float>(c, sparse, resource);
        Train<double>(c, sparse, resource);
      }
    }
  }
}

// A loss with gradient 2(w - 3).
struct Quadratic {
  Graph graph;
  Scope scope{graph};
  Variable w{scope.Named("w"), Tensor::Scalar(0.0f)};
  Output loss =
      scope.Add("Square", {scope.Add("Sub", {w, scope.Scalar(3.0f)})});
};

TEST(Optimizers, MinimizeALossOfTheTrainableVariables) {
  Quadratic q;
  const Variable step(q.scope.Named("step"), Tensor::Scalar<int32_t>(0));
  GradientDescentOptimizer optimizer(0.25);
  Node* train = optimizer.Minimize(q.scope, q.loss, {.global_step = step});
  Node* init = GlobalVariablesInitializer(q.scope);
  ASSERT_TRUE(q.scope.ok()) << q.scope.status();
  EXPECT_EQ(train->name(), "GradientDescent");
  EXPECT_THAT(Collections::Of(q.graph).nodes(keys::kTrainOp),
              ElementsAre(train));
  auto session = *Session::Create({}, q.graph);
  SLUICE_ASSERT_OK(session->Run({}, {}, {init}, nullptr));
  for (int i = 0; i < 2; ++i) {
    SLUICE_ASSERT_OK(session->Run({}, {}, {train}, nullptr));
  }
  std::vector<Tensor> now;
  SLUICE_ASSERT_OK(session->Run({}, {q.w, step}, {}, &now));
  EXPECT_EQ(now[0].scalar<float>(), 2.25f);
  EXPECT_EQ(now[1].scalar<int32_t>(), 2);
}

TEST(Optimizers, TakeATensorAsLearningRate) {
  Quadratic q;
  const Output rate = q.scope.Named("rate").Scalar(0.5f);
  Node* train = GradientDescentOptimizer(rate).Minimize(q.scope, q.loss);
  ASSERT_NE(train, nullptr) << q.scope.status();
  Node* update =
      q.graph.FindNode("GradientDescent/update_w/ApplyGradientDescent");
  ASSERT_NE(update, nullptr);
  EXPECT_EQ(update->input(1), rate);
}

TEST(Optimizers, RefuseALossThatNoVariableReaches) {
  Quadratic q;
  const Output other = q.scope.Named("other").Scalar(1.0f);
  EXPECT_EQ(AdamOptimizer(0.1).Minimize(q.scope, other), nullptr);
  EXPECT_THAT(q.scope.status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("No gradients provided for any variable")));
}

TEST(Optimizers, RefuseAGraphWithoutVariables) {
  Graph graph;
  const Scope scope(graph);
  EXPECT_EQ(AdamOptimizer(0.1).Minimize(scope, scope.Scalar(1.0f)), nullptr);
  EXPECT_THAT(scope.status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                       "No variables to optimize."));
}

TEST(Optimizers, SayThatTheyCannotUpdateRowsBySignsOfAResourceVariable) {
  Graph graph;
  const Scope scope(graph);
  const Variable v(scope.Named("v"), ZerosInitializer({3}), {.resource = true});
  const Grad grad = Grad::Slices(scope.Const(Tensor::Vector<float>({1})),
                                 scope.Ints({0}), scope.Ints({3}));
  EXPECT_EQ(AddSignOptimizer().ApplyGradients(scope, {{grad, v}}), nullptr);
  EXPECT_THAT(scope.status(), StatusIs(absl::StatusCode::kUnimplemented,
                                       HasSubstr("resource variable v")));
}

TEST(Optimizers, RefuseParametersThatMakeNoSense) {
  {
    Quadratic q;
    ProximalAdagradOptimizer(0.1, {.initial_accumulator_value = -1})
        .Minimize(q.scope, q.loss);
    EXPECT_THAT(std::string(q.scope.status().message()),
                HasSubstr("initial_accumulator_value must be positive: -1"));
  }
  {
    Quadratic q;
    const Variable step(q.scope.Named("step"), Tensor::Scalar<int32_t>(0));
    AdagradDAOptimizer(0.1, step).Minimize(q.scope, q.loss);
    EXPECT_THAT(std::string(q.scope.status().message()),
                HasSubstr("a global step of type int64, got int32"));
  }
  {
    Quadratic q;
    AdagradOptimizer(0.1, 0.0).Minimize(q.scope, q.loss);
    EXPECT_THAT(std::string(q.scope.status().message()),
                HasSubstr("initial_accumulator_value must be positive: 0"));
  }
  {
    Quadratic q;
    FtrlOptimizer(0.1, {.l1 = -1}).Minimize(q.scope, q.loss);
    EXPECT_THAT(std::string(q.scope.status().message()),
                HasSubstr("l1_regularization_strength -1 needs to be positive "
                          "or zero"));
  }
}

}  // namespace
}  // namespace sluice
