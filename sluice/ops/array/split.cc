// Split and SplitV: parts of a tensor along one dimension, which keeps its
// place.
#include "absl/strings/str_join.h"
#include "sluice/graph/scope.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/gradient_pieces.h"
#include "sluice/ops/array/index_values.h"
#include "sluice/ops/array/move.h"
#include "sluice/ops/array/shape_rules.h"

namespace sluice {
namespace {
namespace split_ops {

// The axis if its value and the rank are known; -1 otherwise.
absl::StatusOr<int> StaticAxis(const ShapeContext& c, int axis_input,
                               const PartialShape& value) {
  SLUICE_RETURN_IF_ERROR(CheckScalarInput(c, axis_input));
  const std::optional<int64_t> axis = KnownScalar(c, axis_input);
  if (!axis || !value.known_rank()) return -1;
  const int at = AxisFromFront(*axis, value.rank());
  if (at >= 0) return at;
  return InvalidArgument("Dimension size, given by scalar input ", *axis,
                         " must be in range [", -value.rank(), ", ",
                         value.rank(), ")");
}

absl::Status AllUnknown(ShapeContext& c, const PartialShape& value) {
  for (int i = 0; i < c.num_outputs(); ++i) {
    c.set_output(i, value.known_rank()
                        ? PartialShape::UnknownOfRank(value.rank())
                        : PartialShape());
  }
  return absl::OkStatus();
}

absl::Status SplitShape(ShapeContext& c) {
  PartialShape part = c.input(1);
  SLUICE_ASSIGN_OR_RETURN(int at, StaticAxis(c, 0, part));
  if (at < 0) return AllUnknown(c, part);
  absl::StatusOr<int64_t> size = DivideEvenly(part.dim(at), c.num_outputs());
  if (!size.ok()) {
    return WithMessage(size.status(),
                       StrCat(ToStd(size.status().message()),
                              "\n\tNumber of ways to split should evenly "
                              "divide the split dimension"));
  }
  part.set_dim(at, *size);
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, part);
  return absl::OkStatus();
}

// Replaces a -1 in `sizes` by what the others leave of `total`. -1 stays if
// `total` is unknown. False if the sizes do not add up.
bool FillMissing(int64_t total, IndexVector* sizes, int64_t* sum) {
  int64_t* missing = nullptr;
  *sum = 0;
  for (int64_t& size : *sizes) {
    if (size == -1) {
      missing = &size;
    } else if (size < 0 || __builtin_add_overflow(*sum, size, sum)) {
      return false;
    }
  }
  if (total < 0) return true;
  if (missing == nullptr) return *sum == total;
  *missing = total - *sum;
  return *missing >= 0;
}

absl::Status SplitVShape(ShapeContext& c) {
  const PartialShape& value = c.input(0);
  const int count = c.num_outputs();
  const PartialShape& sizes_shape = c.input(1);
  SLUICE_ASSIGN_OR_RETURN(int at, StaticAxis(c, 2, value));
  if (at < 0) return AllUnknown(c, value);
  if (sizes_shape.known_rank()) {
    SLUICE_RETURN_IF_ERROR(c.WithRank(1, 1).status());
    if (sizes_shape.dim(0) >= 0 && sizes_shape.dim(0) != count) {
      return InvalidArgument(
          "Length of size_splits should be equal to num_outputs");
    }
  }
  IndexVector sizes(count, -1);
  if (const std::optional<Tensor> known = c.input_value(1);
      known && known->size() == count) {
    sizes = IndexValues(*known);
    const IndexVector given = sizes;
    if (std::count(given.begin(), given.end(), -1) > 1) {
      return InvalidArgument("size_splits can only have one -1");
    }
    int64_t sum;
    if (!FillMissing(value.dim(at), &sizes, &sum)) {
      return InvalidArgument("can't split axis of size ", value.dim(at),
                             " into pieces of size [",
                             absl::StrJoin(given, ","), "]");
    }
  }
  PartialShape part = value;
  for (int i = 0; i < count; ++i) {
    part.set_dim(at, sizes[i]);
    c.set_output(i, part);
  }
  return absl::OkStatus();
}

// Output i is the next sizes(i) of dimension `at`.
absl::Status MoveParts(KernelContext& ctx, const Tensor& x, int at,
                       absl::FunctionRef<int64_t(int)> sizes) {
  if (ctx.num_outputs() == 1) {
    ctx.set_output(0, x);
    return absl::OkStatus();
  }
  const Mover mover = MoverOf(x.dtype());
  const int64_t rows = SizeBetween(x.shape(), 0, at);
  const int64_t inner = SizeBetween(x.shape(), at + 1, x.rank());
  int64_t begin = 0;
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    const int64_t size = sizes(i);
    Shape shape = x.shape();
    shape.SetDim(at, size);
    if (rows == 1 && inner > 0) {
      // Parts that lie together are shared.
      const Tensor flat = x.Reshaped({x.dim(at), inner});
      ctx.set_output(i, flat.Rows(begin, begin + size).Reshaped(shape));
    } else {
      SLUICE_ASSIGN_OR_RETURN(Tensor & part, ctx.Output(i, shape));
      Box box;
      box.Add(rows, size * inner * mover.size, x.dim(at) * inner * mover.size);
      box.Add(size * inner, mover.size, mover.size);
      MoveBox(ctx, mover, std::move(box), ElementAt(part, mover, 0),
              ElementAt(x, mover, begin * inner));
    }
    begin += size;
  }
  return absl::OkStatus();
}

absl::StatusOr<int> KernelAxis(const Tensor& axis, const Tensor& x) {
  const int64_t value = IndexAt(axis, 0);
  const int at = AxisFromFront(value, x.rank());
  if (at >= 0) return at;
  return InvalidArgument("-input rank(-", x.rank(),
                         ") <= split_dim < input rank (", x.rank(),
                         "), but got ", value);
}

absl::Status SplitKernel(KernelContext& ctx) {
  const Tensor& axis = ctx.input(0);
  const Tensor& x = ctx.input(1);
  if (axis.rank() != 0) {
    return InvalidArgument("split_dim must be a scalar but has rank ",
                           axis.rank());
  }
  SLUICE_ASSIGN_OR_RETURN(int at, KernelAxis(axis, x));
  const int count = ctx.num_outputs();
  if (x.dim(at) % count != 0) {
    return InvalidArgument(
        "Number of ways to split should evenly divide the split dimension, "
        "but got split_dim ",
        at, " (size = ", x.dim(at), ") and num_split ", count);
  }
  const int64_t size = x.dim(at) / count;
  return MoveParts(ctx, x, at, [=](int) { return size; });
}

absl::Status SplitVKernel(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& given = ctx.input(1);
  const Tensor& axis = ctx.input(2);
  if (axis.size() != 1) {
    return InvalidArgument("split_dim_tensor must have exactly one element.");
  }
  SLUICE_ASSIGN_OR_RETURN(int at, KernelAxis(axis, x));
  if (given.rank() != 1 || given.size() != ctx.num_outputs()) {
    return InvalidArgument(
        "size of the split_tensor must be 1-D and have the same elements as "
        "outputs got ",
        given.rank(), " -D and ", given.size(), " elements");
  }
  IndexVector sizes = IndexValues(given);
  if (std::count(sizes.begin(), sizes.end(), -1) > 1) {
    return InvalidArgument("There can only be one -1 in the input.");
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < -1) {
      return InvalidArgument("Split size at index ", i,
                             " must be >= 0. Got: ", sizes[i]);
    }
  }
  int64_t sum;
  if (!FillMissing(x.dim(at), &sizes, &sum)) {
    return InvalidArgument(
        "Determined shape must either match input shape along split_dim "
        "exactly if fully specified, or be less than the size of the input "
        "along split_dim if not fully specified.  Got: ",
        sum);
  }
  return MoveParts(ctx, x, at, [&](int i) { return sizes[i]; });
}

