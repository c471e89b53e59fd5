#include "sluice/base/blocking_pool.h"

#include <pthread.h>

#include <deque>
#include <system_error>
#include <thread>

#include "sluice/base/mutex.h"
#include "sluice/base/simulation.h"

namespace sluice {
namespace {

constexpr auto kIdleLife = std::chrono::seconds(10);

struct BlockingPool {
  // False, and `task` is untouched, if nobody will ever run it.
  bool Take(absl::AnyInvocable<void()>& task) SLUICE_REQUIRES(mu) {
    if (idle <= static_cast<int>(tasks.size())) {
      try {
        std::thread([this] { Loop(); }).detach();
        ++threads;
      } catch (const std::system_error&) {
        // One of those there are takes it when it is done with another.
        if (threads == 0) return false;
      }
    }
    tasks.push_back(std::move(task));
    work.NotifyOne();
    return true;
  }

  Mutex mu;
  CondVar work;
  std::deque<absl::AnyInvocable<void()>> tasks SLUICE_GUARDED_BY(mu);
  int idle SLUICE_GUARDED_BY(mu) = 0;
  int threads SLUICE_GUARDED_BY(mu) = 0;

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
        if (tasks.empty()) {
          --threads;
          return;
        }
        task = std::move(tasks.front());
        tasks.pop_front();
      }
      task();
    }
  }
};

BlockingPool& ThePool() {
  static BlockingPool* pool = new BlockingPool;
  return *pool;
}

}  // namespace

void RunBlocking(absl::AnyInvocable<void()> task) {
  if (Simulation* simulation = TheSimulation()) {
    simulation->RunBlocking(std::move(task));
    return;
  }
  BlockingPool& pool = ThePool();
  {
    MutexLock lock(pool.mu);
    if (pool.Take(task)) return;
  }
  // The system gives the process no thread at all. Late is better than never.
  task();
}
BlockingPoolStats GetBlockingPoolStats() {
  BlockingPool& pool = ThePool();
  MutexLock lock(pool.mu);
  return {pool.threads, static_cast<int>(pool.tasks.size())};
}

}  // namespace sluice
