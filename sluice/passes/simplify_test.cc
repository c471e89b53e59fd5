#include "sluice/passes/simplify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sluice/base/testing/temp_dir.h"
#include "sluice/graph/scope.h"
#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {

constexpr char kDevice[] = "/job:a/replica:0/task:0/device:CPU:0";

class SimplifyTest : public testing::Test {
 protected:
  Output Placeholder() {
    return scope_.Add("Placeholder", {}, {{"dtype", DType::kFloat}});
  }
  // Something that must stay: nobody may remove it, or what it needs.
  Node* Keep(Output value) {
    return scope_.Named("keep").AddNode(
        "_Send", {value},
        {{"tensor_name", std::string("t")},
         {"send_device", std::string(kDevice)},
         {"send_device_incarnation", int64_t{1}},
         {"recv_device", std::string(kDevice)},
         {"client_terminated", true}});
  }
  // The op types that are left, sorted.
  std::vector<std::string> Left(const SimplifyOptions& options = {}) {
    EXPECT_TRUE(scope_.ok()) << scope_.status();
    for (int id = 0; id < graph_->num_nodes(); ++id) {
      graph_->node(id)->set_assigned_device(kDevice);
    }
    graph_ = Simplify(std::move(graph_), options);
    std::vector<std::string> types;
    for (int id = 0; id < graph_->num_nodes(); ++id) {
      types.push_back(graph_->node(id)->type());
    }
    std::ranges::sort(types);
    return types;
  }
  const Node& Find(const std::string& type) {
    for (int id = 0; id < graph_->num_nodes(); ++id) {
      if (graph_->node(id)->type() == type) return *graph_->node(id);
    }
    ADD_FAILURE() << "no " << type;
    return *graph_->node(0);
  }

  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();
  Scope scope_{*graph_};
};

using testing::ElementsAre;

TEST_F(SimplifyTest, ComputesWhatDoesNotDependOnTheStep) {
  const Output sum =
      scope_.Add("AddV2", {scope_.Scalar(2.0f), scope_.Scalar(3.0f)});
  Keep(scope_.Add("Mul", {sum, Placeholder()}));
  EXPECT_THAT(Left(), testing::Not(testing::Contains("AddV2")));
  const Node& folded = *Find("Mul").input(0).node;
  EXPECT_EQ(folded.type(), "Const");
  EXPECT_EQ(folded.attr<Tensor>("value").scalar<float>(), 5.0f);
}

TEST_F(SimplifyTest, KeepsOneOfNodesThatDoTheSame) {
  const Output x = Placeholder();
  Keep(scope_.Add("Mul", {scope_.Add("Neg", {x}), scope_.Add("Neg", {x})}));
  EXPECT_THAT(Left(), ElementsAre("Mul", "Neg", "Placeholder", "_Send"));
}

TEST_F(SimplifyTest, LeavesWhatItIsToldToLeave) {
  const Output x = scope_.Scalar(2.0f);
  Keep(scope_.Add("Mul", {scope_.Add("Neg", {x}), scope_.Add("Neg", {x})}));
  SimplifyOptions options;
  options.fold_constants = false;
  options.merge_common = false;
  EXPECT_THAT(Left(options),
              ElementsAre("Const", "Mul", "Neg", "Neg", "_Send"));
}

TEST_F(SimplifyTest, DoesNotMergeNodesThatDiffer) {
  const Output x = Placeholder();
  Node* first = scope_.AddNode("NoOp", {});
  const Output a = scope_.Add("Neg", {x});
  const Output b = scope_.Control({first}).Add("Neg", {x});
  const Output c = scope_.Add("Square", {x});
  Keep(scope_.Add("AddV2", {scope_.Add("AddV2", {a, b}), c}));
  EXPECT_THAT(Left(), ElementsAre("AddV2", "AddV2", "Neg", "Neg", "NoOp",
                                  "Placeholder", "Square", "_Send"));
}

TEST_F(SimplifyTest, DoesNotTouchStateOrRandomness) {
  const auto random = [&] {
    return scope_.Add("RandomUniform", {scope_.Ints({2})},
                      {{"dtype", DType::kFloat}});
  };
  Keep(scope_.Add("AddV2", {random(), random()}));
  const Output v =
      scope_.Add("VariableV2", {},
                 {{"shape", PartialShape::Scalar()}, {"dtype", DType::kFloat}});
  Keep(scope_.Add("Identity", {v}));
  Keep(scope_.Add("Identity", {v}));
  const std::vector<std::string> left = Left();
  EXPECT_EQ(std::ranges::count(left, "RandomUniform"), 2);
  EXPECT_EQ(std::ranges::count(left, "Identity"), 2);
}

TEST_F(SimplifyTest, DoesNotTouchFiles) {
  const TempDir dir;
  SLUICE_ASSERT_OK(RealFileSystem().WriteFile(dir / "f", "text"));
  const Output name =
      scope_.Const(Tensor::Scalar<std::string>(std::string(dir / "f")));
  Keep(scope_.Add("Identity", {scope_.Add("ReadFile", {name})}));
  Keep(scope_.Add("Identity", {scope_.Add("MatchingFiles", {name})}));
  const std::vector<std::string> left = Left();
  EXPECT_THAT(left, testing::Contains("ReadFile"));
  EXPECT_THAT(left, testing::Contains("MatchingFiles"));
}

