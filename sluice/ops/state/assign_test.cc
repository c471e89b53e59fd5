#include <thread>

#include "sluice/kernel/testing/op_test.h"
#include "sluice/ops/state/testing/op_session.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

// A session with a ref variable "v" and a resource variable "r".
struct AssignVariables {
  explicit AssignVariables(const Tensor& initial)
      : device(MakeTestDevice()), session(*device) {
    const AttrMap attrs{{"dtype", initial.dtype()}, {"shape", initial.shape()}};
    v = session.Add("VariableV2", {}, attrs, "v");
    r = session.Add("VarHandleOp", {}, attrs, "r");
    read = session.Add("ReadVariableOp", {r->output(0)},
                       {{"dtype", initial.dtype()}}, "read");
    const Output value = session.Value(initial);
    set_v = session.Add("Assign", {v->output(0), value});
    set_r = session.Add("AssignVariableOp", {r->output(0), value});
  }
  void Initialize() {
    EXPECT_TRUE(session.Run(set_v).ok());
    EXPECT_TRUE(session.Run(set_r).ok());
  }

  std::unique_ptr<Device> device;
  OpSession session;
  Node* v;
  Node* r;
  Node* read;
  Node* set_v;
  Node* set_r;
};

TEST(Assign, ChecksTheShapeUnlessToldNotTo) {
  AssignVariables t(Tensor::Vector<float>({1, 2}));
  const Output three = t.session.Value(Tensor::Vector<float>({1, 2, 3}));
  Node* strict = t.session.Add("Assign", {t.v->output(0), three});
  Node* loose = t.session.Add("Assign", {t.v->output(0), three},
                              {{"validate_shape", false}});
  const auto mismatch = StatusIs(
      absl::StatusCode::kInvalidArgument,
      "Assign requires shapes of both tensors to match. lhs shape= [2] rhs "
      "shape= [3]");
  // Before there is a value the declared shape counts.
  EXPECT_THAT(t.session.Run(strict), mismatch);
  t.Initialize();
  EXPECT_THAT(t.session.Run(strict), mismatch);
  SLUICE_ASSERT_OK(t.session.Run(loose));
  ExpectClose(t.session.Output0(t.v), Tensor::Vector<float>({1, 2, 3}));
}

TEST(Assign, ShapesThatContradictAreAnErrorOfTheGraph) {
  AssignVariables t(Tensor::Vector<float>({1, 2}));
  const Output three =
      t.session.Value(Tensor::Vector<float>({1, 2, 3}), /*known_shape=*/true);
  EXPECT_THAT(
      t.session.TryAdd("Assign", {t.v->output(0), three}, {}, "Assign")
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "Dimension 0 in both shapes must be equal, but are 2 and 3. "
               "Shapes are [2] and [3]. for 'Assign' (op: 'Assign') with input "
               "shapes: [2], [3]."));
}

TEST(Assign, CopiesStrings) {
  AssignVariables t(Tensor::Vector<std::string>({"a", "bc"}));
  t.Initialize();
  ExpectClose(t.session.Output0(t.v), Tensor::Vector<std::string>({"a", "bc"}));
  ExpectClose(t.session.Output0(t.read),
              Tensor::Vector<std::string>({"a", "bc"}));
}

TEST(AssignAdd, AddsInPlaceAndPassesTheVariableOn) {
  AssignVariables t(Tensor::Vector<float>({1, 2}));
  const Output one = t.session.Value(Tensor::Vector<float>({10, 20}));
  Node* add = t.session.Add("AssignAdd", {t.v->output(0), one});
  Node* sub = t.session.Add("AssignSub", {add->output(0), one});
  Node* again = t.session.Add("AssignSub", {sub->output(0), one});
  EXPECT_THAT(t.session.Run(add),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "Attempting to use uninitialized value v"));
  t.Initialize();
  ExpectClose(t.session.Output0(add), Tensor::Vector<float>({11, 22}));
  ExpectClose(t.session.Output0(again), Tensor::Vector<float>({1, 2}));
}

TEST(AssignAdd, RefusesAnUpdateOfAnotherSize) {
  AssignVariables t(Tensor::Vector<float>({1, 2}));
  t.Initialize();
  const Output three = t.session.Value(Tensor::Vector<float>({1, 2, 3}));
  EXPECT_THAT(
      t.session.Run(t.session.Add("AssignAdd", {t.v->output(0), three})),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "Parameters and update must be the same size"));
  EXPECT_THAT(
      t.session.Run(
          t.session.Add("AssignSubVariableOp", {t.r->output(0), three})),
      StatusIs(
          absl::StatusCode::kInvalidArgument,
          "Cannot update variable with shape [2] using a Tensor with shape "
          "[3], shapes must be equal."));
}

