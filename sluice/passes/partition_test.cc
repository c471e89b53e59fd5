#include "sluice/passes/partition.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "sluice/graph/functions.h"
#include "sluice/graph/scope.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/proto/graph.pb.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

std::string Device(const std::string& job) {
  return "/job:" + job + "/replica:0/task:0/device:CPU:0";
}

class PartitionTest : public testing::Test {
 protected:
  Scope On(const std::string& job) { return scope_.Device(Device(job)); }

  absl::StatusOr<std::vector<Part>> Cut() {
    EXPECT_TRUE(scope_.ok()) << scope_.status();
    for (int id = 0; id < graph_.num_nodes(); ++id) {
      Node* node = graph_.node(id);
      if (!node->device().empty()) node->set_assigned_device(node->device());
    }
    PartitionOptions options;
    options.part_of = [](std::string_view device) {
      return std::string(device);
    };
    options.incarnation =
        [](std::string_view device) -> absl::StatusOr<uint64_t> {
      if (device == Device("gone")) return NotFound("no device");
      return 7;
    };
    options.suffix = "_S";
    return Partition(graph_, options);
  }
  static std::vector<std::string> Types(const Part& part) {
    std::vector<std::string> types;
    for (int id = 0; id < part.graph->num_nodes(); ++id) {
      types.push_back(part.graph->node(id)->type());
    }
    return types;
  }
  static const Node* Find(const Part& part, const std::string& type) {
    for (int id = 0; id < part.graph->num_nodes(); ++id) {
      if (part.graph->node(id)->type() == type) return part.graph->node(id);
    }
    return nullptr;
  }

  Graph graph_;
  Scope scope_{graph_};
};

TEST_F(PartitionTest, ACutEdgeBecomesAPairWithOneKey) {
  const Output x = On("a").Scalar(1.0f);
  On("b").Add("Neg", {x});
  const auto parts = Cut();
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->size(), 2u);
  EXPECT_EQ((*parts)[0].name, Device("a"));
  EXPECT_THAT(Types((*parts)[0]), UnorderedElementsAre("Const", "_Send"));
  EXPECT_THAT(Types((*parts)[1]), UnorderedElementsAre("Neg", "_Recv"));
  const Node* send = Find((*parts)[0], "_Send");
  const Node* recv = Find((*parts)[1], "_Recv");
  for (const char* attr : {"tensor_name", "send_device", "recv_device"}) {
    EXPECT_EQ(send->attr<std::string>(attr), recv->attr<std::string>(attr));
  }
  EXPECT_EQ(send->attr<std::string>("send_device"), Device("a"));
  EXPECT_EQ(recv->attr<std::string>("recv_device"), Device("b"));
  EXPECT_EQ(recv->attr<int64_t>("send_device_incarnation"), 7);
  EXPECT_FALSE(recv->attr<bool>("client_terminated"));
  EXPECT_EQ(recv->output_type(0), DType::kFloat);
}

TEST_F(PartitionTest, AValueTravelsOnceToEachPart) {
  const Output x = On("a").Scalar(1.0f);
  On("b").Add("Neg", {x});
  On("b").Add("Square", {x});
  On("c").Add("Neg", {x});
  const auto parts = Cut();
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_EQ(std::ranges::count(Types((*parts)[0]), "_Send"), 2);
  EXPECT_EQ(std::ranges::count(Types((*parts)[1]), "_Recv"), 1);
}

TEST_F(PartitionTest, AControlEdgeTravelsAsAnEmptyTensor) {
  Node* first = On("a").AddNode("NoOp", {});
  On("b").Control({first}).Scalar(1.0f);
  const auto parts = Cut();
  ASSERT_TRUE(parts.ok()) << parts.status();
  const Node* recv = Find((*parts)[1], "_Recv");
  ASSERT_NE(recv, nullptr);
  EXPECT_EQ(recv->output_type(0), DType::kFloat);
  ASSERT_NE(Find((*parts)[0], "_Send"), nullptr);
}

