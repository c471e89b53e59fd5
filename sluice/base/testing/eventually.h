// For tests of what happens on other threads and tells nobody.
#pragma once

#include <chrono>
#include <thread>

namespace sluice {

// Whether `condition` comes to hold within a minute.
template <typename Condition>
bool Eventually(const Condition& condition) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace sluice
