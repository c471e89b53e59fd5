// Pack and Unpack: a tensor as the list of its parts along one dimension.
#include "sluice/graph/scope.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/index_values.h"
#include "sluice/ops/array/move.h"
#include "sluice/ops/array/shape_rules.h"

namespace sluice {
namespace {
namespace pack_ops {

absl::Status BadAxis(int64_t axis, int rank) {
  return InvalidArgument("axis = ", axis, " not in [", -rank, ", ", rank, ")");
}

absl::StatusOr<int> StaticAxis(int64_t axis, int rank) {
  const int at = AxisFromFront(axis, rank);
  if (at >= 0) return at;
  return InvalidArgument("Invalid axis: ", axis, "; must be in [", -rank, ",",
                         rank, ")");
}

absl::Status PackShape(ShapeContext& c) {
  const int count = c.num_inputs();
  PartialShape shape = c.input(count - 1);
  for (int i = count - 2; i >= 0; --i) {
    absl::StatusOr<PartialShape> merged = MergeShapes(c.input(i), shape);
    if (!merged.ok()) {
      return WithMessage(
          merged.status(),
          StrCat(ToStd(merged.status().message()), "\n\tFrom merging shape ", i,
                 " with other shapes."));
    }
    shape = *std::move(merged);
  }
  if (!shape.known_rank()) return shapes::Unknown(c);
  SLUICE_ASSIGN_OR_RETURN(
      int at, StaticAxis(c.attr<int64_t>("axis"), shape.rank() + 1));
  PartialShape out = SubShape(shape, 0, at);
  out.AddDim(count);
  c.set_output(0, JoinShapes(out, SubShape(shape, at, shape.rank())));
  return absl::OkStatus();
}

class PackKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& construction) {
    return std::make_unique<PackKernel>(construction.attr<int64_t>("axis"));
  }
  explicit PackKernel(int64_t axis) : axis_(axis) {}

  absl::Status Run(KernelContext& ctx) override {
    const int count = ctx.num_inputs();
    const Tensor& first = ctx.input(0);
    const int at = AxisFromFront(axis_, first.rank() + 1);
    if (at < 0) return BadAxis(axis_, first.rank() + 1);
    for (int i = 1; i < count; ++i) {
      if (ctx.input(i).shape() != first.shape()) {
        return InvalidArgument(
            "Shapes of all inputs must match: values[0].shape = ",
            first.shape().DebugString(), " != values[", i,
            "].shape = ", ctx.input(i).shape().DebugString());
      }
    }
    IndexVector dims(first.shape().dims().begin(), first.shape().dims().end());
    dims.insert(dims.begin() + at, count);
    SLUICE_ASSIGN_OR_RETURN(Shape shape, Shape::Create(std::span<const int64_t>(
                                             dims.data(), dims.size())));
    if (count == 1) {
      ctx.set_output(0, first.Reshaped(shape));
      return absl::OkStatus();
    }
    SLUICE_ASSIGN_OR_RETURN(Tensor & output, ctx.Output(0, shape));
    if (shape.size() == 0) return absl::OkStatus();
    const Mover mover = MoverOf(output.dtype());
    const int64_t rows = SizeBetween(shape, 0, at);
    const int64_t run = SizeBetween(shape, at + 1, shape.rank());
    for (int i = 0; i < count; ++i) {
      Box box;
      box.Add(rows, count * run * mover.size, run * mover.size);
      box.Add(run, mover.size, mover.size);
      MoveBox(ctx, mover, std::move(box), ElementAt(output, mover, i * run),
              ElementAt(ctx.input(i), mover, 0));
    }
    return absl::OkStatus();
  }

 private:
  const int64_t axis_;
};

absl::Status UnpackShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.known_rank()) return shapes::Unknown(c);
  SLUICE_ASSIGN_OR_RETURN(int at,
                          StaticAxis(c.attr<int64_t>("axis"), in.rank()));
  SLUICE_RETURN_IF_ERROR(CheckDim(in.dim(at), c.num_outputs()));
  const PartialShape part =
      JoinShapes(SubShape(in, 0, at), SubShape(in, at + 1, in.rank()));
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, part);
  return absl::OkStatus();
}

class UnpackKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& construction) {
    return std::make_unique<UnpackKernel>(construction.attr<int64_t>("axis"));
  }
  explicit UnpackKernel(int64_t axis) : axis_(axis) {}

  absl::Status Run(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    const int count = ctx.num_outputs();
    const int at = AxisFromFront(axis_, x.rank());
    if (at < 0) return BadAxis(axis_, x.rank());
    if (x.dim(at) != count) {
      return InvalidArgument("Input shape axis ", at, " must equal ", count,
                             ", got shape ", x.shape().DebugString());
    }
    Shape shape = x.shape();
    shape.RemoveDim(at);
    const Mover mover = MoverOf(x.dtype());
    const int64_t rows = SizeBetween(x.shape(), 0, at);
    const int64_t run = SizeBetween(x.shape(), at + 1, x.rank());
    for (int i = 0; i < count; ++i) {
      if (rows == 1 && run > 0) {
        // Parts that lie together are shared.
        const Tensor flat = x.Reshaped({count, run});
        ctx.set_output(i, flat.Rows(i, i + 1).Reshaped(shape));
        continue;
      }
      SLUICE_ASSIGN_OR_RETURN(Tensor & part, ctx.Output(i, shape));
      Box box;
      box.Add(rows, run * mover.size, count * run * mover.size);
      box.Add(run, mover.size, mover.size);
      MoveBox(ctx, mover, std::move(box), ElementAt(part, mover, 0),
              ElementAt(x, mover, i * run));
    }
    return absl::OkStatus();
  }

 private:
  const int64_t axis_;
};

}  // namespace pack_ops
}  // namespace

SLUICE_OP(Pack)
    .Input("values: N * T")
    .Output("output: T")
    .Attr("N: int >= 1")
    .Attr("T: type")
    .Attr("axis: int = 0")
    .Shape(pack_ops::PackShape)
    .Gradient([](Scope& scope, const Node& op,
                 std::span<const Output> dy) -> Grads {
      std::vector<Grad> grads;
      for (Output part : scope.Named("unstack").AddMulti(
               "Unpack", {dy[0]},
               {{"num", static_cast<int64_t>(op.num_inputs())},
                {"axis", op.attr<int64_t>("axis")}})) {
        grads.push_back(part);
      }
      if (!scope.ok()) return scope.status();
      return grads;
    });

SLUICE_OP(Unpack)
    .Input("value: T")
    .Output("output: num * T")
    .Attr("num: int >= 0")
    .Attr("T: type")
    .Attr("axis: int = 0")
    .Shape(pack_ops::UnpackShape)
    .Gradient([](Scope& scope, const Node& op,
                 std::span<const Output> dy) -> Grads {
      return std::vector<Grad>{
          scope.Named("stack").Add("Pack", {dy.begin(), dy.end()},
                                   {{"axis", op.attr<int64_t>("axis")}})};
    });

SLUICE_KERNEL(Pack, kCpu).Class<pack_ops::PackKernel>();
SLUICE_KERNEL(Unpack, kCpu).Class<pack_ops::UnpackKernel>();

}  // namespace sluice