TEST(AssignAdd, LosesNoStepOfACounterThatThreadsShare) {
  const auto device = MakeTestDevice();
  constexpr int kThreads = 4;
  constexpr int kSteps = 1000;
  const auto run = [&](int steps) {
    OpSession session(*device);
    const AttrMap attrs{{"dtype", DType::kInt64}, {"shape", Shape()}};
    Node* v = session.Add("VariableV2", {}, attrs, "global_step");
    const Output one = session.Value(Tensor::Scalar<int64_t>(1));
    Node* add = session.Add("AssignAdd", {v->output(0), one});
    if (steps == 0) {
      return session.Output0(session.Add("Assign", {v->output(0), one}));
    }
    for (int i = 0; i < steps; ++i) EXPECT_TRUE(session.Run(add).ok());
    return session.Output0(v);
  };
  run(0);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(run, kSteps);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(run(1).scalar<int64_t>(), kThreads * kSteps + 2);
}

TEST(CountUpTo, GivesTheValueBeforeAndStopsAtTheLimit) {
  AssignVariables t(Tensor::Scalar<int32_t>(0));
  t.Initialize();
  Node* count = t.session.Add("CountUpTo", {t.v->output(0)}, {{"limit", 2}});
  EXPECT_EQ(t.session.Output0(count).scalar<int32_t>(), 0);
  EXPECT_EQ(t.session.Output0(count).scalar<int32_t>(), 1);
  EXPECT_THAT(t.session.Run(count),
              StatusIs(absl::StatusCode::kOutOfRange, "Reached limit of 2"));
  Node* resource = t.session.Add("ResourceCountUpTo", {t.r->output(0)},
                                 {{"limit", 1}, {"T", DType::kInt32}});
  EXPECT_EQ(t.session.Output0(resource).scalar<int32_t>(), 0);
  EXPECT_THAT(t.session.Run(resource),
              StatusIs(absl::StatusCode::kOutOfRange, "Reached limit of 1"));
}

TEST(ResourceVariable, CannotBeReadBeforeItIsAssigned) {
  AssignVariables t(Tensor::Vector<float>({1, 2}));
  Node* is_set = t.session.Add("VarIsInitializedOp", {t.r->output(0)});
  Node* add = t.session.Add(
      "AssignAddVariableOp",
      {t.r->output(0), t.session.Value(Tensor::Vector<float>({1, 1}))});
  EXPECT_FALSE(t.session.Output0(is_set).scalar<bool>());
  EXPECT_THAT(
      t.session.Run(t.read),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               "Error while reading resource variable r from Container: "
               "localhost. This could mean that the variable was "
               "uninitialized. Not found: Container localhost does not exist. "
               "(Could not find resource: localhost/r)"));
  EXPECT_THAT(t.session.Run(add),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("uninitialized")));
  EXPECT_TRUE(t.session.Run(t.set_v).ok());
  EXPECT_THAT(t.session.Run(t.read),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("Not found: Resource localhost/r/"
                                 "N10tensorflow3VarE does not exist.")));
  t.Initialize();
  EXPECT_TRUE(t.session.Output0(is_set).scalar<bool>());
  ExpectClose(t.session.Output0(t.read), Tensor::Vector<float>({1, 2}));
}

TEST(ResourceVariable, ReadsAreSnapshotsWithoutACopy) {
  AssignVariables t(Tensor::Vector<float>({1, 2}));
  t.Initialize();
  const Tensor first = t.session.Output0(t.read);
  const Tensor second = t.session.Output0(t.read);
  EXPECT_TRUE(first.SharesBufferWith(second));
  Node* add = t.session.Add(
      "AssignAddVariableOp",
      {t.r->output(0), t.session.Value(Tensor::Vector<float>({1, 1}))});
  SLUICE_ASSERT_OK(t.session.Run(add));
  ExpectClose(first, Tensor::Vector<float>({1, 2}));
  ExpectClose(t.session.Output0(t.read), Tensor::Vector<float>({2, 3}));
}

TEST(ResourceVariable, MayChangeItsShapeButNotItsType) {
  AssignVariables t(Tensor::Vector<float>({1, 2}));
  t.Initialize();
  SLUICE_ASSERT_OK(t.session.Run(t.session.Add(
      "AssignVariableOp",
      {t.r->output(0), t.session.Value(Tensor::Vector<float>({1, 2, 3}))})));
  Node* shape = t.session.Add("VariableShape", {t.r->output(0)});
  ExpectClose(t.session.Output0(shape), Tensor::Vector<int32_t>({3}));
  EXPECT_THAT(
      t.session
          .TryAdd("AssignVariableOp",
                  {t.r->output(0), t.session.Value(Tensor::Scalar<int32_t>(1))})
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("Variable and value dtypes don't match; "
                         "respectively, float and int32")));
}

