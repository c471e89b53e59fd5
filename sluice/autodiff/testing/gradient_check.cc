#include "sluice/autodiff/testing/gradient_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sluice/autodiff/between.h"
#include "sluice/autodiff/gradients.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/kernel/run_kernel.h"

namespace sluice {

SLUICE_OP(GradientCheckInput)
    .Output("output: dtype")
    .Attr("dtype: type")
    .Attr("shape: shape = ?")
    .Shape(shapes::FromShapeAttr);

GraphEvaluator::GraphEvaluator() = default;
GraphEvaluator::~GraphEvaluator() = default;

void GraphEvaluator::Feed(Output output, Tensor value) {
  fed_[{output.node->id(), output.index}] = std::move(value);
  values_.clear();
}

absl::StatusOr<Tensor> GraphEvaluator::Evaluate(Output output) {
  const Node& node = *output.node;
  if (auto it = fed_.find({node.id(), output.index}); it != fed_.end()) {
    return it->second;
  }
  if (!values_.contains(node.id())) SLUICE_RETURN_IF_ERROR(Run(node));
  return values_[node.id()][output.index];
}

absl::Status GraphEvaluator::Run(const Node& node) {
  std::vector<Tensor> inputs;
  for (const Output& input : node.inputs()) {
    SLUICE_ASSIGN_OR_RETURN(Tensor value, Evaluate(input));
    inputs.push_back(std::move(value));
  }
  std::unique_ptr<Kernel>& kernel = kernels_[node.id()];
  if (kernel == nullptr) {
    SLUICE_ASSIGN_OR_RETURN(kernel, MakeKernel(node, ScratchDevice()));
  }
  absl::StatusOr<std::vector<Tensor>> outputs =
      RunKernel(*kernel, node, ScratchDevice(), inputs);
  if (!outputs.ok()) return Annotate(outputs.status(), node.name());
  values_[node.id()] = *std::move(outputs);
  return absl::OkStatus();
}

// Unity builds see this file beside others, so its names need a home.
namespace gradient_check {
namespace {

// Small, different everywhere, and not symmetric around 0.
Tensor Weights(const Shape& shape) {
  Tensor weights(DType::kDouble, shape);
  for (int64_t i = 0; i < weights.size(); ++i) {
    weights.mutable_data<double>()[i] = 0.5 + std::cos(1.7 * i + 0.3);
  }
  return weights;
}

// One op under test with its inputs in a graph of its own.
class Check {
 public:
  explicit Check(const GradientCheckOptions& options) : options_(options) {}

  absl::StatusOr<double> Run(std::string_view op,
                             const std::vector<Tensor>& inputs,
                             const AttrMap& attrs);

 private:
  absl::StatusOr<Output> AddInput(const Tensor& value);
  // The sum of all outputs times their weights.
  absl::StatusOr<double> Loss();
  absl::StatusOr<Tensor> Dense(const Grad& grad, const Shape& shape);
  absl::StatusOr<double> CompareInput(Output x, const Tensor& at,
                                      const Grad& grad);

