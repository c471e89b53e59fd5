#include "sluice/base/time_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "sluice/base/logging.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;

constexpr char kName[] = "SLUICE_TEST_SECONDS";

std::optional<milliseconds> Read(const char* text, int least = 0) {
  setenv(kName, text, 1);
  const auto seconds = SecondsFromEnvironment(kName, milliseconds(least));
  unsetenv(kName);
  return seconds;
}

TEST(SecondsFromEnvironment, ReadsANumber) {
  EXPECT_EQ(Read("2.5"), milliseconds(2500));
  EXPECT_EQ(Read("0"), milliseconds(0));
  EXPECT_EQ(Read("1e3"), milliseconds(1'000'000));
}

TEST(SecondsFromEnvironment, TakesMoreThanACenturyForOne) {
  for (const char* never : {"inf", "1e17", "1e300", "1e999"}) {
    EXPECT_EQ(Read(never), kCentury) << never;
  }
}

TEST(SecondsFromEnvironment, WarnsOfWhatItIgnores) {
  std::vector<std::string> lines;
  SetLogSinkForTest(
      [&](LogLevel, const std::string& line) { lines.push_back(line); });
  const char* const kWrong[] = {"soon", "nan", "-nan", "-1", "-inf", " ", "1s"};
  for (const char* text : kWrong) {
    EXPECT_EQ(Read(text), std::nullopt) << text;
  }
  EXPECT_EQ(Read("0", 1), std::nullopt);
  SetLogSinkForTest({});
  ASSERT_EQ(lines.size(), std::size(kWrong) + 1);
  EXPECT_THAT(lines[1],
              testing::HasSubstr("SLUICE_TEST_SECONDS must be a number of "
                                 "seconds, not 'nan'; it is ignored"));
}

TEST(SecondsFromEnvironment, SaysNothingWhereNothingIsSet) {
  std::vector<std::string> lines;
  SetLogSinkForTest(
      [&](LogLevel, const std::string& line) { lines.push_back(line); });
  EXPECT_EQ(Read(""), std::nullopt);
  EXPECT_EQ(SecondsFromEnvironment(kName, milliseconds(0)), std::nullopt);
  SetLogSinkForTest({});
  EXPECT_TRUE(lines.empty());
}

}  // namespace
}  // namespace sluice
