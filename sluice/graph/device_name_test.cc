#include "sluice/graph/device_name.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

std::string Canonical(std::string_view text) {
  auto name = DeviceName::Parse(text);
  return name.ok() ? name->ToString() : std::string(name.status().message());
}

TEST(DeviceName, ReadsAFullName) {
  auto name = DeviceName::Parse("/job:ps/replica:0/task:12/device:GPU:3");
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_EQ(name->job, "ps");
  EXPECT_EQ(name->replica, 0);
  EXPECT_EQ(name->task, 12);
  EXPECT_EQ(name->type, "GPU");
  EXPECT_EQ(name->id, 3);
  EXPECT_TRUE(name->full());
  EXPECT_EQ(name->TaskName(), "/job:ps/replica:0/task:12");
}

TEST(DeviceName, WritesPartsInCanonicalOrder) {
  EXPECT_EQ(Canonical("/cpu:1/task:3/job:w"), "/job:w/task:3/device:CPU:1");
  EXPECT_EQ(Canonical("/device:cpu:0"), "/device:CPU:0");
  EXPECT_EQ(Canonical("/GPU:*"), "/device:GPU:*");
  EXPECT_EQ(Canonical("/device:TPU"), "/device:TPU:*");
}

TEST(DeviceName, TakesEmptyTextAndStarsForAnything) {
  EXPECT_TRUE(DeviceName::Parse("")->empty());
  EXPECT_TRUE(DeviceName::Parse("/")->empty());
  EXPECT_TRUE(DeviceName::Parse("/job:*/replica:*/task:*/device:*:*")->empty());
}

TEST(DeviceName, LetsARepeatedPartReplaceTheEarlierOne) {
  EXPECT_EQ(Canonical("/job:ps/task:1/job:worker"), "/job:worker/task:1");
}

TEST(DeviceName, RefusesWhatIsNoDeviceName) {
  for (std::string_view bad :
       {"/job:", "/job:1x", "/job:a-b", "/task:x", "/task:-1", "/task:-0",
        "/task:99999999999", "/nonsense:3", "/cpu", "cpu:0", "/job:a/",
        "/device:", "/device:CPU:", "//", "/job:ps task:1"}) {
    EXPECT_EQ(Canonical(bad),
              "Malformed device specification '" + std::string(bad) + "'");
  }
}

TEST(DeviceName, CoversNamesThatAgreeInEveryPartItSets) {
  const auto full = *DeviceName::Parse("/job:w/replica:0/task:1/device:CPU:0");
  EXPECT_TRUE(DeviceName().Covers(full));
  EXPECT_TRUE(DeviceName::Parse("/job:w/device:CPU:*")->Covers(full));
  EXPECT_FALSE(DeviceName::Parse("/job:w/task:0")->Covers(full));
  EXPECT_FALSE(full.Covers(DeviceName()));
}

TEST(DeviceName, MergesPartByPart) {
  DeviceName name = *DeviceName::Parse("/job:a/task:1");
  name.FillFrom(*DeviceName::Parse("/job:b/device:CPU:0"));
  EXPECT_EQ(name.ToString(), "/job:a/task:1/device:CPU:0");
  name.OverrideWith(*DeviceName::Parse("/job:c/task:2"));
  EXPECT_EQ(name.ToString(), "/job:c/task:2/device:CPU:0");
}

TEST(DeviceName, ChecksJobNames) {
  EXPECT_TRUE(IsValidJobName("worker_2"));
  for (std::string_view bad : {"", "2w", "my-job", "*", "a/b"}) {
    EXPECT_FALSE(IsValidJobName(bad)) << bad;
  }
  EXPECT_EQ(TaskOf("/job:a/replica:0/task:0/device:CPU:0"),
            "/job:a/replica:0/task:0");
}

}  // namespace
}  // namespace sluice
