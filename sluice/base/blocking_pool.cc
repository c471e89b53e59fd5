#include "sluice/base/blocking_pool.h"

#include <pthread.h>

#include <deque>
#include <thread>

#include "sluice/base/mutex.h"

namespace sluice {
namespace {

constexpr auto kIdleLife = std::chrono::seconds(10);

struct BlockingPool {
  Mutex mu;
  CondVar work;
  std::deque<absl::AnyInvocable<void()>> tasks SLUICE_GUARDED_BY(mu);
  int idle SLUICE_GUARDED_BY(mu) = 0;

  void Loop() {
    pthread_setname_np(pthread_self(), "sluice-block");
    while (true) {
      absl::AnyInvocable<void()> task;
      {
        MutexLock lock(mu);
        ++idle;
        const auto until = std::chrono::steady_clock::now() + kIdleLife;
        bool in_time = true;
        while (tasks.empty() && in_time) in_time = work.WaitUntil(mu, until);
        --idle;
        if (tasks.empty()) return;
        task = std::move(tasks.front());
        tasks.pop_front();
      }
      task();
    }
  }
};

}  // namespace

void RunBlocking(absl::AnyInvocable<void()> task) {
  static BlockingPool* pool = new BlockingPool;
  MutexLock lock(pool->mu);
  pool->tasks.push_back(std::move(task));
  if (pool->idle >= static_cast<int>(pool->tasks.size())) {
    pool->work.NotifyOne();
  } else {
    std::thread([] { pool->Loop(); }).detach();
  }
}

}  // namespace sluice
