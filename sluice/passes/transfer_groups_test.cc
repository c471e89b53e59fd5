#include "sluice/passes/transfer_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/graph/scope.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/passes/partition.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr char kPs[] = "/job:ps/replica:0/task:0/device:CPU:0";
constexpr char kWorker[] = "/job:worker/replica:0/task:0/device:CPU:0";

class TransferGroupsTest : public testing::Test {
 protected:
  Output Place(const char* device, Output value) {
    value.node->set_assigned_device(device);
    return value;
  }
  Output Variable(const std::string& name, std::vector<int64_t> dims = {}) {
    return Place(
        kPs, scope_.Named(name).Add("VariableV2", {},
                                    {{"dtype", DType::kFloat},
                                     {"shape", *PartialShape::Create(dims)}}));
  }
  Output OnPs(const char* op, const std::vector<Output>& inputs) {
    return Place(kPs, scope_.Add(op, inputs));
  }
  Output OnWorker(const char* op, const std::vector<Output>& inputs) {
    return Place(kWorker, scope_.Add(op, inputs));
  }
  Output Early() {
    return Place(kWorker, scope_.Add("Placeholder", {},
                                     {{"dtype", DType::kFloat},
                                      {"shape", PartialShape::Scalar()}}));
  }
  // The names of what travels together.
  std::vector<std::vector<std::string>> Groups() {
    EXPECT_TRUE(scope_.ok()) << scope_.status();
    std::vector<int> part;
    for (int id = 0; id < graph_.num_nodes(); ++id) {
      part.push_back(graph_.node(id)->assigned_device() == kPs ? 0 : 1);
    }
    std::vector<std::vector<std::string>> names;
    const auto groups = GroupTransfers(graph_, part);
    EXPECT_TRUE(groups.ok()) << groups.status();
    if (!groups.ok()) return names;
    for (const TransferGroup& group : *groups) {
      std::vector<std::string>& members = names.emplace_back();
      for (const Transfer& t : group) members.push_back(t.value.node->name());
    }
    return names;
  }

  Graph graph_;
  Scope scope_{graph_};
};

TEST_F(TransferGroupsTest, ValuesThatAreReadyTogetherTravelTogether) {
  const Output a = Variable("a"), b = Variable("b");
  OnWorker("Neg", {OnPs("Identity", {a})});
  OnWorker("Neg", {OnPs("Identity", {b})});
  EXPECT_THAT(Groups(), ElementsAre(ElementsAre("Identity", "Identity_1")));
}

TEST_F(TransferGroupsTest, WhatComesBackWaitsInAGroupOfItsOwn) {
  const Output a = OnPs("Identity", {Variable("a")});
  const Output b = OnPs("Identity", {Variable("b")});
  const Output there = OnWorker("AddV2", {a, b});
  const Output other = OnWorker("Mul", {a, b});
  const Output back = OnPs("Sub", {there, other});
  const Output back2 = OnPs("Neg", {other});
  OnWorker("Square", {back});
  OnWorker("Square", {back2});
  EXPECT_THAT(Groups(), UnorderedElementsAre(
                            UnorderedElementsAre("Identity", "Identity_1"),
                            UnorderedElementsAre("AddV2", "Mul"),
                            UnorderedElementsAre("Sub", "Neg")));
}

TEST_F(TransferGroupsTest, WhatIsWantedWithALaterValueTravelsWithIt) {
  const Output early = OnWorker("Identity", {Early()});
  const Output parameter = OnPs("Identity", {Variable("a")});
  const Output gradient = OnWorker("Neg", {parameter});
  OnPs("Mul", {gradient, early});
  EXPECT_THAT(Groups(), ElementsAre(UnorderedElementsAre("Neg", "Identity")));
}

TEST_F(TransferGroupsTest, WhatIsWantedBeforeALaterValueTravelsBefore) {
  const Output early = OnWorker("Identity", {Early()});
  // The later value depends on the early one.
  const Output parameter =
      OnPs("AddV2", {OnPs("Identity", {Variable("a")}), early});
  const Output gradient = OnWorker("Neg", {parameter});
  OnPs("Mul", {gradient, early});
  EXPECT_THAT(Groups(), IsEmpty());
}

TEST_F(TransferGroupsTest, NobodyWaitsForAQueue) {
  AttrList types, shapes;
  types.types = {DType::kFloat};
  shapes.shapes = {PartialShape::Scalar()};
  const Output queue =
      Place(kPs, scope_.Add("FIFOQueueV2", {},
                            {{"component_types", types}, {"shapes", shapes}}));
  Node* dequeue =
      scope_.AddNode("QueueDequeueV2", {queue}, {{"component_types", types}});
  const Output element = Place(kPs, dequeue->output(0));
  OnWorker("Neg", {element});
  OnWorker("Neg", {OnPs("Square", {element})});
  OnWorker("Neg", {OnPs("Identity", {Variable("a")})});
  EXPECT_THAT(Groups(), IsEmpty());
}

TEST_F(TransferGroupsTest, LargeTensorsTravelAlone) {
  OnWorker("Neg", {OnPs("Identity", {Variable("large", {1 << 20})})});
  OnWorker("Neg", {OnPs("Identity", {Variable("small")})});
  EXPECT_THAT(Groups(), IsEmpty());
}

TEST_F(TransferGroupsTest, ConstantsAreMadeWhereTheyAreUsed) {
  const Output rate = Place(kWorker, scope_.Named("rate").Scalar(0.5f));
  const Output sum = OnPs("AddV2", {OnPs("Identity", {Variable("a")}), rate});
  SLUICE_ASSERT_OK(SpreadConstants(graph_));
  const Node& copy = *sum.node->input(1).node;
  EXPECT_EQ(copy.type(), "Const");
  EXPECT_EQ(copy.assigned_device(), kPs);
}

}  // namespace
}  // namespace sluice
