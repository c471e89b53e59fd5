// Kernels that may write their result over an input: the same values come out,
// also when several inputs are one tensor; and large tensors, which are split
// over threads.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "sluice/graph/scope.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/kernel/run_kernel.h"
#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {
namespace in_place {

struct Case {
  const char* op;
  std::vector<int> inputs;  // Numbers of the tensors below.
  AttrMap attrs = {};
};

Tensor Input(int i) {
  switch (i) {
    case 0:
      return Tensor::Of<float>({2, 3}, {1, -2, 3, 0.5, 5, -6});
    case 1:
      return Tensor::Of<float>({2, 3}, {4, 1, -1, 2, 0.25, 7});
    case 2:
      return Tensor::Of<float>({3}, {10, 20, 30});
    case 3:
      return Tensor::Scalar<float>(0.75f);
    case 4:
      return Tensor::Scalar<int32_t>(1);
    default:
      return Tensor::Of<int32_t>({2}, {2, 0});
  }
}

// Runs the op as the last user of its inputs; the same tensor given twice is in
// one slot, as an executor would have it.
std::vector<Tensor> RunAsLastUser(const Case& test) {
  Graph graph;
  Scope scope(graph);
  std::map<int, int32_t> slot_of;
  std::vector<Slot> slots(8);
  std::vector<int32_t> at;
  std::vector<Output> inputs;
  for (int i : test.inputs) {
    const auto [it, added] =
        slot_of.try_emplace(i, static_cast<int32_t>(slot_of.size()));
    if (added) {
      slots[it->second].tensor = Input(i);
      slots[it->second].kind = Slot::Kind::kValue;
    }
    at.push_back(it->second);
    inputs.push_back(
        scope.Add("Placeholder", {}, {{"dtype", Input(i).dtype()}}));
  }
  const Node* node = scope.AddNode(test.op, inputs, test.attrs);
  if (node == nullptr) return {};
  const auto kernel = MakeKernel(*node, ScratchDevice());
  const auto last_use = std::make_unique<bool[]>(at.size());
  std::fill_n(last_use.get(), at.size(), true);
  Step step;
  KernelContext ctx(step, ScratchDevice(), slots.data());
  const NodeSlots where{node, at.data(), last_use.get(),
                        static_cast<int32_t>(slot_of.size()),
                        node->output_types().data()};
  ctx.Enter(where);
  if (!kernel.ok() || !(*kernel)->Run(ctx).ok()) return {};
  std::vector<Tensor> outputs;
  for (int i = 0; i < node->num_outputs(); ++i) {
    outputs.push_back(slots[slot_of.size() + i].tensor);
  }
  return outputs;
}

TEST(InPlace, GivesWhatAFreshOutputGives) {
  const std::vector<Case> cases = {
      {"Sub", {0, 1}},
      {"Sub", {0, 0}},
      {"Sub", {0, 2}},
      {"Sub", {2, 0}},
      {"Sub", {0, 3}},
      {"Sub", {3, 0}},
      {"Less", {0, 1}},
      {"Pow", {0, 0}},
      {"Neg", {0}},
      {"Tanh", {0}},
      {"TanhGrad", {0, 1}},
      {"TanhGrad", {0, 0}},
      {"AddN", {0, 1, 0, 1, 0}},
      {"AddN", {0}},
      {"Cumsum", {0, 4}},
      {"Cumsum", {0, 4}, {{"exclusive", true}, {"reverse", true}}},
      {"Cumprod", {0, 4}},
      {"ClipByValue", {0, 1, 0}},
      {"ClipByValue", {0, 0, 1}},
      {"ClipByValue", {0, 3, 1}},
      {"Relu", {0}},
      {"ReluGrad", {0, 1}},
      {"LeakyRelu", {0}},
      {"LeakyReluGrad", {1, 0}},
      {"Softmax", {0}},
      {"LogSoftmax", {0}},
      {"SparseSoftmaxCrossEntropyWithLogits", {0, 5}},
      {"SoftmaxCrossEntropyWithLogits", {0, 1}},
      {"BiasAdd", {0, 2}},
      {"Sum", {0, 4}},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.op);
    OpTest op(test.op);
    for (const auto& [name, value] : test.attrs) op.Attr(name, value);
    for (int i : test.inputs) op.AddInput(Input(i));
    SLUICE_ASSERT_OK(op.Run());
    const std::vector<Tensor> outputs = RunAsLastUser(test);
    ASSERT_EQ(outputs.size(), size_t(op.node().num_outputs()));
    for (size_t i = 0; i < outputs.size(); ++i) {
      ExpectClose(outputs[i], op.output(static_cast<int>(i)), 0);
    }
  }
}

TEST(InPlace, TakesAnInputsMemoryOver) {
  EXPECT_TRUE(RunAsLastUser({"Sub", {0, 3}})[0].unique());
  const Tensor x = Input(0);
  OpTest op("Sub");
  op.AddInput(x).AddInput(x);
  SLUICE_ASSERT_OK(op.Run());
  EXPECT_FALSE(op.output(0).SharesBufferWith(x));
}

