#include "sluice/autodiff/testing/test_ops.h"

#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"

namespace sluice {

SLUICE_OP(TestSource)
    .Output("output: dtype")
    .Attr("dtype: type")
    .Attr("shape: shape = ?")
    .Shape(shapes::FromShapeAttr);

SLUICE_OP(TestTimes)
    .Input("a: T")
    .Input("b: T")
    .Output("c: T")
    .Attr("T: type")
    .Shape(shapes::MergeAllInputs)
    .Gradient([](Scope& scope, const Node& op,
                 std::span<const Output> dy) -> Grads {
      const Output da = scope.Add("TestTimes", {dy[0], op.input(1)});
      const Output db = scope.Add("TestTimes", {op.input(0), dy[0]});
      return std::vector<Grad>{da, db};
    });

SLUICE_OP(TestHalves)
    .Input("x: T")
    .Output("y: T")
    .Output("z: T")
    .Attr("T: type")
    .Shape([](ShapeContext& c) {
      c.set_output(0, c.input(0));
      c.set_output(1, c.input(0));
      return absl::OkStatus();
    })
    .Gradient([](Scope& scope, const Node&,
                 std::span<const Output> dy) -> Grads {
      return std::vector<Grad>{scope.Add("TestTimes", {dy[0], dy[1]})};
    });

SLUICE_OP(TestRows)
    .Input("params: T")
    .Input("ids: Tids")
    .Output("rows: T")
    .Attr("T: type")
    .Attr("Tids: {int32, int64}")
    .Gradient([](Scope& scope, const Node& op,
                 std::span<const Output> dy) -> Grads {
      const Output shape = scope.Add("Shape", {op.input(0)});
      return std::vector<Grad>{Grad::Slices(dy[0], op.input(1), shape), Grad()};
    });

SLUICE_OP(TestFloor)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: type")
    .Shape(shapes::SameAsInput)
    .NotDifferentiable();

SLUICE_OP(TestOpaque)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: type")
    .Shape(shapes::SameAsInput);

// Its gradient forgets an input.
SLUICE_OP(TestBadCount)
    .Input("a: T")
    .Input("b: T")
    .Output("c: T")
    .Attr("T: type")
    .Gradient([](Scope&, const Node&, std::span<const Output> dy) -> Grads {
      return std::vector<Grad>{dy[0]};
    });

// Its gradient has the shape of its output, not of its input.
SLUICE_OP(TestBadShape)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: type")
    .Shape([](ShapeContext& c) {
      c.set_output(0, PartialShape{7});
      return absl::OkStatus();
    })
    .Gradient([](Scope&, const Node&, std::span<const Output> dy) -> Grads {
      return std::vector<Grad>{dy[0]};
    });

SLUICE_KERNEL(TestTimes, kCpu)
    .Type("T", DType::kDouble)
    .Function([](KernelContext& ctx) -> absl::Status {
      const Tensor& a = ctx.input(0);
      const Tensor& b = ctx.input(1);
      SLUICE_ASSIGN_OR_RETURN(Tensor & c, ctx.Output(0, a.shape()));
      for (int64_t i = 0; i < a.size(); ++i) {
        c.mutable_data<double>()[i] = a.data<double>()[i] * b.data<double>()[i];
      }
      return absl::OkStatus();
    });

// Wrong on purpose: y = x + 1 whose gradient doubles.
SLUICE_OP(TestWrongGradient)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: type")
    .Shape(shapes::SameAsInput)
    .Gradient([](Scope& scope, const Node&,
                 std::span<const Output> dy) -> Grads {
      const Output two = scope.Const(Tensor::Vector<double>({2, 2}));
      return std::vector<Grad>{scope.Add("TestTimes", {dy[0], two})};
    });

SLUICE_KERNEL(TestWrongGradient, kCpu)
    .Type("T", DType::kDouble)
    .Function([](KernelContext& ctx) -> absl::Status {
      const Tensor& x = ctx.input(0);
      SLUICE_ASSIGN_OR_RETURN(Tensor & y, ctx.Output(0, x.shape()));
      for (int64_t i = 0; i < x.size(); ++i) {
        y.mutable_data<double>()[i] = x.data<double>()[i] + 1;
      }
      return absl::OkStatus();
    });

Output TestSource(const Scope& scope, std::string_view name, PartialShape shape,
                  DType dtype) {
  return scope.Named(name).Add("TestSource", {},
                               {{"dtype", dtype}, {"shape", std::move(shape)}});
}

}  // namespace sluice
