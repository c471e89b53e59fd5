#include "sluice/master/plan_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>

namespace sluice {
namespace {

// The cache does not look into plans, so any address will do.
PlanCache::PlanPtr MakeFakePlan() {
  auto something = std::make_shared<int>();
  return {something, reinterpret_cast<const StepPlan*>(something.get())};
}

StepSignature Target(const std::string& name) { return {{}, {}, {name}}; }

using PlanOr = absl::StatusOr<PlanCache::PlanPtr>;

// What the cache gives for a plan that is built at once; `built` counts.
PlanOr FindOrBuild(PlanCache& cache, const std::string& target, int* built) {
  PlanOr result = absl::UnknownError("no answer");
  cache.FindOrBuild(
      Target(target),
      [&](PlanCache::Done done) {
        ++*built;
        done(MakeFakePlan());
      },
      [&](PlanOr plan) { result = std::move(plan); });
  return result;
}

TEST(PlanCache, BuildsEachKindOfStepOnce) {
  PlanCache cache(10);
  int built = 0;
  EXPECT_EQ(cache.Find(Target("a")), nullptr);
  const PlanOr first = FindOrBuild(cache, "a", &built);
  EXPECT_EQ(*FindOrBuild(cache, "a", &built), *first);
  EXPECT_EQ(cache.Find(Target("a")), *first);
  EXPECT_EQ(built, 1);
  EXPECT_NE(*FindOrBuild(cache, "b", &built), *first);
  EXPECT_EQ(built, 2);
}

TEST(PlanCache, ForgetsTheOneThatWasNotUsedForLongest) {
  PlanCache cache(2);
  int built = 0;
  const auto a = *FindOrBuild(cache, "a", &built);
  const auto b = *FindOrBuild(cache, "b", &built);
  cache.Find(Target("a"));
  const auto c = *FindOrBuild(cache, "c", &built);
  EXPECT_EQ(cache.Find(Target("a")), a);
  EXPECT_EQ(cache.Find(Target("b")), nullptr);
  EXPECT_EQ(cache.Find(Target("c")), c);
}

TEST(PlanCache, ThoseWhoAskMeanwhileGetTheSameAnswer) {
  PlanCache cache(10);
  for (const PlanOr& answer :
       {PlanOr(absl::InternalError("no")), PlanOr(MakeFakePlan())}) {
    std::vector<PlanCache::Done> builds;
    std::vector<PlanOr> answers;
    const auto ask = [&] {
      cache.FindOrBuild(
          Target("a"),
          [&](PlanCache::Done done) { builds.push_back(std::move(done)); },
          [&](PlanOr plan) { answers.push_back(std::move(plan)); });
    };
    ask();
    ask();
    EXPECT_EQ(cache.Find(Target("a")), nullptr);
    EXPECT_TRUE(answers.empty());
    ASSERT_EQ(builds.size(), 1u);  // A failure before was not remembered.
    builds[0](answer);
    EXPECT_THAT(answers, testing::ElementsAre(answer, answer));
  }
}

TEST(PlanCache, ABuildThatRunsOutOfMemoryFailsOnceForAllWhoWait) {
  PlanCache cache(10);
  std::vector<PlanCache::Done> builds;
  std::vector<PlanOr> answers;
  const auto note = [&](PlanOr plan) { answers.push_back(std::move(plan)); };
  const auto keep = [&](PlanCache::Done done) {
    builds.push_back(std::move(done));
  };
  cache.FindOrBuild(
      Target("a"),
      [&](PlanCache::Done done) {
        keep(std::move(done));
        cache.FindOrBuild(Target("a"), keep, note);
        throw std::bad_alloc();
      },
      note);
  ASSERT_EQ(answers.size(), 2u);
  for (const PlanOr& answer : answers) {
    EXPECT_TRUE(absl::IsResourceExhausted(answer.status())) << answer.status();
  }
  // What it has left behind does not answer for the next one.
  cache.FindOrBuild(Target("a"), keep, note);
  ASSERT_EQ(builds.size(), 2u);
  builds[0](MakeFakePlan());
  EXPECT_EQ(answers.size(), 2u);
  const PlanCache::PlanPtr plan = MakeFakePlan();
  builds[1](plan);
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(*answers[2], plan);
  EXPECT_EQ(cache.Find(Target("a")), plan);
}

TEST(PlanCache, APlanStaysWhenOneWhoWaitedForItRunsOutOfMemory) {
  PlanCache cache(10);
  const PlanCache::PlanPtr plan = MakeFakePlan();
  EXPECT_THROW(cache.FindOrBuild(
                   Target("a"), [&](PlanCache::Done done) { done(plan); },
                   [](const PlanOr&) { throw std::bad_alloc(); }),
               std::bad_alloc);
  EXPECT_EQ(cache.Find(Target("a")), plan);
}

TEST(PlanCache, APlanIsStillGivenToThoseWhoWaitedWhenAllIsCleared) {
  PlanCache cache(10);
  PlanCache::Done build;
  PlanOr result = absl::UnknownError("no answer");
  cache.FindOrBuild(
      Target("a"), [&](PlanCache::Done done) { build = std::move(done); },
      [&](PlanOr plan) { result = std::move(plan); });
  cache.Clear();
  build(MakeFakePlan());
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(cache.Find(Target("a")), nullptr);
}

}  // namespace
}  // namespace sluice
