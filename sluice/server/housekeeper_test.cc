#include "sluice/server/housekeeper.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace sluice {
namespace {

HousekeeperOptions Told(const char* seconds) {
  constexpr const char* kNames[] = {"SLUICE_STALL_SECONDS",
                                    "SLUICE_SESSION_GRACE_SECONDS",
                                    "SLUICE_SESSION_IDLE_SECONDS"};
  for (const char* name : kNames) setenv(name, seconds, 1);
  HousekeeperOptions options = HousekeeperOptions::FromEnvironment();
  for (const char* name : kNames) unsetenv(name);
  return options;
}

TEST(HousekeeperOptions, AreTheEnvironments) {
  const HousekeeperOptions options = Told("1.5");
  EXPECT_EQ(options.stall_seconds, 1.5);
  EXPECT_EQ(options.sessions.released, std::chrono::milliseconds(1500));
  EXPECT_EQ(options.sessions.unused, std::chrono::milliseconds(1500));
}

TEST(HousekeeperOptions, MayMeanNever) {
  for (const char* never : {"inf", "1e17"}) {
    const HousekeeperOptions options = Told(never);
    EXPECT_GT(options.stall_seconds, 3e9);
    EXPECT_GT(options.sessions.released, std::chrono::years(99));
    EXPECT_GT(options.sessions.unused, std::chrono::years(99));
  }
}

TEST(HousekeeperOptions, DoNotTakeWhatIsNoNumber) {
  const HousekeeperOptions options = Told("nan"), usual;
  EXPECT_EQ(options.stall_seconds, usual.stall_seconds);
  EXPECT_EQ(options.sessions.released, usual.sessions.released);
  EXPECT_EQ(options.sessions.unused, usual.sessions.unused);
}

}  // namespace
}  // namespace sluice
