#include "sluice/passes/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/graph/op_registry.h"
#include "sluice/graph/scope.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {

using testing::HasSubstr;

constexpr char kPsCpu[] = "/job:ps/replica:0/task:0/device:CPU:0";
constexpr char kWorkerCpu0[] = "/job:worker/replica:0/task:0/device:CPU:0";
constexpr char kWorkerCpu1[] = "/job:worker/replica:0/task:0/device:CPU:1";

// Known here, but by no kernel.
SLUICE_OP(PlaceTestWithoutKernel)
    .Output("y: float")
    .Stateful()
    .Shape(shapes::Unknown);

class PlaceTest : public testing::Test {
 protected:
  Scope On(const std::string& device) { return scope_.Device(device); }
  Node* Variable(const std::string& device, const std::string& name) {
    return On(device).Named(name).AddNode(
        "VariableV2", {},
        {{"dtype", DType::kFloat}, {"shape", PartialShape::Scalar()}});
  }
  // Puts `node` into the group of the node `name`.
  static void Join(Node* node, const std::string& name) {
    AttrList classes;
    classes.strings = {"loc:@" + name};
    node->set_attr("_class", classes);
  }
  // Assigns devices; keeps why nodes got none.
  void Run(bool allow_soft = false) {
    ASSERT_TRUE(scope_.ok()) << scope_.status();
    std::vector<DeviceInfo> devices;
    for (const char* text : {kPsCpu, kWorkerCpu0, kWorkerCpu1}) {
      devices.push_back({*DeviceName::Parse(text), text});
    }
    PlaceOptions options;
    options.allow_soft = allow_soft;
    options.own_task = *DeviceName::Parse("/job:worker/replica:0/task:0");
    errors_.clear();
    ASSERT_TRUE(Place(graph_, devices, options, &errors_).ok());
  }
  std::string ErrorOf(const Node* node) {
    return std::string(errors_[node->id()].message());
  }

  Graph graph_;
  Scope scope_{graph_};
  PlaceErrors errors_;
};

TEST_F(PlaceTest, SoftPlacementLeavesAVariableWhereItWasAskedToBe) {
  Node* v = Variable(kWorkerCpu1, "v");
  Node* other = On(kWorkerCpu0).Scalar(1.0f).node;
  Join(other, "v");
  Run(/*allow_soft=*/true);
  EXPECT_EQ(v->assigned_device(), kWorkerCpu1);
  EXPECT_EQ(other->assigned_device(), kWorkerCpu1);
}

TEST_F(PlaceTest, SoftPlacementDropsWhatNoStateAsksFor) {
  const Node* a = On(kWorkerCpu1).Named("a").Scalar(1.0f).node;
  Node* b = On(kWorkerCpu0).Scalar(1.0f).node;
  Join(b, "a");
  Run(/*allow_soft=*/true);
  EXPECT_EQ(a->assigned_device(), kWorkerCpu0);
  EXPECT_EQ(b->assigned_device(), kWorkerCpu0);
}

TEST_F(PlaceTest, SoftPlacementLeavesStateThatHasADevice) {
  Node* v = Variable("", "v");
  v->set_assigned_device(kWorkerCpu1);
  Node* other = On(kWorkerCpu0).Scalar(1.0f).node;
  Join(other, "v");
  Run(/*allow_soft=*/true);
  EXPECT_EQ(v->assigned_device(), kWorkerCpu1);
  EXPECT_EQ(other->assigned_device(), kWorkerCpu1);
}

TEST_F(PlaceTest, AReferenceDoesNotDrawItsUsersVariableAway) {
  Node* v = Variable(kWorkerCpu1, "v");
  Node* w = Variable("/job:worker", "w");
  // Asks for another device than v, but holds no state.
  const Output assigned =
      On(kWorkerCpu0).Add("Assign", {Output{w, 0}, scope_.Scalar(1.0f)});
  const Output rate = scope_.Scalar(1.0f);
  scope_.Add("ApplyMomentum", {Output{v, 0}, assigned, rate, rate, rate});
  Run(/*allow_soft=*/true);
  EXPECT_EQ(v->assigned_device(), kWorkerCpu1);
  EXPECT_EQ(w->assigned_device(), kWorkerCpu1);
}

