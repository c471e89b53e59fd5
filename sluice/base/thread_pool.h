// ThreadPool: a fixed set of threads for compute. Tasks must not block on other
// tasks (docs/threads.md). Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"

namespace sluice {

class ThreadPool {
 public:
  using Task = absl::AnyInvocable<void()>;

  // Starts `threads` threads named `name`. With 0 threads everything runs on
  // the caller.
  ThreadPool(const std::string& name, int threads);
  // Runs what was scheduled, then ends the threads.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const;
  // Tasks that no thread has taken yet.
  int queued() const;
  void Schedule(Task task);

  // Calls body(begin, end) over disjoint ranges that cover [0, n) and returns
  // when all are done. The caller takes part, so it never deadlocks. `grain` is
  // the smallest range worth handing to another thread; at most that much work
  // runs inline without waking anyone.
  void ParallelFor(int64_t n, int64_t grain,
                   absl::FunctionRef<void(int64_t, int64_t)> body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The cores that this process may run on; at least 1.
int UsableCores();

// The process's pool, started at first use and never ended. The first of these
// that says so decides how many threads it has: SetComputePoolSize, the
// environment's TF_NUM_INTRAOP_THREADS; else it has one for each usable core.
ThreadPool& ComputePool();

// The first call with `threads` above 0 counts, if the pool is not in use yet.
void SetComputePoolSize(int threads);
// What a configuration asks for: `intra_op` threads for the work of one op,
// `inter_op` ops at once; 0: not said. One pool serves both, so what counts is
// the work of one op, and many ops at once if that is said to be small. 0: not
// said either.
int ComputeThreads(int intra_op, int inter_op);

}  // namespace sluice
