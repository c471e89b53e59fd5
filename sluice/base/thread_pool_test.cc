#include "sluice/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <vector>

#include "sluice/base/mutex.h"

namespace sluice {
namespace {

TEST(ThreadPool, RunsEverythingScheduledBeforeItEnds) {
  std::atomic<int> ran{0};
  {
    ThreadPool pool("test", 3);
    for (int i = 0; i < 100; ++i) pool.Schedule([&] { ++ran; });
  }
  EXPECT_EQ(ran, 100);
}

TEST(ThreadPool, ParallelForCoversEachIndexOnce) {
  ThreadPool pool("test", 2);
  for (int64_t n : {0, 1, 7, 1000, 12345}) {
    std::vector<std::atomic<int>> seen(n);
    pool.ParallelFor(n, 10, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++seen[i];
    });
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(seen[i], 1) << i;
  }
}

TEST(ComputeThreads, AreThoseOfOneOpOrAllOpsAtOnce) {
  unsetenv("TF_NUM_INTRAOP_THREADS");
  unsetenv("TF_NUM_INTEROP_THREADS");
  EXPECT_EQ(ComputeThreads(0, 0), 0);
  EXPECT_EQ(ComputeThreads(3, 0), 3);
  EXPECT_EQ(ComputeThreads(1, 1), 1);
  EXPECT_EQ(ComputeThreads(1, 4), 4);
  // What one op may use was not said.
  EXPECT_EQ(ComputeThreads(0, 1), 0);
  EXPECT_EQ(ComputeThreads(-1, -1), 0);
  EXPECT_EQ(ComputeThreads(1 << 30, 0), 1024);
  setenv("TF_NUM_INTRAOP_THREADS", "2", 1);
  setenv("TF_NUM_INTEROP_THREADS", "5", 1);
  EXPECT_EQ(ComputeThreads(0, 0), 5);
  EXPECT_EQ(ComputeThreads(0, 3), 3);
  EXPECT_EQ(ComputeThreads(7, 0), 7);
  unsetenv("TF_NUM_INTRAOP_THREADS");
  unsetenv("TF_NUM_INTEROP_THREADS");
}

// In a process of its own, as the pool lives as long as that.
TEST(ComputePoolDeathTest, HasTheSizeThatWasAskedForFirst) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        SetComputePoolSize(0);
        SetComputePoolSize(3);
        SetComputePoolSize(5);
        std::_Exit(ComputePool().size());
      },
      testing::ExitedWithCode(3), "");
}

TEST(ThreadPool, ParallelForMayBeNested) {
  ThreadPool pool("test", 1);
  std::atomic<int> ran{0};
  pool.ParallelFor(4, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      pool.ParallelFor(8, 1, [&](int64_t b, int64_t e) { ran += e - b; });
    }
  });
  EXPECT_EQ(ran, 32);
}

}  // namespace
}  // namespace sluice
