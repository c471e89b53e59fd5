// Simulation: takes the machine's place in a process that runs a whole cluster
// in one thread (docs/simulation.md). It says what time it is, when timers
// fire and tasks run, and which random ids come out.
#pragma once

#include <chrono>
#include <cstdint>

#include "absl/functional/any_invocable.h"
#include "sluice/base/clock.h"

namespace sluice {

class Simulation : public Clock {
 public:
  // What CallLater, RunBlocking and RandomId of base/ ask instead.
  virtual void CallLater(std::chrono::nanoseconds delay,
                         absl::AnyInvocable<void()> callback) = 0;
  virtual void RunBlocking(absl::AnyInvocable<void()> task) = 0;
  virtual uint64_t RandomId() = 0;
};

// Null outside of simulations.
Simulation* TheSimulation();
// Null ends it. Only while nothing of the engine runs.
void SetSimulation(Simulation* simulation);

// The engine's time: the simulation's, or the machine's.
Clock& TheClock();

}  // namespace sluice
