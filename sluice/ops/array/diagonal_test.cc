#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {
namespace diagonal_test {

using ::testing::HasSubstr;

TEST(Diagonals, StandInTheMiddleOfZeros) {
  OpTest diag("Diag");
  diag.AddInput<int32_t>({2}, {3, 4});
  SLUICE_ASSERT_OK(diag.Run());
  ExpectClose(diag.output(0), Tensor::Of<int32_t>({2, 2}, {3, 0, 0, 4}));

  OpTest matrices("MatrixDiag");
  matrices.AddInput<float>({2, 2}, {1, 2, 3, 4});
  SLUICE_ASSERT_OK(matrices.Run());
  ExpectClose(matrices.output(0),
              Tensor::Of<float>({2, 2, 2}, {1, 0, 0, 2, 3, 0, 0, 4}));
}

TEST(Diagonals, AreTakenOutOfTensorsWhoseDimensionsComeTwice) {
  OpTest part("DiagPart");
  part.AddInput<float>({2, 2}, {1, 2, 3, 4});
  SLUICE_ASSERT_OK(part.Run());
  ExpectClose(part.output(0), Tensor::Of<float>({2}, {1, 4}));

  OpTest bad("DiagPart");
  bad.AddInput<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(bad.Run(),
              StatusIs(absl::StatusCode::kInvalidArgument, testing::_));
}

TEST(Diagonals, AreReadAndSetInMatricesOfAnyShape) {
  OpTest part("MatrixDiagPart");
  part.AddInput<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  SLUICE_ASSERT_OK(part.Run());
  ExpectClose(part.output(0), Tensor::Of<float>({2}, {1, 5}));

  OpTest set("MatrixSetDiag");
  set.AddInput<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  set.AddInput<float>({2}, {8, 9});
  SLUICE_ASSERT_OK(set.Run());
  ExpectClose(set.output(0), Tensor::Of<float>({3, 2}, {8, 2, 3, 9, 5, 6}));

  OpTest bad("MatrixSetDiag");
  bad.AddInput<float>({2, 2}, {1, 2, 3, 4});
  bad.AddInput<float>({3}, {8, 9, 9});
  EXPECT_THAT(bad.Run(),
              StatusIs(absl::StatusCode::kInvalidArgument, testing::_));
}

TEST(Diagonals, HaveShapesThatAreOnlyPartlyKnown) {
  EXPECT_EQ(InferredShape("Diag", {"[2,?]"}), "[2,?,2,?]");
  EXPECT_EQ(InferredShape("DiagPart", {"[2,?,?,3]"}), "[2,3]");
  EXPECT_EQ(InferredShape("MatrixDiag", {"[2,?]"}), "[2,?,?]");
  EXPECT_EQ(InferredShape("MatrixDiagPart", {"[5,?,3]"}), "[5,?]");
}

TEST(SparseFillEmptyRows, GivesEveryRowAnElement) {
  OpTest op("SparseFillEmptyRows");
  op.AddInput<int64_t>({3, 2}, {3, 1, 1, 0, 3, 0});
  op.AddInput<float>({3}, {10, 20, 30});
  op.AddInput<int64_t>({2}, {4, 2});
  op.AddInput<float>({}, {-1});
  SLUICE_ASSERT_OK(op.Run());
  ExpectClose(op.output(0),
              Tensor::Of<int64_t>({5, 2}, {0, 0, 1, 0, 2, 0, 3, 1, 3, 0}));
  ExpectClose(op.output(1), Tensor::Of<float>({5}, {-1, 20, -1, 10, 30}));
  ExpectClose(op.output(3), Tensor::Of<int64_t>({3}, {3, 1, 4}));

  OpTest grad("SparseFillEmptyRowsGrad");
  grad.AddInput<int64_t>({3}, {3, 1, 4});
  grad.AddInput<float>({5}, {1, 2, 4, 8, 16});
  SLUICE_ASSERT_OK(grad.Run());
  ExpectClose(grad.output(0), Tensor::Of<float>({3}, {8, 2, 16}));
  ExpectClose(grad.output(1), Tensor::Of<float>({}, {5}));
}

TEST(SparseFillEmptyRows, RefusesARowThatIsNotThere) {
  OpTest op("SparseFillEmptyRows");
  op.AddInput<int64_t>({1, 2}, {4, 0});
  op.AddInput<float>({1}, {1});
  op.AddInput<int64_t>({2}, {4, 2});
  op.AddInput<float>({}, {0});
  EXPECT_THAT(op.Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("indices(0, 0) is invalid: 4")));
}

}  // namespace diagonal_test
}  // namespace
}  // namespace sluice
