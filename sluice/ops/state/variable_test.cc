#include "sluice/kernel/testing/op_test.h"
#include "sluice/ops/state/testing/op_session.h"
#include "sluice/ops/state/variable_access.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

AttrMap FloatVariable(const PartialShape& shape) {
  return {{"dtype", DType::kFloat}, {"shape", shape}};
}

TEST(Variable, LivesOnTheDeviceUnderTheNameOfItsNode) {
  const auto device = MakeTestDevice("ps");
  OpSession first(*device);
  Node* v = first.Add("VariableV2", {}, FloatVariable({2}), "v");
  Node* assign = first.Add(
      "Assign", {v->output(0), first.Value(Tensor::Vector<float>({1, 2}))});
  SLUICE_ASSERT_OK(first.Run(assign));

  OpSession second(*device);
  Node* same = second.Add("VariableV2", {}, FloatVariable({2}), "v");
  Node* other = second.Add("VariableV2", {}, FloatVariable({2}), "w");
  ExpectClose(second.Output0(same), Tensor::Vector<float>({1, 2}));
  Node* is_set = second.Add("IsVariableInitialized", {other->output(0)});
  EXPECT_FALSE(second.Output0(is_set).scalar<bool>());
  EXPECT_EQ(device->resources().List().size(), 2u);
}

TEST(Variable, IsFoundByContainerAndSharedName) {
  const auto device = MakeTestDevice();
  OpSession session(*device);
  AttrMap attrs = FloatVariable({1});
  attrs.Set("container", "c1");
  attrs.Set("shared_name", "s");
  Node* a = session.Add("VariableV2", {}, attrs, "a");
  Node* b = session.Add("VariableV2", {}, attrs, "b");
  SLUICE_ASSERT_OK(session.Run(session.Add(
      "Assign", {a->output(0), session.Value(Tensor::Vector<float>({7}))})));
  ExpectClose(session.Output0(b), Tensor::Vector<float>({7}));
  device->resources().Cleanup("c1");
  OpSession fresh(*device);
  Node* is_set =
      fresh.Add("IsVariableInitialized",
                {fresh.Add("VariableV2", {}, attrs, "a")->output(0)});
  EXPECT_FALSE(fresh.Output0(is_set).scalar<bool>());
}

TEST(Variable, RefusesBadContainersAndSharedNames) {
  const auto device = MakeTestDevice();
  OpSession session(*device);
  AttrMap attrs = FloatVariable({1});
  attrs.Set("container", "no!");
  EXPECT_THAT(session.Run(session.Add("VariableV2", {}, attrs)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "container contains invalid characters: no!"));
  attrs.Set("container", "");
  attrs.Set("shared_name", "_x");
  EXPECT_THAT(session.Run(session.Add("VariableV2", {}, attrs)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "shared_name cannot start with '_':_x"));
}

TEST(Variable, OfAnotherTypeIsNotShared) {
  const auto device = MakeTestDevice();
  OpSession session(*device);
  SLUICE_ASSERT_OK(
      session.Run(session.Add("VariableV2", {}, FloatVariable({1}), "v")));
  OpSession other(*device);
  Node* v = other.Add("VariableV2", {},
                      {{"dtype", DType::kInt32}, {"shape", Shape({1})}}, "v");
  EXPECT_THAT(other.Run(v), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("holds float")));
}

TEST(Variable, ShapeIsTheAttrButEmptyMeansUnknownForTheOldOp) {
  EXPECT_EQ(InferredShape("VariableV2", {}, FloatVariable({2, -1})), "[2,?]");
  EXPECT_EQ(
      InferredShape("VariableV2", {}, FloatVariable(PartialShape::Scalar())),
      "[]");
  EXPECT_EQ(
      InferredShape("Variable", {}, FloatVariable(PartialShape::Scalar())),
      "?");
}

TEST(TemporaryVariable, EndsWithDestroyWhichGivesItsValue) {
  const auto device = MakeTestDevice();
  OpSession session(*device);
  AttrMap attrs = FloatVariable({2});
  attrs.Set("var_name", "t");
  Node* t = session.Add("TemporaryVariable", {}, attrs);
  Node* add =
      session.Add("AssignAdd",
                  {t->output(0), session.Value(Tensor::Vector<float>({1, 2}))});
  Node* end = session.Add("DestroyTemporaryVariable", {add->output(0)},
                          {{"var_name", "t"}});
  ExpectClose(session.Output0(end), Tensor::Vector<float>({1, 2}));
  EXPECT_TRUE(device->resources().List().empty());
}

TEST(StoreValue, TakesOverMemoryThatNobodyElseUses) {
  auto variable = MakeRef<VariableState>(DType::kFloat);
  Tensor value = Tensor::Vector<float>({1, 2});
  const void* memory = value.raw();
  SLUICE_ASSERT_OK(StoreValue(*variable, value));
  EXPECT_EQ(variable->Read().raw(), memory);
}

TEST(StoreValue, CopiesSharedValuesIntoItsOldMemory) {
  auto variable = MakeRef<VariableState>(DType::kFloat);
  SLUICE_ASSERT_OK(StoreValue(*variable, Tensor::Vector<float>({1, 2})));
  const void* memory = variable->Read().raw();
  const Tensor value = Tensor::Of<float>({2, 1}, {3, 4});
  const Tensor second_holder = value;
  SLUICE_ASSERT_OK(StoreValue(*variable, value));
  EXPECT_EQ(variable->Read().raw(), memory);
  ExpectClose(variable->Read(), value);
}

TEST(StoreValue, LeavesSnapshotsAlone) {
  auto variable = MakeRef<VariableState>(DType::kFloat);
  SLUICE_ASSERT_OK(StoreValue(*variable, Tensor::Vector<float>({1, 2})));
  const Tensor snapshot = variable->Read();
  const Tensor value = Tensor::Vector<float>({3, 4});
  const Tensor second_holder = value;
  SLUICE_ASSERT_OK(StoreValue(*variable, value));
  ExpectClose(snapshot, Tensor::Vector<float>({1, 2}));
  ExpectClose(variable->Read(), value);
}

TEST(StoreValue, DoesNotKeepBorrowedMemory) {
  auto variable = MakeRef<VariableState>(DType::kFloat);
  float memory[2] = {1, 2};
  SLUICE_ASSERT_OK(StoreValue(
      *variable,
      Tensor::FromBuffer(DType::kFloat, {2},
                         Buffer::Borrow(memory, sizeof(memory), [] {}))));
  memory[0] = 9;
  ExpectClose(variable->Read(), Tensor::Vector<float>({1, 2}));
}

}  // namespace
}  // namespace sluice