  const GradientCheckOptions options_;
  Graph graph_;
  GraphEvaluator evaluator_;
  std::vector<Output> ys_;
  std::vector<Tensor> weights_;
};

absl::StatusOr<Output> Check::AddInput(const Tensor& value) {
  Scope scope(graph_);
  Output input;
  if (options_.static_shapes && value.dtype() != DType::kDouble) {
    input = scope.Const(value);
  } else {
    AttrMap attrs = {{"dtype", value.dtype()}};
    if (options_.static_shapes) attrs.Set("shape", value.shape());
    input = scope.Add("GradientCheckInput", {}, attrs);
    if (input) evaluator_.Feed(input, value);
  }
  SLUICE_RETURN_IF_ERROR(scope.status());
  return input;
}

absl::StatusOr<double> Check::Loss() {
  double loss = 0;
  for (size_t i = 0; i < ys_.size(); ++i) {
    SLUICE_ASSIGN_OR_RETURN(Tensor y, evaluator_.Evaluate(ys_[i]));
    for (int64_t k = 0; k < y.size(); ++k) {
      loss += y.data<double>()[k] * weights_[i].data<double>()[k];
    }
  }
  return loss;
}

// The evaluated gradient, with slices added into zeros.
absl::StatusOr<Tensor> Check::Dense(const Grad& grad, const Shape& shape) {
  SLUICE_ASSIGN_OR_RETURN(Tensor dense, Tensor::Zeros(DType::kDouble, shape));
  if (!grad) return dense;
  SLUICE_ASSIGN_OR_RETURN(Tensor values, evaluator_.Evaluate(grad.values));
  if (!grad.is_slices()) {
    if (values.shape() == shape) return values;
    return InvalidArgument("the gradient has shape ",
                           values.shape().DebugString(), ", the input ",
                           shape.DebugString());
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor indices, evaluator_.Evaluate(grad.indices));
  const int64_t row = shape.size() / std::max<int64_t>(shape.dim(0), 1);
  if (values.size() != indices.size() * row) {
    return InvalidArgument("slices of ", values.size(), " values for ",
                           indices.size(), " rows of ", row);
  }
  for (int64_t i = 0; i < indices.size(); ++i) {
    const int64_t at = indices.dtype() == DType::kInt32
                           ? indices.data<int32_t>()[i]
                           : indices.data<int64_t>()[i];
    if (at < 0 || at >= shape.dim(0)) return OutOfRange("row ", at);
    for (int64_t k = 0; k < row; ++k) {
      dense.mutable_data<double>()[at * row + k] +=
          values.data<double>()[i * row + k];
    }
  }
  return dense;
}

absl::StatusOr<double> Check::CompareInput(Output x, const Tensor& at,
                                           const Grad& grad) {
  SLUICE_ASSIGN_OR_RETURN(Tensor dx, Dense(grad, at.shape()));
  double worst = 0;
  for (int64_t k = 0; k < at.size(); ++k) {
    const double value = at.data<double>()[k];
    // Balances the error of the formula, h^2, and that of rounding, eps / h.
    const double h = 1e-5 * std::max(1.0, std::abs(value));
    double loss[2];
    for (int side = 0; side < 2; ++side) {
      Tensor moved = at.Clone();
      moved.mutable_data<double>()[k] = value + (side == 0 ? h : -h);
      evaluator_.Feed(x, moved);
      SLUICE_ASSIGN_OR_RETURN(loss[side], Loss());
    }
    const double numeric = (loss[0] - loss[1]) / (2 * h);
    const double error = std::abs(numeric - dx.data<double>()[k]) /
                         std::max(1.0, std::abs(numeric));
    // Written so that NaN counts as wrong.
    if (!(error <= worst)) worst = std::isnan(error) ? HUGE_VAL : error;
  }
  evaluator_.Feed(x, at);
  return worst;
}

absl::StatusOr<double> Check::Run(std::string_view op,
                                  const std::vector<Tensor>& inputs,
                                  const AttrMap& attrs) {
  Scope scope(graph_);
  std::vector<Output> all, xs;
  std::vector<Tensor> points;
  for (const Tensor& value : inputs) {
    SLUICE_ASSIGN_OR_RETURN(Output input, AddInput(value));
    all.push_back(input);
    if (value.dtype() != DType::kDouble) continue;
    if (options_.inputs >= 0 &&
        static_cast<int>(xs.size()) >= options_.inputs) {
      continue;
    }
    xs.push_back(input);
    points.push_back(value);
  }
  Node* node = scope.AddNode(op, all, attrs);
  SLUICE_RETURN_IF_ERROR(scope.status());
  std::vector<Grad> grad_ys;
  for (int i = 0; i < node->num_outputs(); ++i) {
    if (node->output_type(i) != DType::kDouble) continue;
    if (options_.outputs >= 0 && i >= options_.outputs) continue;
    ys_.push_back(node->output(i));
    SLUICE_ASSIGN_OR_RETURN(Tensor y, evaluator_.Evaluate(node->output(i)));
    weights_.push_back(Weights(y.shape()));
    SLUICE_ASSIGN_OR_RETURN(Output weights, AddInput(weights_.back()));
    grad_ys.push_back(weights);
  }
  SLUICE_ASSIGN_OR_RETURN(std::vector<Grad> dxs,
                          AddGradients(scope, ys_, xs, grad_ys));
  double worst = 0;
  for (size_t i = 0; i < xs.size(); ++i) {
    SLUICE_ASSIGN_OR_RETURN(double error,
                            CompareInput(xs[i], points[i], dxs[i]));
    worst = std::max(worst, error);
  }
  return worst;
}

}  // namespace
}  // namespace gradient_check

double MaxGradientError(std::string_view op, const std::vector<Tensor>& inputs,
                        const AttrMap& attrs,
                        const GradientCheckOptions& options) {
  absl::StatusOr<double> worst =
      gradient_check::Check(options).Run(op, inputs, attrs);
  if (worst.ok()) return *worst;
  ADD_FAILURE() << op << ": " << worst.status();
  return std::numeric_limits<double>::infinity();
}

}  // namespace sluice