// Unless the user asks for all that the state asks for, and perhaps for more.
// Recorded with TensorFlow 1.15.5.
TEST(Place, StateStaysWhereItWasAskedToBeWhateverItsUserAsksFor) {
  struct Case {
    const char* of_state;
    const char* of_user;
    const char* task;
  };
  const Case cases[] = {
      {"/cpu:0", "/job:worker/task:1", "/job:ps/replica:0/task:0"},
      {"/job:worker", "/task:1", "/job:worker/replica:0/task:0"},
      {"/job:ps", "/device:CPU:1", "/job:ps/replica:0/task:0"},
      {"/task:1", "/job:worker", "/job:ps/replica:0/task:1"},
      {"", "/job:worker/task:1", "/job:worker/replica:0/task:1"},
      {"/replica:0", "/task:1", "/job:ps/replica:0/task:0"},
      {"/job:worker", "/job:worker/task:1", "/job:worker/replica:0/task:1"},
      {"/job:ps/cpu:0", "/task:1", "/job:ps/replica:0/task:0"},
  };
  std::vector<DeviceInfo> devices;
  for (const char* task :
       {"ps/replica:0/task:0", "ps/replica:0/task:1", "worker/replica:0/task:0",
        "worker/replica:0/task:1"}) {
    for (const char* cpu : {"0", "1"}) {
      const std::string name = StrCat("/job:", task, "/device:CPU:", cpu);
      devices.push_back({*DeviceName::Parse(name), name});
    }
  }
  for (const Case& c : cases) {
    Graph graph;
    Scope scope(graph);
    const Scope at_state = scope.Device(c.of_state);
    const Scope at_user = scope.Device(c.of_user);
    const AttrMap variable = {{"dtype", DType::kFloat},
                              {"shape", PartialShape::Scalar()}};
    AttrList types;
    types.types = {DType::kFloat};
    const Output ref = at_state.Add("VariableV2", {}, variable);
    const Output handle = at_state.Add("VarHandleOp", {}, variable);
    const Output queue =
        at_state.Add("FIFOQueueV2", {}, {{"component_types", types}});
    Node* const users[] = {
        at_user.AddNode("Assign", {ref, scope.Scalar(1.0f)}),
        at_user.AddNode("AssignVariableOp", {handle, scope.Scalar(1.0f)}),
        at_user.AddNode("QueueSizeV2", {queue})};
    ASSERT_TRUE(scope.ok()) << scope.status();
    users[0]->set_device(c.of_user);  // A scope has put it beside its variable.
    PlaceOptions options;
    options.own_task = *DeviceName::Parse("/job:worker/replica:0/task:0");
    PlaceErrors errors;
    ASSERT_TRUE(Place(graph, devices, options, &errors).ok());
    for (const Node* user : users) {
      const std::string where = StrCat(c.task, "/device:CPU:0");
      EXPECT_EQ(user->assigned_device(), where)
          << user->type() << ": " << c.of_state << ", " << c.of_user;
      EXPECT_EQ(user->input(0).node->assigned_device(), where);
    }
  }
}

TEST_F(PlaceTest, AGeneratorGoesWhereItIsOnlyWaitedFor) {
  Node* k = scope_.Scalar(1.0f).node;
  On(kWorkerCpu1).Control(std::vector{k}).AddNode("NoOp", {});
  Run();
  EXPECT_EQ(k->assigned_device(), kWorkerCpu1);
}

TEST_F(PlaceTest, AGeneratorThatIsWaitedForElsewhereGoesToTheFirstDevice) {
  const Output k = scope_.Scalar(1.0f);
  On(kWorkerCpu1).Add("Neg", {k});
  On(kWorkerCpu0).Control(std::vector{k.node}).AddNode("NoOp", {});
  Run();
  EXPECT_EQ(k.node->assigned_device(), kPsCpu);
}

