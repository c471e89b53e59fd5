// SoftmaxCrossEntropyWithLogits and SparseSoftmaxCrossEntropyWithLogits. The
// second output is the derivative of the loss, computed along with it.

#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/numeric/softmax.h"
#include "sluice/ops/array/index_values.h"
#include "sluice/ops/math/python_math.h"

namespace sluice {
namespace {
namespace cross_entropy {

absl::Status DenseShape(ShapeContext& c) {
  PartialShape matrix;
  absl::StatusOr<PartialShape> same = c.WithRank(0, 2);
  if (same.ok()) same = same->MergeWith(c.input(1));
  if (same.ok()) {
    matrix = *std::move(same);
  } else {
    SLUICE_ASSIGN_OR_RETURN(matrix, BroadcastShapes(c.input(0), c.input(1)));
    if (!matrix.known_rank()) matrix = PartialShape::UnknownOfRank(2);
    if (matrix.rank() != 2) {
      return InvalidArgument(
          "Shape must be broadcasted with rank 2, but is rank ", matrix.rank());
    }
  }
  c.set_output(0, PartialShape({matrix.dim(0)}));
  c.set_output(1, std::move(matrix));
  return absl::OkStatus();
}

absl::Status SparseShape(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(PartialShape features, c.WithRank(0, 2));
  SLUICE_ASSIGN_OR_RETURN(const PartialShape labels, c.WithRank(1, 1));
  const int64_t rows = features.dim(0), count = labels.dim(0);
  if (rows >= 0 && count >= 0 && rows != count) {
    return InvalidArgument("Dimensions must be equal, but are ", rows, " and ",
                           count);
  }
  const int64_t batch = rows >= 0 ? rows : count;
  features.set_dim(0, batch);
  c.set_output(0, PartialShape({batch}));
  c.set_output(1, std::move(features));
  return absl::OkStatus();
}

// vector times matrix, row by row.
Output TimesRows(const Scope& scope, Output vector, Output matrix) {
  return python::Mul(scope, python::ExpandDims(scope, vector, -1), matrix);
}

bool IsZero(Output grad) {
  if (!grad || grad.node->type() == "ZerosLike") return true;
  const std::optional<Tensor> value = ConstantValue(grad);
  if (!value) return false;
  for (int64_t i = 0; i < value->size(); ++i) {
    const double element =
        value->dtype() == DType::kDouble  ? value->data<double>()[i]
        : value->dtype() == DType::kFloat ? value->data<float>()[i]
                                          : 1.0;
    if (element != 0) return false;
  }
  return true;
}

// The term of the second derivative by the logits:
// (g - sum(g softmax)) softmax.
Output SecondTerm(const Scope& scope, Output logits, Output grad) {
  const Output softmax = scope.Add("Softmax", {logits});
  const Output rows = python::ExpandDims(scope, grad, 1);
  const Output columns = python::ExpandDims(scope, softmax, 2);
  const Output products = python::MatMul(scope, rows, columns, false, false);
  const Output sums = scope.Add("Squeeze", {products},
                                {{"squeeze_dims", std::vector<int64_t>{1}}});
  return python::Mul(scope, python::Sub(scope, grad, sums), softmax);
}

Grads DenseGradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output logits = op.input(0);
  Output by_logits = TimesRows(scope, dy[0], op.output(1));
  if (!IsZero(dy[1])) {
    by_logits = python::Add(scope, by_logits, SecondTerm(scope, logits, dy[1]));
  }
  const Output negative = scope.Add("Neg", {scope.Add("LogSoftmax", {logits})});
  return std::vector<Grad>{by_logits, TimesRows(scope, dy[0], negative)};
}

Grads SparseGradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output slope =
      scope.Add("PreventGradient", {op.output(1)},
                {{"message",
                  "Currently there is no way to take the second derivative of "
                  "sparse_softmax_cross_entropy_with_logits due to the fused "
                  "implementation's interaction with tf.gradients()"}});
  return std::vector<Grad>{TimesRows(scope, dy[0], slope), Grad()};
}

constexpr double kNanosPerClass = 2.5;

template <typename T>
absl::Status RunDense(KernelContext& ctx) {
  const Tensor& logits = ctx.input(0);
  const Tensor& labels = ctx.input(1);
  const auto dim = [](const Tensor& x, int from_end) {
    return x.rank() < from_end ? 1 : x.dim(x.rank() - from_end);
  };
  if (std::max(logits.rank(), labels.rank()) != 2) {
    return InvalidArgument(
        "logits and labels must be either 2-dimensional, or "
        "broadcasted to be 2-dimensional");
  }
  int64_t sizes[2];
  for (int i = 0; i < 2; ++i) {
    const int64_t a = dim(logits, 2 - i), b = dim(labels, 2 - i);
    if (a != b && a != 1 && b != 1) {
      return InvalidArgument(
          "logits and labels must be broadcastable: logits_size=",
          logits.shape().DebugString(),
          " labels_size=", labels.shape().DebugString());
    }
    sizes[i] = a == 1 ? b : a;
  }
  const auto [rows, classes] = sizes;
  SLUICE_ASSIGN_OR_RETURN(Tensor & loss, ctx.Output(0, Shape({rows})));
  SLUICE_ASSIGN_OR_RETURN(Tensor & slope,
                          ctx.Output(1, Shape({rows, classes})));
  if (rows == 0) return absl::OkStatus();
  if (classes == 0) {
    std::ranges::fill(loss.mutable_data<T>(), T(0));
    return absl::OkStatus();
  }
  const auto view = [&](const Tensor& x) {
    return numeric::RowsView<T>{x.data<T>().data(),
                                dim(x, 2) == 1 ? 0 : dim(x, 1),
                                dim(x, 1) == 1 ? 0 : 1};
  };
  const numeric::RowsView<T> x = view(logits), t = view(labels);
  T* losses = loss.mutable_data<T>().data();
  T* slopes = slope.mutable_data<T>().data();
  ctx.ParallelFor(
      rows,
      [&, classes = classes](int64_t begin, int64_t end) {
        const auto at = [begin](numeric::RowsView<T> v) {
          v.data += begin * v.row_step;
          return v;
        };
        numeric::CrossEntropy(losses + begin, slopes + begin * classes, at(x),
                              at(t), end - begin, classes);
      },
      static_cast<double>(classes) * kNanosPerClass + 10);
  return absl::OkStatus();
}

absl::Status CheckLabels(const Tensor& labels, int64_t classes) {
  for (int64_t i = 0; i < labels.size(); ++i) {
    const int64_t label = IndexAt(labels, i);
    if (label >= 0 && label < classes) continue;
    std::string all;
    constexpr int64_t kShown = 1000;
    for (int64_t j = 0; j < std::min(labels.size(), kShown); ++j) {
      StrAppend(&all, j == 0 ? "" : " ", IndexAt(labels, j));
    }
    if (labels.size() > kShown) all += "...";
    return InvalidArgument("Received a label value of ", label,
                           " which is outside the valid range of [0, ", classes,
                           ").  Label values: ", all);
  }
  return absl::OkStatus();
}

template <typename T, typename Label>
absl::Status RunSparse(KernelContext& ctx) {
  const Tensor& logits = ctx.input(0);
  const Tensor& labels = ctx.input(1);
  if (logits.rank() != 2) {
    return InvalidArgument("logits must be 2-D, but got shape ",
                           logits.shape().DebugString());
  }
  if (labels.rank() != 1) {
    return InvalidArgument("labels must be 1-D, but got shape ",
                           labels.shape().DebugString());
  }
  if (logits.dim(0) != labels.dim(0)) {
    return InvalidArgument(
        "logits and labels must have the same first dimension, got logits "
        "shape ",
        logits.shape().DebugString(), " and labels shape ",
        labels.shape().DebugString());
  }
  const int64_t rows = logits.dim(0), classes = logits.dim(1);
  if (classes < 1) {
    return InvalidArgument(
        "Must have at least one class, but got logits shape ",
        logits.shape().DebugString());
  }
  SLUICE_RETURN_IF_ERROR(CheckLabels(labels, classes));
  SLUICE_ASSIGN_OR_RETURN(Tensor & loss, ctx.Output(0, labels.shape()));
  SLUICE_ASSIGN_OR_RETURN(Tensor & slope,
                          ctx.OutputFrom({0}, 1, logits.shape()));
  const T* x = logits.data<T>().data();
  const Label* label = labels.data<Label>().data();
  T* losses = loss.mutable_data<T>().data();
  T* slopes = slope.mutable_data<T>().data();
  ctx.ParallelFor(
      rows,
      [&](int64_t begin, int64_t end) {
        numeric::SparseCrossEntropy(losses + begin, slopes + begin * classes,
                                    x + begin * classes, label + begin,
                                    end - begin, classes);
      },
      static_cast<double>(classes) * kNanosPerClass + 10);
  return absl::OkStatus();
}

}  // namespace cross_entropy
}  // namespace

