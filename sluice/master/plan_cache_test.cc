#include "sluice/master/plan_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace sluice {
namespace {

// The cache does not look into plans, so any address will do.
PlanCache::PlanPtr MakeFakePlan() {
  auto something = std::make_shared<int>();
  return {something, reinterpret_cast<const StepPlan*>(something.get())};
}

StepSignature Target(const std::string& name) { return {{}, {}, {name}}; }

TEST(PlanCache, BuildsEachKindOfStepOnce) {
  PlanCache cache(10);
  int built = 0;
  const auto build = [&]() -> absl::StatusOr<PlanCache::PlanPtr> {
    ++built;
    return MakeFakePlan();
  };
  EXPECT_EQ(cache.Find(Target("a")), nullptr);
  const auto first = cache.FindOrBuild(Target("a"), build);
  EXPECT_EQ(*cache.FindOrBuild(Target("a"), build), *first);
  EXPECT_EQ(cache.Find(Target("a")), *first);
  EXPECT_EQ(built, 1);
  EXPECT_NE(*cache.FindOrBuild(Target("b"), build), *first);
  EXPECT_EQ(built, 2);
}

TEST(PlanCache, DoesNotRememberFailures) {
  PlanCache cache(10);
  EXPECT_FALSE(
      cache.FindOrBuild(Target("a"), [] { return absl::InternalError("no"); })
          .ok());
  EXPECT_EQ(cache.Find(Target("a")), nullptr);
  EXPECT_TRUE(cache
                  .FindOrBuild(Target("a"),
                               []() -> absl::StatusOr<PlanCache::PlanPtr> {
                                 return MakeFakePlan();
                               })
                  .ok());
}

TEST(PlanCache, ForgetsTheOneThatWasNotUsedForLongest) {
  PlanCache cache(2);
  const auto build = []() -> absl::StatusOr<PlanCache::PlanPtr> {
    return MakeFakePlan();
  };
  const auto a = *cache.FindOrBuild(Target("a"), build);
  const auto b = *cache.FindOrBuild(Target("b"), build);
  cache.Find(Target("a"));
  const auto c = *cache.FindOrBuild(Target("c"), build);
  EXPECT_EQ(cache.Find(Target("a")), a);
  EXPECT_EQ(cache.Find(Target("b")), nullptr);
  EXPECT_EQ(cache.Find(Target("c")), c);
}

TEST(PlanCache, OneBuildsWhileOthersWait) {
  PlanCache cache(10);
  std::atomic<int> built{0};
  Notification building, go_on;
  const auto build = [&]() -> absl::StatusOr<PlanCache::PlanPtr> {
    ++built;
    building.Notify();
    go_on.Wait();
    return MakeFakePlan();
  };
  std::thread first(
      [&] { EXPECT_TRUE(cache.FindOrBuild(Target("a"), build).ok()); });
  building.Wait();
  EXPECT_EQ(cache.Find(Target("a")), nullptr);  // Does not wait.
  std::thread second(
      [&] { EXPECT_TRUE(cache.FindOrBuild(Target("a"), build).ok()); });
  go_on.Notify();
  first.join();
  second.join();
  EXPECT_EQ(built, 1);
}

}  // namespace
}  // namespace sluice