TEST(ResourceVariable, IsDestroyedOnce) {
  AssignVariables t(Tensor::Vector<float>({1, 2}));
  t.Initialize();
  Node* destroy = t.session.Add("DestroyResourceOp", {t.r->output(0)});
  Node* strict = t.session.Add("DestroyResourceOp", {t.r->output(0)},
                               {{"ignore_lookup_error", false}});
  SLUICE_ASSERT_OK(t.session.Run(destroy));
  SLUICE_ASSERT_OK(t.session.Run(destroy));
  EXPECT_EQ(t.session.Run(strict).code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(t.session.Run(t.read).ok());
}

TEST(ResourceVariable, IsFoundAgainAfterItsContainerWasReset) {
  AssignVariables t(Tensor::Vector<float>({1, 2}));
  t.Initialize();
  Node* add = t.session.Add(
      "AssignAddVariableOp",
      {t.r->output(0), t.session.Value(Tensor::Vector<float>({1, 1}))});
  SLUICE_ASSERT_OK(t.session.Run(t.read));
  SLUICE_ASSERT_OK(t.session.Run(add));
  t.device->resources().Cleanup("");
  EXPECT_EQ(t.session.Run(t.read).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(t.session.Run(add).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(
      t.session
          .Run(t.session.Add(
              "AssignAdd",
              {t.v->output(0), t.session.Value(Tensor::Vector<float>({1, 1}))}))
          .code(),
      absl::StatusCode::kFailedPrecondition);
  t.Initialize();
  ExpectClose(t.session.Output0(t.read), Tensor::Vector<float>({1, 2}));
  ExpectClose(t.session.Output0(t.v), Tensor::Vector<float>({1, 2}));
}

TEST(ResourceVariable, KernelsFollowAChangedHandle) {
  AssignVariables t(Tensor::Vector<float>({1, 2}));
  t.Initialize();
  Node* other =
      t.session.Add("VarHandleOp", {},
                    {{"dtype", DType::kFloat}, {"shape", Shape({2})}}, "other");
  SLUICE_ASSERT_OK(t.session.Run(t.session.Add(
      "AssignVariableOp",
      {other->output(0), t.session.Value(Tensor::Vector<float>({5, 6}))})));
  const Output handle = t.session.Value(t.session.Output0(t.r));
  Node* read =
      t.session.Add("ReadVariableOp", {handle}, {{"dtype", DType::kFloat}});
  ExpectClose(t.session.Output0(read), Tensor::Vector<float>({1, 2}));
  t.session.SetValue(handle, t.session.Output0(other));
  ExpectClose(t.session.Output0(read), Tensor::Vector<float>({5, 6}));
}

TEST(ResourceVariable, ShapesComeFromTheHandle) {
  AssignVariables t(Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(t.read->output_shape(0).DebugString(), "[3,2]");
  EXPECT_EQ(t.session.Add("VariableShape", {t.r->output(0)})
                ->output_shape(0)
                .DebugString(),
            "[2]");
}

TEST(ResourceVariable, HandlesOfOtherDevicesAndKindsAreRefused) {
  const auto device = MakeTestDevice();
  OpSession session(*device);
  ResourceHandle handle;
  handle.device = "/job:ps/replica:0/task:0/device:CPU:0";
  handle.name = "r";
  handle.type_name = "N10tensorflow3VarE";
  const Output input = session.Value(Tensor::Scalar<ResourceHandle>(handle));
  Node* read =
      session.Add("ReadVariableOp", {input}, {{"dtype", DType::kFloat}});
  EXPECT_THAT(session.Run(read),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "Trying to access resource r located in device "
                       "/job:ps/replica:0/task:0/device:CPU:0 from device "
                       "/job:localhost/replica:0/task:0/device:CPU:0"));
  handle.device = device->name();
  handle.type_name = "N10tensorflow14QueueInterfaceE";
  session.SetValue(input, Tensor::Scalar<ResourceHandle>(handle));
  EXPECT_THAT(session.Run(read),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "Trying to access resource using the wrong type. "
                       "Expected N10tensorflow14QueueInterfaceE got "
                       "N10tensorflow3VarE"));
  session.SetValue(input, Tensor(DType::kResource, {0}));
  EXPECT_EQ(session.Run(read).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace sluice
