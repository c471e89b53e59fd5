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

// More of them: `make simulate`.
TEST_F(Simulation, NoSeedBreaksAPromise) {
  int acknowledged = 0;
  int attempted = 0;
  int taken_in = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    const RunReport report = RunSeed({.seed = seed});
    EXPECT_THAT(report.violations, IsEmpty())
        << "see `simulate --seed " << seed << "`";
    acknowledged += report.acknowledged;
    attempted += report.attempted;
    taken_in += report.taken_in;
  }
  // The faults leave some steps alone and hit others.
  EXPECT_GT(acknowledged, attempted / 2);
  EXPECT_LT(acknowledged, attempted);
  EXPECT_GT(taken_in, 0);
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

// Whether a planted bug shows as `violation` within 300 seeds: many more than
// it took, as what a seed means differs from compiler to compiler.
bool Finds(const PlantedBugs& planted, const std::string& violation) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
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

TEST_F(Simulation, FindsASessionThatOutlivesItsPs) {
  EXPECT_TRUE(Finds({.answers_without_running = true},
                    "went on after a restart of its ps"));
}

TEST_F(Simulation, FindsAnUpdateThatIsAppliedTwice) {
  EXPECT_TRUE(Finds({.runs_twice = true}, "doubled"));
}

TEST_F(Simulation, FindsACallThatNeverEnds) {
  EXPECT_TRUE(Finds({.forgets_the_caller = true}, "does not end"));
}

TEST_F(Simulation, FindsACallThatIsKept) {
  EXPECT_TRUE(Finds({.forgets_the_caller = true}, "leak: open calls"));
}

TEST_F(Simulation, FindsAStepThatTakesLongerThanPromised) {
  EXPECT_TRUE(Finds({.answers_late = true}, "longer than promised"));
}

TEST_F(Simulation, FindsAWaitThatNobodyNames) {
  EXPECT_TRUE(Finds({.hides_waits = true}, "RunStep on "));
  EXPECT_TRUE(Finds({.hides_waits = true}, "waits for what nobody names"));
}

TEST_F(Simulation, FindsASessionThatDoesNotNameWhoIsMissing) {
  EXPECT_TRUE(Finds({.hides_missing_tasks = true}, "CreateSession on worker"));
}

TEST_F(Simulation, FindsAnErrorThatAClientCannotActOn) {
  EXPECT_TRUE(Finds({.wrong_code = true}, "unexpected error of push"));
  EXPECT_TRUE(Finds({.wrong_code = true}, "unexpected error of dequeue"));
}

TEST_F(Simulation, FindsAPullOfOldValues) {
  EXPECT_TRUE(
      Finds({.repeats_fetches = true}, "which was acknowledged before"));
}

TEST_F(Simulation, FindsATokenThatIsTakenTwice) {
  EXPECT_TRUE(Finds({.repeats_fetches = true}, "was dequeued twice"));
}

TEST_F(Simulation, FindsASessionThatIsKept) {
  EXPECT_TRUE(Finds({.keeps_sessions = true}, "sessions of the worker"));
  EXPECT_TRUE(Finds({.keeps_sessions = true}, "registered graphs"));
  EXPECT_TRUE(Finds({.keeps_master_sessions = true}, "sessions of the master"));
}

TEST_F(Simulation, FindsASessionWhoseClientIsGone) {
  EXPECT_TRUE(Finds({.keeps_leases = true}, "of a client that is gone"));
}

TEST_F(Simulation, FindsAStepThatIsKept) {
  // By itself it does no harm: a step goes with its session at the latest.
  EXPECT_TRUE(Finds({.keeps_sessions = true, .keeps_steps = true}, "steps on"));
}

TEST_F(Simulation, FindsWhatElseStaysBehind) {
  EXPECT_TRUE(Finds({.leaks_tensors = true}, "bytes of tensors"));
  EXPECT_TRUE(Finds({.leaks_waits = true}, "leak: a wait: planted"));
  EXPECT_TRUE(Finds({.leaks_waits = true}, "a wait outlives its task"));
  EXPECT_TRUE(Finds({.leaks_timers = true}, "does not come to rest: "));
  EXPECT_TRUE(Finds({.leaks_tasks = true}, "The master of"));
}

// The last of them: what they keep in the process is gone with them.
TEST_F(Simulation, PlantedBugsAreGoneWithTheirRun) {
  EXPECT_THAT(RunSeed({.seed = 1}).violations, IsEmpty());
}

}  // namespace
}  // namespace sluice::sim
