// Fiber: a program of the simulated client, as a coroutine that waits for calls
// and for time.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace sluice::sim {

// Starts at once; its frame lives as long as the object.
class Fiber {
 public:
  struct promise_type {
    Fiber get_return_object() {
      return Fiber(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };

  Fiber(Fiber&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)) {}
  Fiber& operator=(Fiber&&) = delete;
  ~Fiber() {
    if (handle_) handle_.destroy();
  }
  bool done() const { return handle_.done(); }

 private:
  explicit Fiber(std::coroutine_handle<promise_type> handle)
      : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

}  // namespace sluice::sim
