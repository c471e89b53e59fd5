#include "sluice/base/simulation.h"

#include <atomic>

namespace sluice {
namespace {

std::atomic<Simulation*> the_simulation{nullptr};

}  // namespace

Simulation* TheSimulation() {
  return the_simulation.load(std::memory_order_acquire);
}

void SetSimulation(Simulation* simulation) {
  the_simulation.store(simulation, std::memory_order_release);
}

Clock& TheClock() {
  Simulation* simulation = TheSimulation();
  return simulation != nullptr ? *simulation : RealClock();
}

}  // namespace sluice