Tensor Counting(const Shape& shape) {
  Tensor tensor(DType::kFloat, shape);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    tensor.mutable_data<float>()[i] = static_cast<float>(i % 1000) / 100;
  }
  return tensor;
}

TEST(LargeTensors, AreSplitWithoutALoss) {
  const Tensor x = Counting({700, 500});
  const Tensor row = Counting({500});
  const Tensor column = Counting({700, 1});
  const auto run = [](const char* name, std::vector<Tensor> inputs) {
    OpTest op(name);
    for (Tensor& input : inputs) op.AddInput(std::move(input));
    EXPECT_TRUE(op.Run().ok()) << name;
    return op.output(0);
  };
  const Tensor sum = run("AddV2", {x, x});
  const Tensor by_row = run("Sub", {x, row});
  const Tensor by_column = run("Mul", {column, x});
  const Tensor softmax = run("Softmax", {x});
  const Tensor exp = run("Exp", {x});
  const Tensor biased = run("BiasAdd", {x, row});
  const Tensor total = run("AddN", {x, x, x});
  for (int64_t i = 0; i < x.size(); ++i) {
    const float value = x.data<float>()[i];
    ASSERT_EQ(sum.data<float>()[i], value + value);
    ASSERT_EQ(by_row.data<float>()[i], value - row.data<float>()[i % 500]);
    ASSERT_EQ(by_column.data<float>()[i],
              value * column.data<float>()[i / 500]);
    ASSERT_NEAR(exp.data<float>()[i], std::exp(value), 1e-6 * std::exp(value));
    ASSERT_EQ(biased.data<float>()[i], value + row.data<float>()[i % 500]);
    ASSERT_EQ(total.data<float>()[i], value + value + value);
  }
  for (int64_t r = 0; r < 700; r += 100) {
    double row_sum = 0;
    for (int64_t j = 0; j < 500; ++j) {
      row_sum += softmax.data<float>()[r * 500 + j];
    }
    EXPECT_NEAR(row_sum, 1, 1e-5);
  }
}

TEST(Equal, MayAnswerForShapesThatDoNotFit) {
  for (const char* name : {"Equal", "NotEqual"}) {
    OpTest op(name);
    op.AddInput<float>({2}, {1, 2}).AddInput<float>({3}, {1, 2, 3});
    op.Attr("incompatible_shape_error", false);
    SLUICE_ASSERT_OK(op.Run());
    EXPECT_EQ(op.output(0).rank(), 0);
    EXPECT_EQ(op.output(0).scalar<bool>(), std::string(name) == "NotEqual");
    EXPECT_EQ(InferredShape(name, {"[2]", "[3]"},
                            {{"incompatible_shape_error", false}}),
              "?");
  }
}

// What TensorFlow turns into an internal error.
TEST(Division, OfIntegersByZeroIsAlwaysNamed) {
  for (const char* name : {"TruncateDiv", "TruncateMod"}) {
    OpTest op(name);
    op.AddInput<int32_t>({2}, {1, 2}).AddInput<int32_t>({2}, {1, 0});
    EXPECT_THAT(op.Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                   "Integer division by zero"));
  }
}

TEST(TopK, TakesKFromItsAttribute) {
  OpTest op("TopK");
  op.AddInput<float>({4}, {3, std::nanf(""), 9, 3}).Attr("k", 3);
  SLUICE_ASSERT_OK(op.Run());
  ExpectClose(op.output(0), Tensor::Of<float>({3}, {9, 3, 3}));
  ExpectClose(op.output(1), Tensor::Of<int32_t>({3}, {2, 0, 3}));
}

// Python keeps the axes of a broadcast and the shapes of a reduction for each
// graph, and makes the nodes that compute them only once.
TEST(MathGradients, ComputeStaticShapesOncePerGraph) {
  Graph graph;
  Scope scope(graph);
  const auto placeholder = [&](PartialShape shape) {
    return scope.Add("Placeholder", {},
                     {{"dtype", DType::kFloat}, {"shape", std::move(shape)}});
  };
  const Output x = placeholder({2, 3});
  Node* add = scope.AddNode("AddV2", {x, placeholder({3})});
  Node* sum = scope.AddNode("Sum", {x, scope.Ints({1})});
  const auto nodes_made = [&](Node* node, PartialShape dy_shape) {
    const std::vector<Output> dy = {placeholder(std::move(dy_shape))};
    const int before = graph.num_nodes();
    EXPECT_TRUE(node->op().gradient(scope, *node, dy).ok());
    return graph.num_nodes() - before;
  };
  EXPECT_EQ(nodes_made(add, {2, 3}), 3 + 4);
  EXPECT_EQ(nodes_made(add, {2, 3}), 4);
  EXPECT_EQ(nodes_made(sum, {2}), 17 + 4);
  EXPECT_EQ(nodes_made(sum, {2}), 4);
  EXPECT_TRUE(scope.ok()) << scope.status();
}

}  // namespace in_place
}  // namespace
}  // namespace sluice
