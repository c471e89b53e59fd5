#include "sluice/kernel/resource.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/kernel/testing/op_test.h"
#include "sluice/kernel/variable.h"

namespace sluice {
namespace {

using testing::HasSubstr;

// Counts how many of its kind live.
struct Counted : Resource {
  explicit Counted(int* count) : live(count) { ++*live; }
  ~Counted() override { --*live; }
  std::string DebugString() const override { return "counted"; }
  int* const live;
};
struct Other : Counted {
  using Counted::Counted;
};

TEST(RefPtr, TheLastReferenceDeletes) {
  int live = 0;
  RefPtr<Counted> a = MakeRef<Counted>(&live);
  {
    RefPtr<Counted> b = a;
    RefPtr<Counted> c = std::move(a);
    EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(live, 1);
    b = nullptr;
    EXPECT_EQ(live, 1);
  }
  EXPECT_EQ(live, 0);
}

TEST(ResourceManager, FindsWhatWasCreatedUnderItsContainerTypeAndName) {
  int live = 0;
  ResourceManager manager("ps");
  SLUICE_ASSERT_OK(manager.Create("c", "x", MakeRef<Counted>(&live)));
  SLUICE_ASSERT_OK(manager.Create("c", "x", MakeRef<Other>(&live)));
  EXPECT_TRUE(manager.Lookup<Counted>("c", "x").ok());
  EXPECT_EQ(live, 2);
  EXPECT_TRUE(
      absl::IsAlreadyExists(manager.Create("c", "x", MakeRef<Counted>(&live))));
  EXPECT_EQ(live, 2);
  EXPECT_TRUE(absl::IsNotFound(manager.Lookup<Counted>("c", "y").status()));
  EXPECT_THAT(manager.Lookup<Counted>("d", "x").status(),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("Container d does not exist. (Could not find "
                                 "resource: d/x)")));
}

TEST(ResourceManager, AStarMeansAllContainersButThoseOfSteps) {
  int live = 0;
  ResourceManager manager("ps");
  for (const char* container : {"", "c", "d/e", "__per_step_7"}) {
    SLUICE_ASSERT_OK(manager.Create(container, "x", MakeRef<Counted>(&live)));
  }
  manager.Cleanup("");
  EXPECT_EQ(live, 3);
  manager.Cleanup(ResourceManager::kAll);
  EXPECT_EQ(live, 1);
  EXPECT_TRUE(manager.Lookup<Counted>("__per_step_7", "x").ok());
}

TEST(ResourceManager, NoContainerMeansTheDefaultOne) {
  int live = 0;
  ResourceManager manager("ps");
  SLUICE_ASSERT_OK(manager.Create("", "x", MakeRef<Counted>(&live)));
  EXPECT_TRUE(manager.Lookup<Counted>("ps", "x").ok());
  SLUICE_ASSERT_OK(manager.Create("mine", "x", MakeRef<Counted>(&live)));
  manager.Cleanup("");
  EXPECT_EQ(live, 1);
  EXPECT_TRUE(manager.Lookup<Counted>("mine", "x").ok());
}

TEST(ResourceManager, WhoHoldsAResourceKeepsItAlive) {
  int live = 0;
  ResourceManager manager("ps");
  SLUICE_ASSERT_OK(manager.Create("", "x", MakeRef<Counted>(&live)));
  auto held = manager.Lookup<Counted>("", "x");
  SLUICE_ASSERT_OK(manager.Delete<Counted>("", "x"));
  EXPECT_FALSE(manager.Delete<Counted>("", "x").ok());
  EXPECT_EQ(live, 1);
  held = RefPtr<Counted>();
  EXPECT_EQ(live, 0);
}

TEST(ResourceManager, CreatesAtMostOnce) {
  int live = 0, made = 0;
  ResourceManager manager("ps");
  const auto make = [&]() -> absl::StatusOr<RefPtr<Counted>> {
    ++made;
    return MakeRef<Counted>(&live);
  };
  auto first = manager.LookupOrCreate<Counted>("", "x", make);
  auto second = manager.LookupOrCreate<Counted>("", "x", make);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(first->get(), second->get());
  const auto fail = []() -> absl::StatusOr<RefPtr<Counted>> {
    return Internal("cannot");
  };
  EXPECT_TRUE(absl::IsInternal(
      manager.LookupOrCreate<Counted>("", "y", fail).status()));
  EXPECT_TRUE(absl::IsNotFound(manager.Lookup<Counted>("", "y").status()));
}

TEST(ResourceManager, DropsEverythingAtItsEnd) {
  int live = 0;
  {
    ResourceManager manager("ps");
    SLUICE_ASSERT_OK(manager.Create("", "x", MakeRef<Counted>(&live)));
    SLUICE_ASSERT_OK(manager.Create("c", "y", MakeRef<Counted>(&live)));
    EXPECT_THAT(manager.List(),
                testing::ElementsAre("c/y: counted", "ps/x: counted"));
  }
  EXPECT_EQ(live, 0);
}

TEST(ContainerName, IsWhatTensorFlowAccepts) {
  for (const char* good : {"a", "A.b-c/d", "0"}) {
    SLUICE_EXPECT_OK(CheckContainerName(good));
  }
  for (const char* bad : {"-a", "/a", "a b", "a_b", "é"}) {
    EXPECT_THAT(CheckContainerName(bad),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(StrCat(
                             "container contains invalid characters: ", bad))));
  }
}

TEST(Variable, AWriterNeverChangesWhatAReaderHolds) {
  VariableState variable(DType::kFloat);
  EXPECT_FALSE(variable.initialized());
  variable.Assign(Tensor::Of<float>({2}, {1, 2}));
  const Tensor snapshot = variable.Read();
  {
    MutexLock lock(variable.mu());
    (*variable.mutable_value())->mutable_data<float>()[0] = 7;
  }
  EXPECT_EQ(snapshot.data<float>()[0], 1);
  EXPECT_EQ(variable.Read().data<float>()[0], 7);
}

TEST(Variable, AWriterAloneWritesInPlace) {
  VariableState variable(DType::kFloat);
  variable.Assign(Tensor::Of<float>({2}, {1, 2}));
  const void* before = variable.Read().raw();
  {
    MutexLock lock(variable.mu());
    EXPECT_EQ((*variable.mutable_value())->raw(), before);
  }
}

TEST(Variable, NothingCannotBeUpdated) {
  VariableState variable(DType::kFloat);
  MutexLock lock(variable.mu());
  EXPECT_FALSE(variable.mutable_value().ok());
}

}  // namespace
}  // namespace sluice
