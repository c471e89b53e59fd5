#include "sluice/ops/io/blocking_kernel.h"

#include <deque>
#include <new>
#include <utility>

#include "sluice/base/blocking_pool.h"
#include "sluice/base/mutex.h"
#include "sluice/base/status.h"
#include "sluice/base/thread_pool.h"

namespace sluice {
namespace {

// Restoring a model may start an op for each of its variables.
constexpr int kMostAtOnce = 32;

class FileThreads {
 public:
  using Task = absl::AnyInvocable<void()>;

  void Add(Task task) {
    {
      MutexLock lock(mu_);
      if (working_ == kMostAtOnce) {
        waiting_.push_back(std::move(task));
        return;
      }
      ++working_;
    }
    RunBlocking([this, task = std::move(task)]() mutable {
      while (task) {
        task();
        task = Next();
      }
    });
  }

 private:
  // Empty: there is nothing more to do, and the caller works no longer.
  Task Next() {
    MutexLock lock(mu_);
    if (waiting_.empty()) {
      --working_;
      return nullptr;
    }
    Task next = std::move(waiting_.front());
    waiting_.pop_front();
    return next;
  }

  Mutex mu_;
  int working_ SLUICE_GUARDED_BY(mu_) = 0;
  std::deque<Task> waiting_ SLUICE_GUARDED_BY(mu_);
};

FileThreads& TheFileThreads() {
  static FileThreads* threads = new FileThreads;
  return *threads;
}

absl::Status Work(KernelContext& ctx, FileWork work) {
  if (ctx.step().cancellation->cancelled()) {
    return ctx.step().cancellation->status();
  }
  try {
    return work(ctx);
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("No memory left for ", ctx.node().type(),
                             " of node ", ctx.node().name());
  }
}

}  // namespace

void StartFileWork(KernelContext& ctx, FileWork work, Done done) {
  WaitInfo info;
  info.what = StrCat("files, by ", ctx.node().type());
  info.where = StrCat(ctx.node().name(), " on ", ctx.device().name());
  info.step_id = ctx.step().id;
  if (ctx.step().clock != nullptr) info.since = ctx.step().clock->Now();
  const WaitTable::Token wait = WaitTable::Global().Add(std::move(info));
  TheFileThreads().Add([&ctx, work, wait, done = std::move(done)]() mutable {
    absl::Status status = Work(ctx, work);
    WaitTable::Global().Remove(wait);
    // What follows computes; this thread is for other files.
    ComputePool().Schedule(
        [status = std::move(status), done = std::move(done)]() mutable {
          done(std::move(status));
        });
  });
}

}  // namespace sluice
