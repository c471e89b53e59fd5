#include "sluice/base/memory_limit.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace sluice {
namespace {

class MemoryLimitTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(root_);
    unlimited_ = MemoryLimit(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  const std::string root_ =
      testing::TempDir() + "/memory_limit_" +
      testing::UnitTest::GetInstance()->current_test_info()->name();
  int64_t unlimited_ = 0;
};

TEST_F(MemoryLimitTest, WithoutControlGroupsIsTheMachines) {
  EXPECT_GT(unlimited_, 1 << 20);
}

TEST_F(MemoryLimitTest, IsTheSmallestOfTheGroupsAbove) {
  Write("/proc/self/cgroup", "0::/a/b\n");
  Write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  EXPECT_EQ(MemoryLimit(root_), unlimited_);
  Write("/sys/fs/cgroup/a/memory.max", "70000\n");
  EXPECT_EQ(MemoryLimit(root_), 70000);
  Write("/sys/fs/cgroup/a/b/memory.max", "60000\n");
  EXPECT_EQ(MemoryLimit(root_), 60000);
}

TEST_F(MemoryLimitTest, IsTheMountsWhereThePathIsTheHosts) {
  Write("/proc/self/cgroup", "0::/system.slice/docker-1.scope\n");
  Write("/sys/fs/cgroup/memory.max", "50000\n");
  EXPECT_EQ(MemoryLimit(root_), 50000);
}

TEST_F(MemoryLimitTest, IsReadFromGroupsOfTheFirstVersion) {
  Write("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/a\nbroken\n");
  Write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "40000\n");
  EXPECT_EQ(MemoryLimit(root_), 40000);
  // More than the machine has is no limit.
  Write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
        "9223372036854771712\n");
  EXPECT_EQ(MemoryLimit(root_), unlimited_);
}

}  // namespace
}  // namespace sluice