TEST_F(PlaceTest, AGroupThatCannotBeIsNamedFromItsNewMemberOn) {
  On(kPsCpu).Named("a").Scalar(1.0f);
  Node* b = On("/job:worker").Named("b").Scalar(1.0f).node;
  Join(b, "a");
  Run();
  EXPECT_EQ(ErrorOf(b),
            "Cannot colocate nodes {{colocation_node b}} and {{colocation_node "
            "a}}: Cannot merge devices with incompatible jobs: '/job:worker' "
            "and '/job:ps/replica:0/task:0/device:CPU:0'\n\t [[{{node b}}]]");
}

TEST_F(PlaceTest, SoftPlacementIsSuggestedWhereItWouldHelp) {
  const auto hint = HasSubstr("set allow_soft_placement=True");
  for (const char* device : {"/cpu:7", "/device:FOO:0", "/job:ps/gpu:0"}) {
    const Node* a = On(device).Scalar(1.0f).node;
    Run();
    EXPECT_THAT(ErrorOf(a), hint) << device;
  }
  const Node* b = On("/job:nowhere/gpu:0").Scalar(1.0f).node;
  Run();
  EXPECT_THAT(ErrorOf(b), testing::Not(hint));
}

TEST_F(PlaceTest, AGroupIsToldOfInItsErrors) {
  Node* a = On("/job:ps/task:0").Named("a").Scalar(1.0f).node;
  Node* b = On("/cpu:5").Named("b").Add("Neg", {Output{a, 0}}).node;
  Join(b, "a");
  Run();
  // As TensorFlow 1.15.5 writes it.
  EXPECT_THAT(
      ErrorOf(a),
      HasSubstr(
          "Could not satisfy explicit device specification '/job:ps/task:0' "
          "because the node {{colocation_node a}} was colocated with a group "
          "of nodes that required incompatible device "
          "'/job:ps/task:0/device:CPU:5'. All available devices "
          "[/job:ps/replica:0/task:0/device:CPU:0, "
          "/job:worker/replica:0/task:0/device:CPU:0, "
          "/job:worker/replica:0/task:0/device:CPU:1]. \n"
          "Colocation Debug Info:\n"
          "Colocation group had the following types and supported devices: \n"
          "Root Member(assigned_device_name_index_=-1 "
          "requested_device_name_='/job:ps/task:0/device:CPU:5' "
          "assigned_device_name_='' resource_device_name_='' "
          "supported_device_types_=[CPU] possible_devices_=[]\n"
          "Const: CPU \nNeg: CPU \n\n"
          "Colocation members, user-requested devices, and framework assigned "
          "devices, if any:\n"
          "  a (Const) /job:ps/task:0\n  b (Neg) /device:CPU:5\n"));
}

TEST_F(PlaceTest, AnotherTaskMayKnowAKernel) {
  const auto add = [&](const std::string& device) {
    return On(device).AddNode("PlaceTestWithoutKernel", {});
  };
  const auto unknown = HasSubstr("No OpKernel was registered");
  for (const char* own : {"", "/task:0", "/job:worker", "/cpu:0"}) {
    Node* node = add(own);
    Run();
    EXPECT_THAT(ErrorOf(node), unknown) << own;
  }
  // As TensorFlow 1.15.5 says of these.
  Node* elsewhere = add("/task:1");
  Run();
  EXPECT_THAT(ErrorOf(elsewhere), HasSubstr("explicitly assigned to /task:1"));
  Node* on_ps = add("/job:ps");
  Run();
  EXPECT_EQ(on_ps->assigned_device(), kPsCpu);
}

TEST_F(PlaceTest, ADeviceThatIsNotThereIsAnErrorOfItsNodeAlone) {
  const Node* a = On("/job:ps/task:5").Scalar(1.0f).node;
  const Node* b = scope_.Scalar(1.0f).node;
  Run();
  EXPECT_THAT(ErrorOf(a), HasSubstr("explicitly assigned to /job:ps/task:5"));
  EXPECT_EQ(b->assigned_device(), kPsCpu);
}

}  // namespace
}  // namespace sluice
