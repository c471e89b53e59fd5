#include "sluice/base/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace sluice {
namespace {

using testing::HasSubstr;

TEST(Limits, AreSetByName) {
  Limits limits;
  ASSERT_TRUE(limits.Set("sessions=3,graph_bytes=64M").ok());
  EXPECT_EQ(limits.sessions, 3);
  EXPECT_EQ(limits.graph_bytes, 64 << 20);
  EXPECT_EQ(limits.graphs, Limits().graphs);
}

TEST(Limits, TakeTwoGigabytesForAllThereIs) {
  Limits limits;
  ASSERT_TRUE(limits.Set("message_bytes=2G").ok());
  EXPECT_EQ(limits.message_bytes, INT_MAX);
}

TEST(Limits, RefuseWhatIsNoNumber) {
  for (const char* text : {"sessions", "sessions=", "sessions=x", "sessions=0",
                           "sessions=-1", "sessions=1T", "sessions=1M1",
                           "sessions=99999999999999999999", "sessions=3G"}) {
    Limits limits;
    EXPECT_THAT(std::string(limits.Set(text).message()),
                HasSubstr("The limit sessions is a number"))
        << text;
    EXPECT_EQ(limits.sessions, Limits().sessions);
  }
}

TEST(Limits, NameThoseThereAre) {
  Limits limits;
  const std::string message(limits.Set("seasons=3").message());
  EXPECT_THAT(message, HasSubstr("'seasons'"));
  EXPECT_THAT(message, HasSubstr("sessions"));
  EXPECT_THAT(limits.Describe(), HasSubstr("handshake_ms    20000"));
}

TEST(Limits, ComeFromTheEnvironment) {
  setenv("SLUICE_LIMITS", "sessions=7", 1);
  EXPECT_EQ(Limits::FromEnvironment()->sessions, 7);
  setenv("SLUICE_LIMITS", "sessions=many", 1);
  EXPECT_THAT(std::string(Limits::FromEnvironment().status().message()),
              HasSubstr("SLUICE_LIMITS:"));
  setenv("SLUICE_LIMITS", "", 1);
  EXPECT_THAT(std::string(Limits::FromEnvironment().status().message()),
              HasSubstr("SLUICE_LIMITS: There is no limit ''"));
  unsetenv("SLUICE_LIMITS");
  EXPECT_EQ(Limits::FromEnvironment()->sessions, Limits().sessions);
}

TEST(Limits, TellHowToRaiseThem) {
  const absl::Status status = OverLimit("a request of 9 bytes", "x", 8);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("limit x=8"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--limit x=N"));
}

}  // namespace
}  // namespace sluice
