#include "sluice/base/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <thread>
#include <vector>

#include "sluice/base/mutex.h"

namespace sluice {

struct ThreadPool::State {
  Mutex mu;
  CondVar work;
  std::deque<Task> tasks SLUICE_GUARDED_BY(mu);
  bool stopping SLUICE_GUARDED_BY(mu) = false;
  std::vector<std::thread> threads;

  void Loop() {
    while (true) {
      Task task;
      {
        MutexLock lock(mu);
        while (tasks.empty() && !stopping) work.Wait(mu);
        if (tasks.empty()) return;
        task = std::move(tasks.front());
        tasks.pop_front();
      }
      task();
    }
  }
};

ThreadPool::ThreadPool(const std::string& name, int threads)
    : state_(std::make_unique<State>()) {
  for (int i = 0; i < threads; ++i) {
    state_->threads.emplace_back([state = state_.get()] { state->Loop(); });
    pthread_setname_np(state_->threads.back().native_handle(),
                       name.substr(0, 15).c_str());
  }
}

ThreadPool::~ThreadPool() {
  {
    MutexLock lock(state_->mu);
    state_->stopping = true;
  }
  state_->work.NotifyAll();
  for (std::thread& thread : state_->threads) thread.join();
}

int ThreadPool::size() const {
  return static_cast<int>(state_->threads.size());
}

int ThreadPool::queued() const {
  MutexLock lock(state_->mu);
  return static_cast<int>(state_->tasks.size());
}

void ThreadPool::Schedule(Task task) {
  if (state_->threads.empty()) {
    task();
    return;
  }
  {
    MutexLock lock(state_->mu);
    state_->tasks.push_back(std::move(task));
  }
  state_->work.NotifyOne();
}

namespace {

// Shared by the caller and its helpers; helpers that start late find no range
// left and must still be able to look, so the state is counted.
struct ParallelWork {
  ParallelWork(int64_t n, int64_t chunk,
               absl::FunctionRef<void(int64_t, int64_t)> body)
      : n(n), chunk(chunk), body(body), left(n) {}

  const int64_t n;
  const int64_t chunk;
  const absl::FunctionRef<void(int64_t, int64_t)> body;
  std::atomic<int64_t> next{0};
  std::atomic<int64_t> left;
  Mutex mu;
  CondVar done;

  void Drain() {
    while (true) {
      const int64_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
      if (begin >= n) return;
      const int64_t end = std::min(n, begin + chunk);
      body(begin, end);
      if (left.fetch_sub(end - begin, std::memory_order_acq_rel) ==
          end - begin) {
        MutexLock lock(mu);
        done.NotifyAll();
      }
    }
  }
};

}  // namespace

void ThreadPool::ParallelFor(int64_t n, int64_t grain,
                             absl::FunctionRef<void(int64_t, int64_t)> body) {
  if (n <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  // The caller takes part, as one of the cores.
  const int64_t parts = std::min<int64_t>(size(), (n + grain - 1) / grain);
  if (parts <= 1) {
    body(0, n);
    return;
  }
  auto work = std::make_shared<ParallelWork>(
      n, std::max(grain, (n + parts * 2 - 1) / (parts * 2)), body);
  for (int64_t i = 1; i < parts; ++i) {
    Schedule([work] { work->Drain(); });
  }
  work->Drain();
  MutexLock lock(work->mu);
  while (work->left.load(std::memory_order_acquire) > 0) {
    work->done.Wait(work->mu);
  }
}

int UsableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  // More cores than a cpu_set_t has bits.
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

namespace {

// More than any machine has cores.
constexpr int kMostThreads = 1024;

std::atomic<int> compute_threads{0};  // 0: nobody said.

int ThreadsFromEnvironment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::atoi(text);
}

}  // namespace

int ComputeThreads(int intra_op, int inter_op) {
  if (intra_op <= 0)
    intra_op = ThreadsFromEnvironment("TF_NUM_INTRAOP_THREADS");
  if (inter_op <= 0)
    inter_op = ThreadsFromEnvironment("TF_NUM_INTEROP_THREADS");
  if (intra_op <= 0) return 0;
  return std::min(std::max(intra_op, inter_op), kMostThreads);
}

void SetComputePoolSize(int threads) {
  if (threads <= 0) return;
  int nobody = 0;
  compute_threads.compare_exchange_strong(nobody, threads);
}

ThreadPool& ComputePool() {
  static ThreadPool* pool = [] {
    SetComputePoolSize(ComputeThreads(0, 0));
    SetComputePoolSize(UsableCores());
    return new ThreadPool("sluice-compute", compute_threads.load());
  }();
  return *pool;
}

}  // namespace sluice
