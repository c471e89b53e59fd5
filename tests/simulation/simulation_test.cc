#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "sluice/base/logging.h"
#include "tests/simulation/run.h"

namespace sluice::sim {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Simulation : public testing::Test {
 protected:
  // Lost peers are expected here, and what servers say of them, too.
  Simulation() {
    SetLogSinkForTest([](LogLevel, const std::string&) {});
  }
  ~Simulation() override { SetLogSinkForTest({}); }
};

TEST_F(Simulation, WithoutFaultsEveryStepIsAcknowledged) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const RunReport report = RunSeed({.seed = seed, .faults = false});
    EXPECT_THAT(report.violations, IsEmpty()) << "seed " << seed;
    EXPECT_GT(report.attempted, 0);
    EXPECT_EQ(report.acknowledged, report.attempted);
    EXPECT_EQ(report.faults, 0);
  }
}

TEST_F(Simulation, GraphsGoWithTheirSessionsWithoutACall) {
  const RunReport report =
      RunSeed({.seed = 1, .faults = false, .keep_trace = true});
  EXPECT_THAT(report.trace, Contains(HasSubstr("DeleteWorkerSession")));
  EXPECT_THAT(report.trace, Not(Contains(HasSubstr("DeregisterGraph"))));
}

// More of them: `simulate --seeds 1..10000`.
TEST_F(Simulation, NoSeedBreaksAPromise) {
  int acknowledged = 0;
  int attempted = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const RunReport report = RunSeed({.seed = seed});
    EXPECT_THAT(report.violations, IsEmpty())
        << "see `simulate --seed " << seed << "`";
    acknowledged += report.acknowledged;
    attempted += report.attempted;
  }
  // The faults leave some steps alone and hit others.
  EXPECT_GT(acknowledged, attempted / 2);
  EXPECT_LT(acknowledged, attempted);
}

TEST_F(Simulation, ASeedReproducesBitForBit) {
  std::set<uint64_t> hashes;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const RunReport once = RunSeed({.seed = seed, .keep_trace = true});
    const RunReport again = RunSeed({.seed = seed, .keep_trace = true});
    EXPECT_EQ(once.trace, again.trace) << "seed " << seed;
    EXPECT_EQ(once.hash, again.hash);
    hashes.insert(once.hash);
  }
  EXPECT_EQ(hashes.size(), 20u);
}

// Whether a planted bug shows as `violation` within 30 seeds.
bool Finds(const PlantedBugs& planted, const std::string& violation) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    for (const std::string& found :
         RunSeed({.seed = seed, .planted = planted}).violations) {
      if (found.find(violation) != found.npos) return true;
    }
  }
  return false;
}

TEST_F(Simulation, FindsAStepThatIsReportedButNotRun) {
  EXPECT_TRUE(Finds({.answers_without_running = true}, "half-reported"));
  EXPECT_TRUE(Finds({.answers_without_running = true}, "lost"));
}

TEST_F(Simulation, FindsAnUpdateThatIsAppliedTwice) {
  EXPECT_TRUE(Finds({.runs_twice = true}, "doubled"));
}

TEST_F(Simulation, FindsACallThatNeverEnds) {
  EXPECT_TRUE(Finds({.forgets_the_caller = true}, "does not end"));
}

TEST_F(Simulation, FindsASessionThatIsKept) {
  EXPECT_TRUE(Finds({.keeps_sessions = true}, "leak"));
}

}  // namespace
}  // namespace sluice::sim
