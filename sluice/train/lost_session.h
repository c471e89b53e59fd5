// What sessions that recover have in common: when they do, what they say, and
// how long they wait.
#pragma once

#include <chrono>
#include <string>

#include "absl/status/status.h"

namespace sluice {

// A task went away or was started anew.
bool IsPreemption(const absl::Status& status);
// That, or for a model that has run, a variable without value: a parameter
// server may be back, empty, before anyone notices.
bool IsLost(const absl::Status& status, bool has_run);

// What a session was lost in.
enum class LostIn { kCreation, kRun, kShouldStop };
// What is logged of it.
std::string LostSessionText(LostIn what, const absl::Status& error);

// Waits longer and longer, up to 2 s, and not as long as other workers that
// lost the same task. Thread-compatible.
class Backoff {
 public:
  void Wait();

 private:
  std::chrono::duration<double> next_{0.05};
};

}  // namespace sluice
