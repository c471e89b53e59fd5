#include "sluice/kernel/testing/op_test.h"

#include <cmath>

#include "sluice/graph/op_def.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/kernel/run_kernel.h"

namespace sluice {

// A source of any type and shape, so that nodes under test have inputs.
SLUICE_OP(TestInput)
    .Output("output: dtype")
    .Attr("dtype: type")
    .Attr("shape: shape = ?")
    .Shape(shapes::FromShapeAttr);

OpTest::OpTest(std::string_view op) : op_(op) {}
OpTest::~OpTest() = default;

OpTest& OpTest::AddInput(Tensor value) {
  inputs_.push_back(std::move(value));
  return *this;
}

OpTest& OpTest::Attr(std::string_view name, AttrValue value) {
  attrs_.Set(name, std::move(value));
  return *this;
}

Device& TestDevice() {
  static Device* device = new Device(
      *DeviceName::Parse("/job:localhost/replica:0/task:0/device:CPU:0"), 1);
  return *device;
}

absl::Status OpTest::Run() {
  graph_ = std::make_unique<Graph>();
  NodeSpec spec{"op", op_, {}, {}, attrs_, ""};
  for (size_t i = 0; i < inputs_.size(); ++i) {
    SLUICE_ASSIGN_OR_RETURN(Node * input,
                            graph_->AddNode({StrCat("input", i),
                                             "TestInput",
                                             {},
                                             {},
                                             {{"dtype", inputs_[i].dtype()}},
                                             ""}));
    spec.inputs.push_back(input->output(0));
  }
  SLUICE_ASSIGN_OR_RETURN(node_, graph_->AddNode(std::move(spec)));
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel,
                          MakeKernel(*node_, TestDevice()));
  SLUICE_ASSIGN_OR_RETURN(outputs_,
                          RunKernel(*kernel, *node_, TestDevice(), inputs_));
  return absl::OkStatus();
}

namespace {

template <typename T>
void ExpectAllClose(const Tensor& got, const Tensor& want, double tolerance) {
  for (int64_t i = 0; i < want.size(); ++i) {
    const double g = static_cast<double>(got.data<T>()[i]);
    const double w = static_cast<double>(want.data<T>()[i]);
    if (std::isnan(w) && std::isnan(g)) continue;
    if (g == w) continue;
    EXPECT_LE(std::abs(g - w), tolerance * std::max(1.0, std::abs(w)))
        << "element " << i << ": got " << g << ", want " << w;
  }
}

}  // namespace

void ExpectClose(const Tensor& got, const Tensor& want, double tolerance) {
  ASSERT_EQ(got.dtype(), want.dtype());
  ASSERT_EQ(got.shape().DebugString(), want.shape().DebugString());
  if (got.dtype() == DType::kFloat) {
    ExpectAllClose<float>(got, want, tolerance);
  } else if (got.dtype() == DType::kDouble) {
    ExpectAllClose<double>(got, want, tolerance);
  } else {
    EXPECT_TRUE(TensorsEqual(got, want))
        << got.DebugString(20) << " vs " << want.DebugString(20);
  }
}

std::string InferredShape(std::string_view op,
                          const std::vector<std::string>& input_shapes,
                          const AttrMap& attrs, DType input_type) {
  Graph graph;
  NodeSpec spec{"op", std::string(op), {}, {}, attrs, ""};
  for (size_t i = 0; i < input_shapes.size(); ++i) {
    absl::StatusOr<AttrValue> shape = ParseAttrValue("shape", input_shapes[i]);
    if (!shape.ok()) return std::string(shape.status().message());
    auto input = graph.AddNode({StrCat("input", i),
                                "TestInput",
                                {},
                                {},
                                {{"dtype", input_type}, {"shape", *shape}},
                                ""});
    if (!input.ok()) return std::string(input.status().message());
    spec.inputs.push_back((*input)->output(0));
  }
  auto node = graph.AddNode(std::move(spec));
  if (!node.ok()) return std::string(node.status().message());
  const std::string text = (*node)->output_shape(0).DebugString();
  return text == "<unknown>" ? "?" : text;
}

}  // namespace sluice
