// Mutex, MutexLock and CondVar: std::mutex and std::condition_variable with
// clang's thread-safety annotations. abseil's own are not used because thread
// sanitizer cannot see into them (DESIGN §9).
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define SLUICE_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define SLUICE_THREAD_ATTRIBUTE(x)
#endif
#define SLUICE_GUARDED_BY(mu) SLUICE_THREAD_ATTRIBUTE(guarded_by(mu))
#define SLUICE_REQUIRES(mu) SLUICE_THREAD_ATTRIBUTE(requires_capability(mu))
#define SLUICE_EXCLUDES(mu) SLUICE_THREAD_ATTRIBUTE(locks_excluded(mu))
#define SLUICE_NO_THREAD_SAFETY_ANALYSIS \
  SLUICE_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace sluice {

class SLUICE_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() SLUICE_THREAD_ATTRIBUTE(acquire_capability()) { mu_.lock(); }
  void Unlock() SLUICE_THREAD_ATTRIBUTE(release_capability()) { mu_.unlock(); }
  bool TryLock() SLUICE_THREAD_ATTRIBUTE(try_acquire_capability(true)) {
    return mu_.try_lock();
  }

 private:
  friend class CondVar;
  std::mutex mu_;
};

class SLUICE_THREAD_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mu) SLUICE_THREAD_ATTRIBUTE(acquire_capability(mu))
      : mu_(mu) {
    mu_.Lock();
  }
  ~MutexLock() SLUICE_THREAD_ATTRIBUTE(release_capability()) { mu_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mu_;
};

class CondVar {
 public:
  // Both wait with `mu` held and return with it held; spurious wake-ups happen.
  void Wait(Mutex& mu) SLUICE_REQUIRES(mu) {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }
  // False when `deadline` passed.
  bool WaitUntil(Mutex& mu, std::chrono::steady_clock::time_point deadline)
      SLUICE_REQUIRES(mu) {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    const bool in_time =
        cv_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    lock.release();
    return in_time;
  }
  bool WaitFor(Mutex& mu, std::chrono::nanoseconds timeout)
      SLUICE_REQUIRES(mu) {
    return WaitUntil(mu, std::chrono::steady_clock::now() + timeout);
  }
  void NotifyOne() { cv_.notify_one(); }
  void NotifyAll() { cv_.notify_all(); }

 private:
  std::condition_variable cv_;
};

// A flag that is raised once and can be waited for. Thread-safe.
class Notification {
 public:
  void Notify() {
    MutexLock lock(mu_);
    notified_ = true;
    cv_.NotifyAll();
  }
  bool HasBeenNotified() const {
    MutexLock lock(mu_);
    return notified_;
  }
  void Wait() const {
    MutexLock lock(mu_);
    while (!notified_) cv_.Wait(mu_);
  }
  // False when `timeout` passed first.
  bool WaitFor(std::chrono::nanoseconds timeout) const {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    MutexLock lock(mu_);
    while (!notified_) {
      if (!cv_.WaitUntil(mu_, deadline)) return notified_;
    }
    return true;
  }

 private:
  mutable Mutex mu_;
  mutable CondVar cv_;
  bool notified_ SLUICE_GUARDED_BY(mu_) = false;
};

}  // namespace sluice
