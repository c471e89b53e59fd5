// Tables in parts: lookups, and sparse updates of the rows that were looked up.

#include "sluice/client/embedding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/client/initializers.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/session/session.h"
#include "sluice/train/initialize.h"
#include "sluice/train/optimizers.h"
#include "sluice/train/replica_device_setter.h"

namespace sluice {
namespace {
namespace embedding_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> Values(const Tensor& tensor) {
  const auto data = tensor.data<float>();
  return {data.begin(), data.end()};
}

// 7 rows of zeros in 3 parts.
std::vector<Variable> TableInParts(const Scope& scope, bool resource) {
  return PartitionedVariable(
      scope.Named("table"), {7, 1}, 3,
      [](const Shape& part) { return ZerosInitializer(part); },
      {.resource = resource});
}

TEST(Embedding, TablesAreCutAlongTheirFirstDimension) {
  Graph graph;
  const Scope scope(graph);
  const std::vector<Variable> table = TableInParts(scope, false);
  std::vector<std::string> parts;
  for (const Variable& part : table) {
    parts.push_back(StrCat(part.name(), part.shape().DebugString()));
  }
  EXPECT_THAT(parts, ElementsAre("table/part_0[3,1]", "table/part_1[2,1]",
                                 "table/part_2[2,1]"));
}

TEST(Embedding, PartsAreSpreadOverParameterServers) {
  Graph graph;
  const Scope scope = Scope(graph).Device(ReplicaDeviceSetter({.ps_tasks = 2}));
  const std::vector<Variable> table = TableInParts(scope, false);
  EXPECT_EQ(table[0].device(), "/job:ps/task:0");
  EXPECT_EQ(table[1].device(), "/job:ps/task:1");
  EXPECT_EQ(table[2].device(), "/job:ps/task:0");
}

// Steps along the gradient of the sum of some rows: each moves by the number of
// times it was looked up.
TEST(Embedding, RowsAreFoundAndTrainedWhereverTheyLie) {
  for (const bool resource : {false, true}) {
    for (const auto strategy :
         {PartitionStrategy::kDiv, PartitionStrategy::kMod}) {
      Graph graph;
      const Scope scope(graph);
      const std::vector<Variable> table = TableInParts(scope, resource);
      const Output ids = scope.Named("ids").Const(
          Tensor::Of<int64_t>({2, 3}, {0, 6, 6, 3, 2, 6}));
      const Output rows =
          nn::EmbeddingLookup(scope, table, ids, {.strategy = strategy});
      ASSERT_TRUE(scope.ok()) << scope.status();
      EXPECT_EQ(ShapeOf(rows).DebugString(), "[2,3,1]");
      const Output loss = scope.Add("Sum", {rows, scope.Ints({0, 1, 2})});
      Node* train = GradientDescentOptimizer(-1.0).Minimize(scope, loss);
      Node* init = GlobalVariablesInitializer(scope);
      ASSERT_TRUE(scope.ok()) << scope.status();
      auto session = *Session::Create({}, graph);
      SLUICE_ASSERT_OK(session->Run({}, {}, {init}, nullptr));
      SLUICE_ASSERT_OK(session->Run({}, {}, {train}, nullptr));
      std::vector<Tensor> now;
      SLUICE_ASSERT_OK(session->Run({}, {rows}, {}, &now));
      EXPECT_THAT(Values(now[0]), ElementsAre(1, 3, 3, 1, 1, 3));
      SLUICE_ASSERT_OK(session->Run({}, {table[0].value()}, {}, &now));
      // Rows 0, 1, 2 or rows 0, 3, 6.
      if (strategy == PartitionStrategy::kDiv) {
        EXPECT_THAT(Values(now[0]), ElementsAre(1, 0, 1));
      } else {
        EXPECT_THAT(Values(now[0]), ElementsAre(1, 1, 3));
      }
    }
  }
}

TEST(Embedding, ATableInOnePieceIsGathered) {
  Graph graph;
  const Scope scope(graph);
  const Variable table(scope.Named("t"),
                       Tensor::Of<float>({2, 2}, {1, 2, 3, 4}));
  const Output rows =
      nn::EmbeddingLookup(scope, table, std::vector<int32_t>{1, 1});
  Node* init = GlobalVariablesInitializer(scope);
  ASSERT_TRUE(scope.ok()) << scope.status();
  auto session = *Session::Create({}, graph);
  SLUICE_ASSERT_OK(session->Run({}, {}, {init}, nullptr));
  std::vector<Tensor> now;
  SLUICE_ASSERT_OK(session->Run({}, {rows}, {}, &now));
  EXPECT_THAT(Values(now[0]), ElementsAre(3, 4, 3, 4));
}

TEST(Embedding, MorePartsThanRowsAreRefused) {
  Graph graph;
  const Scope scope(graph);
  EXPECT_TRUE(PartitionedVariable(scope, {2, 1}, 3, [](const Shape& part) {
                return ZerosInitializer(part);
              }).empty());
  EXPECT_THAT(scope.status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("cannot cut a variable of shape [2,1] into 3 "
                                 "parts")));
}

}  // namespace embedding_test
}  // namespace
}  // namespace sluice
