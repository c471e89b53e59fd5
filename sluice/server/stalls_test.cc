#include "sluice/server/stalls.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "sluice/base/status.h"

namespace sluice {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kOwingTask[] = "/job:ps/replica:0/task:0";

pb::TaskStatus Parsed(const std::string& text) {
  pb::TaskStatus status;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &status));
  return status;
}

// A worker whose step waits for a tensor of the ps.
pb::TaskStatus StatusOfWorker(double step_age, double wait_age) {
  return Parsed(StrCat(R"(
      task: "/job:worker/replica:0/task:0"
      peers { task: "/job:ps/replica:0/task:0" address: "host:1"
              last_answer_seconds: 61 }
      sessions { handle: "abc"
        steps { id: 12 age_seconds: )",
                       step_age, R"(
                running_on: "/job:worker/replica:0/task:0" } }
      waits { what: "tensor edge_5_w from /job:ps/replica:0/task:0/device:CPU:0"
              where: "w_S1 on /job:worker/replica:0/task:0/device:CPU:0"
              step_id: 12 owed_by: "/job:ps/replica:0/task:0"
              age_seconds: )",
                       wait_age, "}"));
}

absl::StatusOr<pb::TaskStatus> NobodyAnswers(const std::string&,
                                             const std::string& address) {
  return Unavailable("no answer from ", address);
}

TEST(StallWatch, SpeaksOfAStepThatWaitsTooLongThenAtGrowingIntervals) {
  StallWatch watch(60);
  EXPECT_TRUE(watch.Find(StatusOfWorker(59, 59)).empty());
  EXPECT_EQ(watch.Find(StatusOfWorker(61, 61)).size(), 1);
  EXPECT_TRUE(watch.Find(StatusOfWorker(100, 100)).empty());
  EXPECT_EQ(watch.Find(StatusOfWorker(123, 123)).size(), 1);
  EXPECT_TRUE(watch.Find(StatusOfWorker(200, 200)).empty());
  EXPECT_EQ(watch.Find(StatusOfWorker(250, 250)).size(), 1);
}

TEST(StallWatch, AStepThatMovesIsNotStuck) {
  StallWatch watch(60);
  EXPECT_TRUE(watch.Find(StatusOfWorker(1000, 3)).empty());
}

TEST(StallWatch, AStepThatComputesIsNotStuck) {
  StallWatch watch(60);
  pb::TaskStatus status = StatusOfWorker(1000, 1000);
  status.clear_waits();
  EXPECT_TRUE(watch.Find(status).empty());
}

TEST(StallWatch, APartThatRunsElsewhereIsAskedFor) {
  StallWatch watch(60);
  pb::TaskStatus status = StatusOfWorker(1000, 1000);
  status.clear_waits();
  status.mutable_sessions(0)->mutable_steps(0)->add_running_on(kOwingTask);
  ASSERT_EQ(watch.Find(status).size(), 1);
}

TEST(DescribeStall, NamesTheNodeTheEdgeAndTheTaskThatOwesIt) {
  StallWatch watch(60);
  const pb::TaskStatus status = StatusOfWorker(61, 61);
  const StallLine line =
      DescribeStall(watch.Find(status)[0], status, NobodyAnswers);
  EXPECT_EQ(line.text,
            "Step 12 of session abc has waited 61 s: node w_S1 on "
            "/job:worker/replica:0/task:0/device:CPU:0 waits for tensor "
            "edge_5_w from /job:ps/replica:0/task:0/device:CPU:0; "
            "/job:ps/replica:0/task:0 at host:1 (last answer 61 s ago) does "
            "not tell what it does: no answer from host:1");
  EXPECT_FALSE(line.patient);
}

TEST(DescribeStall, FollowsTheWaitToOneThatMayTakeItsTime) {
  StallWatch watch(60);
  const pb::TaskStatus status = StatusOfWorker(61, 61);
  const StallLine line = DescribeStall(
      watch.Find(status)[0], status,
      [](const std::string& task, const std::string& address) {
        EXPECT_EQ(task, kOwingTask);
        EXPECT_EQ(address, "host:1");
        return Parsed(
            "waits { what: \"dequeue from 'q'\" where: \"d on ps\" "
            "step_id: 12 }"
            "waits { what: 'another' where: 'x' step_id: 13 }");
      });
  EXPECT_THAT(line.text,
              HasSubstr("node d on ps waits for dequeue from 'q' (for as long "
                        "as that takes)"));
  EXPECT_THAT(line.text, Not(HasSubstr("another")));
  EXPECT_TRUE(line.patient);
}

}  // namespace
}  // namespace sluice