TEST_F(PartitionTest, WhatOnlyTheEndOfTheStepWaitsForTravelsNowhere) {
  Node* first = On("a").Scalar(1.0f).node;
  Node* own = On("b").Scalar(2.0f).node;
  On("b").Control(std::vector{first, own}).AddNode("NoOp", {});
  const auto parts = Cut();
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_THAT(Types((*parts)[0]), ElementsAre("Const"));
  EXPECT_THAT(Types((*parts)[1]), UnorderedElementsAre("Const", "NoOp"));
  EXPECT_THAT(Find((*parts)[1], "NoOp")->control_inputs(),
              ElementsAre(Find((*parts)[1], "Const")));
}

TEST_F(PartitionTest, WhatIsTogetherStaysUncut) {
  const Output x = On("a").Scalar(1.0f);
  On("a").Add("Neg", {x});
  const auto parts = Cut();
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->size(), 1u);
  EXPECT_THAT(Types((*parts)[0]), ElementsAre("Const", "Neg"));
}

TEST_F(PartitionTest, ADeviceThatIsNotThereIsAnError) {
  const Output x = On("gone").Scalar(1.0f);
  On("a").Add("Neg", {x});
  EXPECT_FALSE(Cut().ok());
}

TEST_F(PartitionTest, NamesOfPartsAreUnique) {
  const Output x = On("a").Scalar(1.0f);
  const Output y = On("a").Scalar(2.0f);
  On("b").Add("AddV2", {x, y});
  const auto parts = Cut();
  ASSERT_TRUE(parts.ok()) << parts.status();
  for (const Part& part : *parts) {
    std::set<std::string> names;
    for (int id = 0; id < part.graph->num_nodes(); ++id) {
      EXPECT_TRUE(names.insert(part.graph->node(id)->name()).second);
    }
  }
}

TEST_F(PartitionTest, APartTakesTheFunctionsThatItReaches) {
  const auto function = [](const std::string& name, const std::string& op,
                           const std::string& attr = "") {
    return StrCat(R"(function { signature { name: ")", name,
                  R"(" input_arg { name: "a" type: DT_FLOAT }
                       output_arg { name: "b" type: DT_FLOAT } }
                     node_def { name: "n" op: ")",
                  op, R"(" input: "a" )", attr, R"(}
                     ret { key: "b" value: "n:b:0" } })");
  };
  pb::FunctionDefLibrary library;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      StrCat(function("Outer", "Inner"), function("Inner", "Neg"),
             function("InnerGradient", "Neg"), function("Unused", "Neg"),
             function("ByName", "Neg"),
             function("OfAttr", "Neg",
                      R"(attr { key: "f" value { func { name: "ByName" } } })"),
             R"(gradient { function_name: "Inner"
                           gradient_func: "InnerGradient" })"),
      &library));
  SLUICE_ASSERT_OK(graph_.functions().Add(library));
  const Output x = On("a").Scalar(1.0f);
  On("a").Add("Outer", {x});
  FunctionName of_attr;
  of_attr.name = "OfAttr";
  On("b").AddNode("NoOp", {}, {{"_f", of_attr}});
  const absl::StatusOr<std::vector<Part>> parts = Cut();
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->size(), 2u);
  const auto has = [&](int part, const std::string& name) {
    return (*parts)[part].graph->functions().Find(name) != nullptr;
  };
  const int a = (*parts)[0].name == Device("a") ? 0 : 1;
  for (const char* name : {"Outer", "Inner", "InnerGradient"}) {
    EXPECT_TRUE(has(a, name)) << name;
    EXPECT_FALSE(has(1 - a, name)) << name;
  }
  for (const char* name : {"OfAttr", "ByName"}) {
    EXPECT_FALSE(has(a, name)) << name;
    EXPECT_TRUE(has(1 - a, name)) << name;
  }
  EXPECT_FALSE(has(a, "Unused") || has(1 - a, "Unused"));
  EXPECT_NE((*parts)[a].graph->functions().FindGradient("Inner"), nullptr);
}

}  // namespace
}  // namespace sluice
