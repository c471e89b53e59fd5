#include "sluice/ops/training/update.h"

#include <fstream>
#include <map>
#include <sstream>

#include "sluice/kernel/testing/op_test.h"
#include "sluice/ops/state/testing/op_session.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

// One optimizer with the values its Python class passes to the update op.
struct UpdateCase {
  std::string config;  // In the golden file.
  std::string op;      // Without "Apply".
  std::vector<double> slots;
  std::map<std::string, float> scalars;
  AttrMap attrs;
  bool sparse = true;
};

std::vector<UpdateCase> UpdateCases() {
  return {
      {"sgd", "GradientDescent", {}, {{"alpha", 0.1f}}, {}, false},
      {"momentum", "Momentum", {0}, {{"lr", 0.1f}, {"momentum", 0.9f}}, {}},
      {"momentum_nesterov",
       "Momentum",
       {0},
       {{"lr", 0.1f}, {"momentum", 0.9f}},
       {{"use_nesterov", true}}},
      {"adagrad", "Adagrad", {0.1}, {{"lr", 0.1f}}, {}},
      {"adagrad_init", "Adagrad", {1}, {{"lr", 0.1f}}, {}},
      {"adagrad_da",
       "AdagradDA",
       {0, 0.1},
       {{"lr", 0.1f}, {"l1", 0.01f}, {"l2", 0.02f}},
       {}},
      {"adadelta",
       "Adadelta",
       {0, 0},
       {{"lr", 1}, {"rho", 0.95f}, {"epsilon", 1e-8f}},
       {}},
      {"adadelta_params",
       "Adadelta",
       {0, 0},
       {{"lr", 0.5f}, {"rho", 0.9f}, {"epsilon", 1e-6f}},
       {}},
      {"adam",
       "Adam",
       {0, 0},
       {{"lr", 0.001f}, {"beta1", 0.9f}, {"beta2", 0.999f}, {"epsilon", 1e-8f}},
       {},
       false},
      {"adam_params",
       "Adam",
       {0, 0},
       {{"lr", 0.05f}, {"beta1", 0.8f}, {"beta2", 0.99f}, {"epsilon", 1e-4f}},
       {},
       false},
      {"contrib_adamax",
       "AdaMax",
       {0, 0},
       {{"lr", 0.05f}, {"beta1", 0.9f}, {"beta2", 0.999f}, {"epsilon", 1e-8f}},
       {},
       false},
      {"contrib_add_sign",
       "AddSign",
       {0},
       {{"lr", 0.05f}, {"alpha", 1}, {"sign_decay", 1}, {"beta", 0.9f}},
       {},
       false},
      {"contrib_power_sign",
       "PowerSign",
       {0},
       {{"lr", 0.05f}, {"logbase", 1}, {"sign_decay", 1}, {"beta", 0.9f}},
       {},
       false},
      {"ftrl",
       "Ftrl",
       {0.1, 0},
       {{"lr", 0.1f}, {"l1", 0}, {"l2", 0}, {"lr_power", -0.5f}},
       {}},
      {"ftrl_l1_l2",
       "Ftrl",
       {0.1, 0},
       {{"lr", 0.1f}, {"l1", 0.05f}, {"l2", 0.1f}, {"lr_power", -0.5f}},
       {}},
      {"ftrl_power",
       "Ftrl",
       {0.2, 0},
       {{"lr", 0.1f}, {"l1", 0}, {"l2", 0}, {"lr_power", -0.3f}},
       {}},
      {"ftrl_shrinkage",
       "FtrlV2",
       {0.1, 0},
       {{"lr", 0.1f},
        {"l1", 0.05f},
        {"l2", 0.1f},
        {"l2_shrinkage", 0.2f},
        {"lr_power", -0.5f}},
       {}},
      {"proximal_adagrad",
       "ProximalAdagrad",
       {0.1},
       {{"lr", 0.1f}, {"l1", 0.05f}, {"l2", 0.1f}},
       {}},
      {"proximal_sgd",
       "ProximalGradientDescent",
       {},
       {{"alpha", 0.1f}, {"l1", 0.05f}, {"l2", 0.1f}},
       {}},
      {"proximal_sgd_plain",
       "ProximalGradientDescent",
       {},
       {{"alpha", 0.1f}, {"l1", 0}, {"l2", 0}},
       {}},
      {"rmsprop",
       "RMSProp",
       {1, 0},
       {{"lr", 0.01f}, {"rho", 0.9f}, {"momentum", 0}, {"epsilon", 1e-10f}},
       {}},
      {"rmsprop_momentum",
       "RMSProp",
       {1, 0},
       {{"lr", 0.01f}, {"rho", 0.8f}, {"momentum", 0.5f}, {"epsilon", 1e-6f}},
       {}},
      {"rmsprop_centered",
       "CenteredRMSProp",
       {0, 1, 0},
       {{"lr", 0.01f}, {"rho", 0.9f}, {"momentum", 0.3f}, {"epsilon", 1e-10f}},
       {}},
  };
}