SLUICE_OP(SoftmaxCrossEntropyWithLogits)
    .Input("features: T")
    .Input("labels: T")
    .Output("loss: T")
    .Output("backprop: T")
    .Attr("T: {half, bfloat16, float, double}")
    .Shape(cross_entropy::DenseShape)
    .Gradient(cross_entropy::DenseGradient);
SLUICE_KERNEL(SoftmaxCrossEntropyWithLogits, kCpu)
    .ForTypes<FloatTypes>("T", []<typename T>(KernelContext& ctx) {
      return cross_entropy::RunDense<T>(ctx);
    });

SLUICE_OP(SparseSoftmaxCrossEntropyWithLogits)
    .Input("features: T")
    .Input("labels: Tlabels")
    .Output("loss: T")
    .Output("backprop: T")
    .Attr("T: {half, bfloat16, float, double}")
    .Attr("Tlabels: {int32, int64} = DT_INT64")
    .Shape(cross_entropy::SparseShape)
    .Gradient(cross_entropy::SparseGradient);
SLUICE_KERNEL(SparseSoftmaxCrossEntropyWithLogits, kCpu)
    .ForTypePairs<FloatTypes, IndexTypes>(
        "T", "Tlabels", []<typename T, typename Label>(KernelContext& ctx) {
          return cross_entropy::RunSparse<T, Label>(ctx);
        });

}  // namespace sluice
