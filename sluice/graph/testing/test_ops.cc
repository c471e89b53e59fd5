#include "sluice/graph/testing/test_ops.h"

#include "sluice/base/logging.h"
#include "sluice/graph/shape_inference.h"

namespace sluice {
namespace {

absl::Status AllLikeFirst(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(0));
  return absl::OkStatus();
}

absl::Status FromInputValue(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(PartialShape shape, c.input_as_shape(0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

SLUICE_OP(TestSource)
    .Output("output: dtype")
    .Attr("dtype: type = DT_FLOAT")
    .Attr("shape: shape = { unknown_rank: true }")
    .Shape(shapes::FromShapeAttr);

SLUICE_OP(TestVariable)
    .Output("ref: Ref(dtype)")
    .Attr("dtype: type = DT_FLOAT")
    .Stateful();

SLUICE_OP(TestAdd)
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr("T: {float, int32, string}")
    .Commutative()
    .Shape(shapes::Broadcast);

SLUICE_OP(TestAddN)
    .Input("inputs: N * T")
    .Output("sum: T")
    .Attr("N: int >= 1")
    .Attr("T: type")
    .Shape(shapes::MergeAllInputs);

SLUICE_OP(TestAssign)
    .Input("ref: Ref(T)")
    .Input("value: T")
    .Output("output_ref: Ref(T)")
    .Attr("T: type")
    .AllowsUninitialized();

SLUICE_OP(TestSplit)
    .Input("x: T")
    .Output("y: N * T")
    .Attr("N: int >= 1")
    .Attr("T: type")
    .Shape(AllLikeFirst);

SLUICE_OP(TestTuple).Input("x: Ts").Output("y: Ts").Attr("Ts: list(type) >= 1");

SLUICE_OP(TestFill)
    .Input("dims: int32")
    .Output("y: float")
    .Shape(FromInputValue);

SLUICE_OP(TestGroup);

}  // namespace

Node* AddTestNode(Graph& graph, std::string name, std::string op,
                  std::vector<Output> inputs, AttrMap attrs) {
  NodeSpec spec;
  spec.name = std::move(name);
  spec.op = std::move(op);
  spec.inputs = std::move(inputs);
  spec.attrs = std::move(attrs);
  auto node = graph.AddNode(std::move(spec));
  SLUICE_CHECK(node.ok()) << node.status().message();
  return *node;
}

Output AddTestSource(Graph& graph, std::string name, PartialShape shape) {
  return AddTestNode(graph, std::move(name), "TestSource", {},
                     {{"shape", std::move(shape)}})
      ->output(0);
}

}  // namespace sluice