// tests/golden/optimizer_traces.txt, by all words of a line but the numbers.
const std::map<std::string, std::vector<double>>& GoldenTraces() {
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
Tensor Numbers(const Shape& shape, std::span<const double> values) {
  Tensor tensor(DTypeOf<T>::value, shape);
  for (int64_t i = 0; i < shape.size(); ++i) {
    tensor.mutable_data<T>()[i] = static_cast<T>(values[i]);
  }
  return tensor;
}

// A variable, its slots and one update op, run step by step.
template <typename T>
class OptimizerRun {
 public:
  OptimizerRun(const UpdateCase& c, bool resource, bool sparse)
      : case_(c),
        resource_(resource),
        sparse_(sparse),
        device_(MakeTestDevice()),
        session_(*device_) {
    const Shape shape = sparse ? Shape({6, 2}) : Shape({5});
    AddVariable(
        Numbers<T>(shape, GoldenTraces().at(sparse ? "input sparse_init "
                                                   : "input dense_init ")));
    for (double slot : c.slots) {
      AddVariable(Numbers<T>(shape, std::vector<double>(shape.size(), slot)));
    }
    AddUpdate();
  }

  // Computes step `step`, counted from 0, and returns the variable after it.
  Tensor Step(int step) {
    for (auto& [name, input] : scalars_) {
      if (name == "global_step") {
        session_.SetValue(input, Tensor::Scalar<int64_t>(step + 1));
      } else if (name == "beta1_power" || name == "beta2_power") {
        session_.SetValue(input, Tensor::Scalar(static_cast<T>(power_[name])));
        power_[name] *= case_.scalars.at(name.substr(0, 5));
      }
    }
    sparse_ ? SetRows(step) : SetGradient(step);
    const absl::Status status = session_.Run(update_);
    EXPECT_TRUE(status.ok()) << case_.config << ": " << status;
    return session_.Output0(read_);
  }

 private:
  void AddVariable(const Tensor& initial) {
    const AttrMap attrs{{"dtype", initial.dtype()}, {"shape", initial.shape()}};
    Node* node =
        session_.Add(resource_ ? "VarHandleOp" : "VariableV2", {}, attrs);
    EXPECT_TRUE(
        session_
            .Run(session_.Add(resource_ ? "AssignVariableOp" : "Assign",
                              {node->output(0), session_.Value(initial)}))
            .ok());
    if (variables_.empty()) {
      read_ = resource_ ? session_.Add("ReadVariableOp", {node->output(0)},
                                       {{"dtype", initial.dtype()}})
                        : node;
    }
    variables_.push_back(node->output(0));
  }

  void AddUpdate() {
    const std::string op = StrCat(resource_ ? "Resource" : "",
                                  sparse_ ? "Sparse" : "", "Apply", case_.op);
    std::vector<Output> inputs = variables_;
    const OpInfo* info = OpRegistry::Global().Find(op);
    ASSERT_NE(info, nullptr) << op;
    for (size_t i = variables_.size(); i < info->def.inputs.size(); ++i) {
      const std::string& name = info->def.inputs[i].name;
      if (name == "grad" || name == "delta") {
        inputs.push_back(grad_ = session_.Value(Tensor::Scalar<T>(0)));
      } else if (name == "indices") {
        inputs.push_back(indices_ = session_.Value(Tensor::Scalar<int64_t>(0)));
      } else if (name == "global_step") {
        inputs.push_back(session_.Value(Tensor::Scalar<int64_t>(0)));
        scalars_[name] = inputs.back();
      } else {
        if (name.ends_with("_power") && name.starts_with("beta")) {
          power_[name] = case_.scalars.at(name.substr(0, 5));
        }
        const auto value = case_.scalars.find(name);
        inputs.push_back(session_.Value(Tensor::Scalar(
            static_cast<T>(value == case_.scalars.end() ? 0 : value->second))));
        scalars_[name] = inputs.back();
      }
    }
    update_ = session_.Add(op, inputs, case_.attrs);
  }

  void SetGradient(int step) {
    const std::vector<double>& all = GoldenTraces().at("input dense_grads ");
    session_.SetValue(grad_,
                      Numbers<T>({5}, std::span(all).subspan(step * 5, 5)));
  }

  void SetRows(int step) {
    const std::span<const double> indices =
        std::span(GoldenTraces().at("input sparse_indices ")).subspan(step * 4);
    const std::span<const double> values =
        std::span(GoldenTraces().at("input sparse_values ")).subspan(step * 8);
    std::vector<int64_t> rows;
    std::vector<T> sums;
    for (int i = 0; i < 4; ++i) {
      const int64_t row = static_cast<int64_t>(indices[i]);
      size_t at = std::find(rows.begin(), rows.end(), row) - rows.begin();
      if (at == rows.size()) {
        rows.push_back(row);
        sums.resize(sums.size() + 2, T(0));
      }
      for (int j = 0; j < 2; ++j) {
        sums[at * 2 + j] += static_cast<T>(values[i * 2 + j]);
      }
    }
    const int64_t count = static_cast<int64_t>(rows.size());
    session_.SetValue(
        indices_, Tensor::Of<int64_t>({count}, std::span<const int64_t>(rows)));
    session_.SetValue(grad_,
                      Tensor::Of<T>({count, 2}, std::span<const T>(sums)));
  }

  const UpdateCase& case_;
  const bool resource_;
  const bool sparse_;
  std::unique_ptr<Device> device_;
  OpSession session_;
  std::vector<Output> variables_;
  Node* read_ = nullptr;
  Node* update_ = nullptr;
  Output grad_, indices_;
  std::map<std::string, Output> scalars_;
  std::map<std::string, float> power_;  // float32 variables in TensorFlow.
};

template <typename T>
void ExpectGoldenTrace(const UpdateCase& c, bool resource, bool sparse) {
  OptimizerRun<T> run(c, resource, sparse);
  const bool narrow = std::is_same_v<T, float>;
  for (int step = 1; step <= 20; ++step) {
    const Tensor got = run.Step(step - 1);
    const auto want = GoldenTraces().find(
        StrCat(c.config, sparse ? " sparse " : " dense ",
               narrow ? "float32 " : "float64 ", step, " "));
    if (want == GoldenTraces().end()) continue;
    SCOPED_TRACE(want->first);
    ExpectClose(got, Numbers<T>(got.shape(), want->second),
                narrow ? 2e-6 : 1e-11);
  }
}

TEST(Updates, FollowTensorFlowsTraces) {
  ASSERT_GT(GoldenTraces().size(), 100u);
  for (const UpdateCase& c : UpdateCases()) {
    ASSERT_TRUE(GoldenTraces().contains(c.config + " dense float32 20 "));
    for (bool resource : {false, true}) {
      ExpectGoldenTrace<float>(c, resource, false);
      ExpectGoldenTrace<double>(c, resource, false);
      if (!c.sparse) continue;
      ExpectGoldenTrace<float>(c, resource, true);
      ExpectGoldenTrace<double>(c, resource, true);
    }
  }
}

// Runs one resource update on variables that are all 1 and returns them.
std::vector<float> UpdatedOnes(std::string_view op, int variables,
                               const std::vector<float>& scalars,
                               const AttrMap& attrs = {}) {
  const auto device = MakeTestDevice();
  OpSession session(*device);
  std::vector<Output> inputs;
  std::vector<Node*> reads;
  for (int i = 0; i < variables; ++i) {
    Node* handle = session.Add(
        "VarHandleOp", {}, {{"dtype", DType::kFloat}, {"shape", Shape({1})}});
    inputs.push_back(handle->output(0));
    reads.push_back(session.Add("ReadVariableOp", {inputs.back()},
                                {{"dtype", DType::kFloat}}));
    const Output one = session.Value(Tensor::Vector<float>({1}));
    EXPECT_TRUE(
        session.Run(session.Add("AssignVariableOp", {inputs.back(), one}))
            .ok());
  }
  for (float scalar : scalars) {
    inputs.push_back(session.Value(Tensor::Scalar(scalar)));
  }
  inputs.push_back(session.Value(Tensor::Vector<float>({2})));
  if (op == "ResourceApplyKerasMomentum") {
    std::swap(inputs.back(), inputs[inputs.size() - 2]);
  }
  const absl::Status status = session.Run(session.Add(op, inputs, attrs));
  EXPECT_TRUE(status.ok()) << status;
  std::vector<float> values;
  for (Node* read : reads)
    values.push_back(session.Output0(read).data<float>()[0]);
  return values;
}

TEST(Updates, OfRarerKindsFollowTheirFormulas) {
  using ::testing::ElementsAre;
  using ::testing::FloatEq;
  // accum = 0.5 * 1 - 0.1 * 2, var += accum.
  EXPECT_THAT(UpdatedOnes("ResourceApplyKerasMomentum", 2, {0.1f, 0.5f}),
              ElementsAre(FloatEq(1.3f), FloatEq(0.3f)));
  EXPECT_THAT(UpdatedOnes("ResourceApplyKerasMomentum", 2, {0.1f, 0.5f},
                          {{"use_nesterov", true}}),
              ElementsAre(FloatEq(0.95f), FloatEq(0.3f)));
  // accum = 1 + 4, var -= 0.1 * 2 / (sqrt(5) + 1).
  EXPECT_THAT(
      UpdatedOnes("ResourceApplyAdagradV2", 2, {0.1f, 1.0f}),
      ElementsAre(FloatEq(1 - 0.2f / (std::sqrt(5.0f) + 1)), FloatEq(5)));
  EXPECT_THAT(UpdatedOnes("ResourceApplyAdagradV2", 2, {0.1f, 1.0f},
                          {{"update_slots", false}}),
              ElementsAre(FloatEq(0.9f), FloatEq(1)));
  // m = 1.5, v = 2.5, vhat = 2.5, rate = 0.1 * sqrt(0.75) / 0.5.
  const float rate = 0.1f * std::sqrt(0.75f) / 0.5f;
  EXPECT_THAT(UpdatedOnes("ResourceApplyAdamWithAmsgrad", 4,
                          {0.5f, 0.25f, 0.1f, 0.5f, 0.5f, 0.0f}),
              ElementsAre(FloatEq(1 - 1.5f * rate / std::sqrt(2.5f)),
                          FloatEq(1.5f), FloatEq(2.5f), FloatEq(2.5f)));
  // Nesterov: the step mixes the gradient in once more.
  EXPECT_THAT(
      UpdatedOnes("ResourceApplyAdam", 3, {0.5f, 0.25f, 0.1f, 0.5f, 0.5f, 0.0f},
                  {{"use_nesterov", true}}),
      ElementsAre(FloatEq(1 - (1 + 0.75f) * rate / std::sqrt(2.5f)),
                  FloatEq(1.5f), FloatEq(2.5f)));
}

AttrMap UnknownShapeAttrs() {
  const PartialShape unknown;
  return {{"dtype", DType::kFloat}, {"shape", unknown}};
}

// An Adagrad update by rows, with one thing wrong.
struct SparseAdagrad {
  SparseAdagrad() : device(MakeTestDevice()), session(*device) {
    var = Add(Tensor::Of<float>({3, 2}, {1, 1, 1, 1, 1, 1}), "var");
    accum = Add(Tensor::Of<float>({3, 2}, {1, 1, 1, 1, 1, 1}), "accum");
  }
  Output Add(const Tensor& value, std::string_view name) {
    Node* node = session.Add("VariableV2", {}, UnknownShapeAttrs(), name);
    EXPECT_TRUE(
        session
            .Run(session.Add("Assign", {node->output(0), session.Value(value)}))
            .ok());
    return node->output(0);
  }
  absl::Status Run(Tensor lr, Tensor grad, Tensor indices) {
    return session.Run(session.Add(
        "SparseApplyAdagrad",
        {var, accum, session.Value(std::move(lr)),
         session.Value(std::move(grad)), session.Value(std::move(indices))}));
  }
  std::unique_ptr<Device> device;
  OpSession session;
  Output var, accum;
};

TEST(Updates, ByRowsCheckTheirInputs) {
  SparseAdagrad t;
  const Tensor lr = Tensor::Scalar<float>(0.1f);
  const Tensor row = Tensor::Of<float>({1, 2}, {1, 1});
  const auto fails = [](std::string_view text) {
    return StatusIs(absl::StatusCode::kInvalidArgument,
                    HasSubstr(std::string(text)));
  };
  EXPECT_THAT(t.Run(lr, row, Tensor::Vector<int64_t>({7})),
              fails("Index 7 at offset 0 in indices is out of range"));
  EXPECT_THAT(t.Run(lr, row, Tensor::Vector<int32_t>({-1})),
              fails("Index -1 at offset 0 in indices is out of range"));
  EXPECT_THAT(t.Run(lr, row, Tensor::Of<int32_t>({1, 1}, {0})),
              fails("indices must be one-dimensional"));
  EXPECT_THAT(t.Run(lr, row, Tensor::Vector<int32_t>({0, 1})),
              fails("grad must be the same size as indices in the first "
                    "dimension."));
  EXPECT_THAT(t.Run(lr, Tensor::Of<float>({1, 3}, {1, 1, 1}),
                    Tensor::Vector<int32_t>({0})),
              fails("var and grad must match in dimension 1"));
  EXPECT_THAT(
      t.Run(Tensor::Vector<float>({1}), row, Tensor::Vector<int32_t>({0})),
      fails("lr is not a scalar: [1]"));
  t.accum = t.Add(Tensor::Vector<float>({1}), "small");
  EXPECT_THAT(t.Run(lr, row, Tensor::Vector<int32_t>({0})),
              fails("var and accum do not have the same shape[3,2] [1]"));
}

TEST(Updates, NameAVariableWithoutValue) {
  SparseAdagrad t;
  Node* empty = t.session.Add("VariableV2", {}, UnknownShapeAttrs(), "empty");
  t.accum = empty->output(0);
  EXPECT_THAT(t.Run(Tensor::Scalar<float>(1), Tensor::Of<float>({1, 2}, {1, 1}),
                    Tensor::Vector<int32_t>({0})),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "Attempting to use uninitialized value empty"));
}

TEST(Updates, MayGetTheSameVariableTwice) {
  SparseAdagrad t;
  t.accum = t.var;
  SLUICE_EXPECT_OK(t.Run(Tensor::Scalar<float>(1),
                         Tensor::Of<float>({1, 2}, {1, 1}),
                         Tensor::Vector<int32_t>({0})));
}

TEST(Updates, ShapesOfVariableAndGradientMustAgree) {
  const auto device = MakeTestDevice();
  OpSession session(*device);
  Node* v = session.Add("VariableV2", {},
                        {{"dtype", DType::kFloat}, {"shape", Shape({2, 3})}});
  const Output rate = session.Value(Tensor::Scalar<float>(1));
  const Output grad = session.Value(Tensor::Of<float>({3}, {1, 1, 1}));
  const Output bad = session.Value(Tensor::Of<float>({3}, {1, 1, 1}), true);
  Node* good = session.Add("ApplyGradientDescent", {v->output(0), rate, grad});
  EXPECT_EQ(good->output_shape(0).DebugString(), "[2,3]");
  EXPECT_THAT(
      session.TryAdd("ApplyGradientDescent", {v->output(0), rate, bad})
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("Shapes must be equal rank, but are 2 and 1")));
}

}  // namespace
}  // namespace sluice
