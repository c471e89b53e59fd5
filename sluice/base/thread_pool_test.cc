#include "sluice/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
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
