#include "sluice/kernel/testing/op_test.h"
#include "sluice/ops/random/testing/kernel_runs.h"

// Expected orders are TensorFlow's.

namespace sluice {
namespace {

using testing::ElementsAre;

Tensor FirstInts(const Shape& shape) {
  Tensor tensor(DType::kInt32, shape);
  for (int32_t i = 0; i < tensor.size(); ++i) {
    tensor.mutable_data<int32_t>()[i] = i;
  }
  return tensor;
}

TEST(RandomShuffle, OrdersAVectorAsTensorFlowDoes) {
  KernelRuns runs("RandomShuffle", {{"seed", 42}, {"seed2", 7}},
                  {FirstInts({10})});
  EXPECT_THAT(runs.NextValues<int32_t>(),
              ElementsAre(6, 0, 7, 3, 4, 8, 2, 1, 5, 9));
  EXPECT_THAT(runs.NextValues<int32_t>(),
              ElementsAre(4, 0, 3, 6, 5, 9, 2, 7, 1, 8));
  EXPECT_THAT(runs.NextValues<int32_t>(),
              ElementsAre(9, 1, 5, 0, 6, 2, 8, 7, 4, 3));
}

TEST(RandomShuffle, KeepsRowsTogether) {
  KernelRuns runs("RandomShuffle", {{"seed", 42}, {"seed2", 7}},
                  {FirstInts({6, 2})});
  EXPECT_THAT(runs.NextValues<int32_t>(),
              ElementsAre(8, 9, 0, 1, 6, 7, 10, 11, 2, 3, 4, 5));
  EXPECT_THAT(runs.NextValues<int32_t>(),
              ElementsAre(8, 9, 2, 3, 4, 5, 6, 7, 0, 1, 10, 11));
}

TEST(RandomShuffle, ShufflesStringsAndLeavesSmallTensorsAlone) {
  KernelRuns words("RandomShuffle", {{"seed", 42}, {"seed2", 7}},
                   {Tensor::Of<std::string>({2, 2}, {"a", "b", "c", "d"})});
  EXPECT_THAT(words.NextValues<std::string>(),
              testing::AnyOf(ElementsAre("a", "b", "c", "d"),
                             ElementsAre("c", "d", "a", "b")));
  KernelRuns scalar("RandomShuffle", {}, {Tensor::Scalar<float>(3)});
  EXPECT_THAT(scalar.NextValues<float>(), ElementsAre(3));
  KernelRuns empty("RandomShuffle", {}, {FirstInts({3, 0})});
  EXPECT_THAT(empty.NextValues<int32_t>(), ElementsAre());
}

TEST(RandomShuffle, KeepsAShapeThatIsOnlyPartlyKnown) {
  EXPECT_EQ(InferredShape("RandomShuffle", {"[?,3]"}), "[?,3]");
}

}  // namespace
}  // namespace sluice
