// The gradients of the built-in ops against finite differences, with shapes and
// integer inputs known while the graph is built and without. How the gradients
// look in a graph is the matter of golden_gradients_test.cc.

#include <gtest/gtest.h>

#include "sluice/autodiff/testing/gradient_check.h"

namespace sluice {
namespace {

struct OpCase {
  std::string op;
  std::vector<Tensor> inputs;
  AttrMap attrs = {};
  // Of some ops only the first outputs and inputs have a gradient, as in
  // TensorFlow; -1: all.
  int outputs = -1;
  int inputs_with_gradient = -1;
  // Some gradients need to know the rank; TensorFlow's do, too.
  bool needs_shapes = false;
};

Tensor Doubles(const Shape& shape, std::initializer_list<double> values) {
  return Tensor::Of<double>(shape, values);
}
Tensor Ints(std::initializer_list<int32_t> values) {
  return Tensor::Vector<int32_t>(values);
}
Tensor Int(int32_t value) { return Tensor::Scalar<int32_t>(value); }

// No two alike and none where a function has a corner.
Tensor Matrix() { return Doubles({2, 3}, {0.3, -1.2, 2.5, 0.8, -0.4, 1.1}); }
Tensor Positive() { return Doubles({2, 3}, {0.3, 1.2, 2.5, 0.8, 0.4, 1.1}); }
// Nowhere as large as Matrix(), where Maximum has a corner.
Tensor Other() { return Doubles({2, 3}, {0.9, -1.0, 2.2, 1.3, -0.7, 0.6}); }
Tensor Small() { return Doubles({2, 3}, {0.3, -0.2, 0.5, 0.8, -0.4, 0.1}); }
Tensor Row() { return Doubles({3}, {0.7, -0.6, 1.9}); }
Tensor Column() { return Doubles({2, 1}, {1.4, 0.6}); }

std::vector<OpCase> UnaryCases() {
  std::vector<OpCase> cases;
  for (const char* op :
       {"Neg",      "Abs",       "Square",     "Exp",     "Expm1",
        "Sin",      "Cos",       "Tan",        "Sinh",    "Cosh",
        "Tanh",     "Asinh",     "Atan",       "Sigmoid", "Erf",
        "Erfc",     "Sign",      "Reciprocal", "Inv",     "Relu",
        "Relu6",    "LeakyRelu", "Elu",        "Selu",    "Softplus",
        "Softsign", "Softmax",   "LogSoftmax", "L2Loss",  "Identity"}) {
    cases.push_back({op, {Matrix()}});
  }
  for (const char* op : {"Sqrt", "Rsqrt", "Log", "Log1p"}) {
    cases.push_back({op, {Positive()}});
  }
  for (const char* op : {"Asin", "Acos", "Atanh"}) {
    cases.push_back({op, {Small()}});
  }
  cases.push_back({"Acosh", {Doubles({2}, {1.3, 2.5})}});
  return cases;
}

std::vector<OpCase> BinaryCases() {
  std::vector<OpCase> cases;
  for (const char* op :
       {"Add", "AddV2", "Sub", "Mul", "RealDiv", "Div", "DivNoNan", "MulNoNan",
        "Maximum", "Minimum", "SquaredDifference", "Atan2"}) {
    cases.push_back({op, {Matrix(), Other()}});
    cases.push_back({op, {Matrix(), Row()}});
    cases.push_back({op, {Column(), Matrix()}});
    cases.push_back({op, {Tensor::Scalar<double>(0.9), Row()}});
  }
  cases.push_back({"Pow", {Positive(), Row()}});
  cases.push_back({"Pow", {Column(), Matrix()}});
  cases.push_back({"Xlogy", {Matrix(), Positive()}});
  cases.push_back({"Xdivy", {Matrix(), Positive()}});
  cases.push_back({"AddN", {Matrix(), Positive(), Small()}});
  return cases;
}

std::vector<OpCase> ReductionCases() {
  std::vector<OpCase> cases;
  for (const char* op : {"Sum", "Mean", "Prod", "Max", "Min"}) {
    cases.push_back({op, {Matrix(), Ints({0})}});
    cases.push_back({op, {Matrix(), Ints({-1})}, {{"keep_dims", true}}});
    cases.push_back({op, {Matrix(), Ints({0, 1})}});
  }
  cases.push_back({"Cumsum", {Matrix(), Int(1)}, {{"reverse", true}}});
  cases.push_back({"Cumsum", {Matrix(), Int(0)}, {{"exclusive", true}}});
  cases.push_back({"Cumprod", {Matrix(), Int(1)}});
  cases.push_back({"SegmentSum", {Matrix(), Ints({0, 0})}});
  cases.push_back({"SegmentMean", {Matrix(), Ints({0, 0})}});
  cases.push_back({"SegmentMax", {Matrix(), Ints({0, 0})}});
  cases.push_back({"UnsortedSegmentSum", {Matrix(), Ints({2, 0}), Int(3)}});
  cases.back().needs_shapes = true;
  // An empty segment would have the lowest number there is.
  cases.push_back({"UnsortedSegmentMax", {Matrix(), Ints({0, 0}), Int(1)}});
  cases.back().needs_shapes = true;
  cases.push_back({"UnsortedSegmentProd", {Matrix(), Ints({1, 1}), Int(2)}});
  cases.back().needs_shapes = true;
  for (const char* op :
       {"SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"}) {
    cases.push_back({op, {Matrix(), Ints({1, 0, 1}), Ints({0, 0, 1})}});
  }
  // Two entries at one place and a row without any.
  cases.push_back({"SparseTensorDenseMatMul",
                   {Tensor::Of<int64_t>({3, 2}, {0, 1, 2, 0, 0, 1}), Row(),
                    Tensor::Vector<int64_t>({3, 2}), Matrix()}});
  return cases;
}

std::vector<OpCase> ArrayCases() {
  const Tensor cube = Doubles({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  return {
      {"Reshape", {Matrix(), Ints({3, -1})}},
      {"ExpandDims", {Matrix(), Int(1)}},
      {"Squeeze", {Column()}, {{"squeeze_dims", std::vector<int64_t>{1}}}},
      {"Transpose", {Matrix(), Ints({1, 0})}},
      {"Tile", {Matrix(), Ints({2, 3})}},
      {"BroadcastTo", {Row(), Ints({2, 3})}},
      {"Fill", {Ints({2, 2}), Tensor::Scalar<double>(1.5)}},
      {"Pad", {Matrix(), Tensor::Of<int32_t>({2, 2}, {1, 0, 2, 1})}},
      {"PadV2",
       {Matrix(), Tensor::Of<int32_t>({2, 2}, {1, 0, 2, 1}),
        Tensor::Scalar<double>(0.5)},
       {},
       -1,
       1},
      {"Pack", {Row(), Row()}, {{"axis", 1}}},
      {"Unpack", {Matrix()}, {{"num", 3}, {"axis", 1}}},
      {"Concat", {Int(1), Matrix(), Column()}},
      {"ConcatV2", {Matrix(), Column(), Int(-1)}},
      {"ConcatV2", {Matrix(), Positive(), Int(0)}},
      {"Split", {Int(1), Matrix()}, {{"num_split", 3}}},
      {"SplitV", {Matrix(), Ints({1, 2}), Int(1)}, {{"num_split", 2}}},
      {"Slice", {Matrix(), Ints({0, 1}), Ints({2, 2})}},
      {"StridedSlice",
       {Matrix(), Ints({0, 2}), Ints({1, 0}), Ints({1, -1})},
       {{"shrink_axis_mask", 1}}},
      {"Gather", {Matrix(), Ints({1, 0, 1})}},
      {"GatherV2", {Matrix(), Ints({1, 0, 1}), Int(0)}},
      {"GatherV2", {Matrix(), Ints({2, 0, 2}), Int(1)}},
      {"GatherV2",
       {Matrix(), Tensor::Of<int32_t>({2, 2}, {2, 0, 1, 1}), Int(1)},
       {{"batch_dims", 1}},
       -1,
       -1,
       /*needs_shapes=*/true},
      {"SparseReorder",
       {Tensor::Of<int64_t>({3, 2}, {2, 0, 0, 1, 1, 2}), Row(),
        Tensor::Vector<int64_t>({3, 3})}},
      {"GatherNd", {Matrix(), Tensor::Of<int32_t>({2, 2}, {1, 2, 0, 0})}},
      {"ScatterNd",
       {Tensor::Of<int32_t>({2, 1}, {2, 0}), Matrix(), Ints({4, 3})}},
      {"ReverseV2", {Matrix(), Ints({1})}},
      {"Select",
       {Tensor::Of<bool>({2, 3}, {true, false, true, true, false, false}),
        Matrix(), Positive()}},
      {"SelectV2", {Tensor::Of<bool>({2, 1}, {true, false}), Row(), Matrix()}},
      {"IdentityN", {Matrix(), Row()}},
      {"DynamicPartition", {Matrix(), Ints({1, 0})}, {{"num_partitions", 2}}},
      {"DynamicStitch",
       {Ints({1, 0}), Ints({2}), Matrix(), Doubles({1, 3}, {5, 6, 7})}},
      {"Cast", {Matrix()}, {{"DstT", DType::kDouble}}},
      {"MatMul", {Matrix(), Doubles({3, 2}, {1, 2, 3, 4, 5, 6})}},
      {"MatMul", {Matrix(), Positive()}, {{"transpose_b", true}}},
      {"MatMul", {Matrix(), Positive()}, {{"transpose_a", true}}},
      {"MatMul",
       {Matrix(), Doubles({3, 2}, {1, 2, 3, 4, 5, 6})},
       {{"transpose_a", true}, {"transpose_b", true}}},
      {"BatchMatMul", {cube, cube}},
      {"BatchMatMul", {cube, cube}, {{"adj_x", true}}},
      {"BatchMatMulV2", {cube, Doubles({2, 1}, {3, 4})}, {{"adj_x", true}}},
      {"BatchMatMulV2", {Doubles({2, 2}, {1, 2, 3, 5}), cube}},
      {"BiasAdd", {Matrix(), Row()}},
      {"SoftmaxCrossEntropyWithLogits",
       {Matrix(), Doubles({2, 3}, {0.2, 0.5, 0.3, 0.1, 0.1, 0.8})},
       {},
       1},
      {"SparseSoftmaxCrossEntropyWithLogits", {Matrix(), Ints({2, 0})}, {}, 1},
      {"TopKV2", {Matrix(), Int(2)}},
      {"TanhGrad", {Small(), Matrix()}},
      {"SigmoidGrad", {Positive(), Matrix()}},
      {"ReluGrad", {Matrix(), Positive()}},
      {"EluGrad", {Matrix(), Small()}},
  };
}

std::vector<OpCase> AllCases() {
  std::vector<OpCase> all;
  for (const auto& part :
       {UnaryCases(), BinaryCases(), ReductionCases(), ArrayCases()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

double Error(const OpCase& c, bool static_shapes) {
  return MaxGradientError(c.op, c.inputs, c.attrs,
                          {static_shapes, c.outputs, c.inputs_with_gradient});
}

TEST(OpGradients, AgreeWithFiniteDifferences) {
  for (const OpCase& c : AllCases()) {
    SCOPED_TRACE(c.op);
    EXPECT_LT(Error(c, /*static_shapes=*/true), 1e-6) << c.op;
  }
}

TEST(OpGradients, AgreeWithFiniteDifferencesWhenShapesAreNotKnown) {
  for (const OpCase& c : AllCases()) {
    if (c.needs_shapes) continue;
    SCOPED_TRACE(c.op);
    EXPECT_LT(Error(c, /*static_shapes=*/false), 1e-6) << c.op;
  }
}

}  // namespace
}  // namespace sluice