TEST_F(SimplifyTest, DoesNotFoldIntoSomethingHuge) {
  const Output big =
      scope_.Add("Fill", {scope_.Ints({1 << 20, 16}), scope_.Scalar(1.0f)});
  Keep(big);
  EXPECT_THAT(Left(), testing::Contains("Fill"));
}

TEST_F(SimplifyTest, AnErrorOfAConstantIsLeftToTheStep) {
  const Output zero = scope_.Scalar<int32_t>(0);
  Keep(scope_.Add("FloorDiv", {zero, zero}));
  EXPECT_THAT(Left(), testing::Contains("FloorDiv"));
}

TEST_F(SimplifyTest, LeavesOutValuesThatNobodyTakes) {
  const Output x = Placeholder();
  const Output unused = scope_.Add("Exp", {scope_.Add("Neg", {x})});
  const Output y = scope_.Control({unused.node}).Add("Square", {x});
  Keep(y);
  EXPECT_THAT(Left(), ElementsAre("Placeholder", "Square", "_Send"));
  EXPECT_EQ(Find("Square").control_inputs()[0]->type(), "Placeholder");
}

TEST_F(SimplifyTest, ATargetRunsAlsoIfNobodyTakesItsValue) {
  const Output x = Placeholder();
  const Output target = scope_.Named("target").Add("Neg", {x});
  Keep(scope_.Control({target.node}).Add("Square", {x}));
  const std::vector<std::string> targets = {target.node->name()};
  SimplifyOptions options;
  options.targets = targets;
  EXPECT_THAT(Left(options), testing::Contains("Neg"));
}

TEST_F(SimplifyTest, WhatIsLeftOutIsStillWaitedThrough) {
  const Output random = scope_.Add("RandomUniform", {scope_.Ints({2})},
                                   {{"dtype", DType::kFloat}});
  Node* first = scope_.AddNode("NoOp", {});
  const Output unused = scope_.Control({first}).Add("Neg", {random});
  Keep(scope_.Control({scope_.Add("Exp", {unused}).node})
           .Add("Square", {Placeholder()}));
  EXPECT_THAT(Left(), ElementsAre("Const", "NoOp", "Placeholder",
                                  "RandomUniform", "Square", "_Send"));
  std::vector<std::string> waits;
  for (const Node* node : Find("Square").control_inputs()) {
    waits.push_back(node->type());
  }
  EXPECT_THAT(waits, testing::UnorderedElementsAre("RandomUniform", "NoOp"));
}

TEST_F(SimplifyTest, ManyWaitsGoThroughOneNode) {
  std::vector<Node*> firsts;
  for (int i = 0; i < 20; ++i) firsts.push_back(scope_.AddNode("NoOp", {}));
  const Output unused = scope_.Control(firsts).Add("Neg", {Placeholder()});
  for (int i = 0; i < 20; ++i) {
    Keep(scope_.Control({unused.node}).Add("Square", {Placeholder()}));
  }
  Left();
  EXPECT_EQ(Find("Square").control_inputs().size(), 1u);
  EXPECT_EQ(Find("Square").control_inputs()[0]->control_inputs().size(), 21u);
}

TEST_F(SimplifyTest, ChecksAndReadsThatAreWaitedForStay) {
  const Output x = Placeholder();
  const Output v =
      scope_.Add("VariableV2", {},
                 {{"shape", PartialShape::Scalar()}, {"dtype", DType::kFloat}});
  const Output check =
      scope_.Add("CheckNumerics", {x}, {{"message", std::string("m")}});
  const Output read = scope_.Add("Identity", {v});
  Keep(scope_.Control(std::vector<Output>{check, read}).Add("Square", {x}));
  // This one is read for a value that nobody takes.
  const Output unused = scope_.Add("Neg", {scope_.Add("Identity", {v})});
  Keep(scope_.Control({unused.node}).Add("Square", {x}));
  const std::vector<std::string> left = Left();
  EXPECT_EQ(std::ranges::count(left, "CheckNumerics"), 1);
  EXPECT_EQ(std::ranges::count(left, "Identity"), 1);
  EXPECT_EQ(std::ranges::count(left, "Neg"), 0);
}

TEST_F(SimplifyTest, AReadThatIsWaitedForElsewhereStays) {
  const Output v =
      scope_.Add("VariableV2", {},
                 {{"shape", PartialShape::Scalar()}, {"dtype", DType::kFloat}});
  const Output there = scope_.Add("Identity", {scope_.Add("Identity", {v})});
  Keep(scope_.Control({there.node}).Add("Square", {Placeholder()}));
  EXPECT_EQ(std::ranges::count(Left(), "Identity"), 2);
}

TEST_F(SimplifyTest, ValuesOfABranchThatMayNotBeTakenStay) {
  const Output x = Placeholder();
  const Output taken = scope_.Add(
      "Switch", {x, scope_.Add("Placeholder", {}, {{"dtype", DType::kBool}})});
  const Output in_branch = scope_.Add("Neg", {taken});
  const Output after = scope_.Add("Exp", {in_branch});
  Keep(scope_.Control({after.node}).Add("Square", {x}));
  EXPECT_THAT(Left(), testing::Contains("Neg"));
  EXPECT_EQ(Find("Square").control_inputs()[0]->type(), "Neg");
}

}  // namespace
}  // namespace sluice