// The parts joined again.
Output Joined(Scope& scope, std::span<const Output> dy, Output axis) {
  if (dy.size() == 1) {
    return scope.NameScope("concat").Named("concat").Add("Identity", {dy[0]});
  }
  std::vector<Output> inputs(dy.begin(), dy.end());
  inputs.push_back(axis);
  return scope.Named("concat").Add("ConcatV2", inputs);
}

}  // namespace split_ops
}  // namespace

SLUICE_OP(Split)
    .Input("split_dim: int32")
    .Input("value: T")
    .Output("output: num_split * T")
    .Attr("num_split: int >= 1")
    .Attr("T: type")
    .Shape(split_ops::SplitShape)
    .Gradient([](Scope& scope, const Node& op,
                 std::span<const Output> dy) -> Grads {
      return std::vector<Grad>{Grad(),
                               split_ops::Joined(scope, dy, op.input(0))};
    });

SLUICE_OP(SplitV)
    .Input("value: T")
    .Input("size_splits: Tlen")
    .Input("split_dim: int32")
    .Output("output: num_split * T")
    .Attr("num_split: int >= 1")
    .Attr("T: type")
    .Attr("Tlen: {int32, int64} = DT_INT64")
    .Shape(split_ops::SplitVShape)
    .Gradient([](Scope& scope, const Node& op,
                 std::span<const Output> dy) -> Grads {
      return std::vector<Grad>{split_ops::Joined(scope, dy, op.input(2)),
                               Grad(), Grad()};
    });

SLUICE_KERNEL(Split, kCpu).Function(split_ops::SplitKernel);
SLUICE_KERNEL(SplitV, kCpu).Function(split_ops::SplitVKernel);

}  // namespace sluice
