#include "sluice/server/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/server/testing/cluster_test.h"

namespace sluice {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class DoctorTest : public ClusterTest {
 protected:
  std::vector<std::string> Addresses() const {
    return {*spec_.TaskAddress("ps", 0), *spec_.TaskAddress("worker", 0),
            *spec_.TaskAddress("worker", 1)};
  }
};

TEST_F(DoctorTest, FindsAHealthyClusterWell) {
  const std::vector<TaskDiagnosis> tasks = Diagnose(spec_);
  ASSERT_EQ(tasks.size(), 3);
  for (const TaskDiagnosis& task : tasks) {
    EXPECT_TRUE(task.healthy) << task.finding;
    EXPECT_TRUE(task.round_trip_ms.has_value());
    ASSERT_TRUE(task.skew_ms.has_value());
    // One process, one clock.
    EXPECT_LT(std::abs(*task.skew_ms), *task.round_trip_ms + 1);
    EXPECT_EQ(task.devices.size(), 1);
  }
  EXPECT_THAT(DiagnosisText(tasks), HasSubstr("All 3 tasks are well."));
}

TEST_F(DoctorTest, TellsSwappedAddresses) {
  const std::vector<std::string> a = Addresses();
  const std::vector<TaskDiagnosis> tasks =
      Diagnose(ClusterSpec{{"ps", {a[1]}}, {"worker", {a[0], a[2]}}});
  EXPECT_FALSE(tasks[0].healthy);
  EXPECT_EQ(tasks[0].finding, "answers as /job:worker/replica:0/task:0");
  EXPECT_THAT(tasks[0].advice, HasSubstr("swapped"));
  EXPECT_EQ(tasks[1].finding, "answers as /job:ps/replica:0/task:0");
  EXPECT_THAT(DiagnosisText(tasks), HasSubstr("3 of 3 tasks need attention."));
}

TEST_F(DoctorTest, TellsAnotherCluster) {
  const std::vector<std::string> a = Addresses();
  const std::vector<TaskDiagnosis> tasks =
      Diagnose(ClusterSpec{{"ps", {a[0]}}, {"worker", {a[1]}}});
  EXPECT_EQ(tasks[0].finding,
            "was started with another cluster: it has "
            "/job:worker/replica:0/task:1 too");
}

TEST_F(DoctorTest, TellsTwoAddressesOfOneProcess) {
  const std::vector<std::string> a = Addresses();
  std::string same = a[0];
  same.replace(0, sizeof("localhost") - 1, "127.0.0.1");
  const std::vector<TaskDiagnosis> tasks =
      Diagnose(ClusterSpec{{"ps", {a[0], same}}});
  EXPECT_FALSE(tasks[1].healthy);
  EXPECT_EQ(tasks[1].finding, "answers as /job:ps/replica:0/task:0");
}

TEST_F(DoctorTest, TellsWhoDoesNotAnswerAndWhy) {
  Port silent;
  ASSERT_EQ(listen(silent.fd, 1), 0);
  const std::string nobody = Local(FreePorts(1)[0]);
  DoctorOptions options;
  options.timeout = std::chrono::seconds(2);
  const std::vector<TaskDiagnosis> tasks =
      Diagnose(ClusterSpec{{"a",
                            {nobody, Local(silent.number),
                             "nowhere.invalid:2222", "no address"}}},
               options);
  EXPECT_THAT(tasks[0].finding, AllOf(HasSubstr("refused"), HasSubstr(nobody)));
  EXPECT_THAT(tasks[1].finding, HasSubstr("no answer from"));
  EXPECT_THAT(tasks[2].finding, HasSubstr("does not resolve"));
  EXPECT_THAT(tasks[3].finding, HasSubstr("host-port pair"));
  for (const TaskDiagnosis& task : tasks) {
    EXPECT_FALSE(task.healthy);
    EXPECT_FALSE(task.advice.empty());
    EXPECT_THAT(DiagnosisText(tasks), HasSubstr(task.advice));
  }
}

TEST_F(DoctorTest, TellsClocksThatDiffer) {
  DoctorOptions options;
  options.max_skew_ms = -1;
  const std::vector<TaskDiagnosis> tasks = Diagnose(spec_, options);
  EXPECT_THAT(tasks[0].finding, HasSubstr("clock"));
  EXPECT_THAT(tasks[0].advice, HasSubstr("NTP"));
}

}  // namespace
}  // namespace sluice
