// What sessions that recover have in common: when they do, what they say, and
// how long they wait.
#pragma once

#include <chrono>
#include <string>

#include "absl/status/status.h"
#include "sluice/session/session.h"

namespace sluice {

// A task went away or was started anew.
bool IsPreemption(const absl::Status& status);
// A variable had no value: its task may be back, empty, before anyone notices,
// or nobody ever gave it one.
bool LacksValue(const absl::Status& status);
// A preemption, or a value that `ready_op`, run in `session`, misses too. What
// it does not miss a new session would not bring, but initialise the model
// under everybody else. False for a missing value if `session` is null.
bool IsLost(const absl::Status& status, Session* session, Output ready_op);

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
