#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {

using testing::HasSubstr;

// [[0, 2, 0], [3, 0, 4]] and a matrix that fits it.
OpTest& AddSparseMatrix(OpTest& op) {
  return op.AddInput<int64_t>({3, 2}, {0, 1, 1, 0, 1, 2})
      .AddInput<float>({3}, {2, 3, 4})
      .AddInput<int64_t>({2}, {2, 3});
}

TEST(SparseTensorDenseMatMul, MultipliesAsDenseMatricesDo) {
  OpTest plain("SparseTensorDenseMatMul");
  AddSparseMatrix(plain).AddInput<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  SLUICE_ASSERT_OK(plain.Run());
  ExpectClose(plain.output(0), Tensor::Of<float>({2, 2}, {6, 8, 23, 30}));
  OpTest second("SparseTensorDenseMatMul");
  AddSparseMatrix(second).AddInput<float>({2, 3}, {1, 3, 5, 2, 4, 6});
  second.Attr("adjoint_b", true);
  SLUICE_ASSERT_OK(second.Run());
  ExpectClose(second.output(0), Tensor::Of<float>({2, 2}, {6, 8, 23, 30}));
  OpTest first("SparseTensorDenseMatMul");
  AddSparseMatrix(first).AddInput<float>({2, 1}, {1, 10});
  first.Attr("adjoint_a", true);
  SLUICE_ASSERT_OK(first.Run());
  ExpectClose(first.output(0), Tensor::Of<float>({3, 1}, {30, 2, 40}));
  OpTest both("SparseTensorDenseMatMul");
  AddSparseMatrix(both).AddInput<float>({1, 2}, {1, 10});
  both.Attr("adjoint_a", true).Attr("adjoint_b", true);
  SLUICE_ASSERT_OK(both.Run());
  ExpectClose(both.output(0), Tensor::Of<float>({3, 1}, {30, 2, 40}));
}

TEST(SparseTensorDenseMatMul, AddsEntriesThatRepeatAndTakesNone) {
  OpTest twice("SparseTensorDenseMatMul");
  twice.AddInput<int32_t>({2, 2}, {0, 0, 0, 0}).AddInput<double>({2}, {1, 2});
  twice.AddInput<int64_t>({2}, {1, 1}).AddInput<double>({1, 2}, {5, 7});
  SLUICE_ASSERT_OK(twice.Run());
  ExpectClose(twice.output(0), Tensor::Of<double>({1, 2}, {15, 21}));
  OpTest none("SparseTensorDenseMatMul");
  none.AddInput<int64_t>({0, 2}, {}).AddInput<float>({0}, {});
  none.AddInput<int64_t>({2}, {2, 3}).AddInput<float>({3, 1}, {1, 2, 3});
  SLUICE_ASSERT_OK(none.Run());
  ExpectClose(none.output(0), Tensor::Of<float>({2, 1}, {0, 0}));
}

struct BadProduct {
  std::vector<int64_t> index;
  std::vector<int64_t> shape;
  Shape b;
  const char* message;
};

TEST(SparseTensorDenseMatMul, RefusesWhatDoesNotFit) {
  const BadProduct bad[] = {
      {{0, 5}, {2, 2}, {2, 2}, "k (5) from index[0,1] out of bounds (>=2)"},
      {{5, 0}, {2, 2}, {2, 2}, "m (5) from index[0,0] out of bounds (>=2)"},
      {{-1, 0}, {2, 2}, {2, 2}, "m (-1) from index[0,0] out of bounds (>=2)"},
      {{0, 0}, {2, 3}, {2, 2}, "inner dimension does not match: 3 vs. 2."},
      {{0, 0}, {2, 2}, {2}, "Tensor 'b' is not a matrix"},
      {{0, 0}, {2, 2, 2}, {2, 2}, "Tensor 'a_shape' must have 2 elements"},
      {{0, 0, 0}, {2, 2}, {2, 2}, "Number of columns of a_indices"},
      {{0, 0}, {-2, 2}, {2, 2}, ""},
  };
  for (const BadProduct& each : bad) {
    OpTest op("SparseTensorDenseMatMul");
    const int64_t width = static_cast<int64_t>(each.index.size());
    op.AddInput(Tensor::Of<int64_t>({1, width}, std::span(each.index)));
    op.AddInput<float>({1}, {1});
    op.AddInput(Tensor::Of<int64_t>({static_cast<int64_t>(each.shape.size())},
                                    std::span(each.shape)));
    op.AddInput(*Tensor::Zeros(DType::kFloat, each.b));
    EXPECT_THAT(op.Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr(each.message)));
  }
}

TEST(SparseTensorDenseMatMul, KnowsTheColumnsOfItsShape) {
  EXPECT_EQ(InferredShape("SparseTensorDenseMatMul",
                          {"[?,2]", "[?]", "[2]", "[3,4]"}, {}, DType::kInt64),
            "[?,4]");
  EXPECT_EQ(InferredShape("SparseTensorDenseMatMul", {"?", "?", "?", "?"},
                          {{"adjoint_b", true}}, DType::kInt64),
            "[?,?]");
}

}  // namespace
}  // namespace sluice
