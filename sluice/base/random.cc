#include "sluice/base/random.h"

#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <chrono>

#include "sluice/base/simulation.h"

namespace sluice {
namespace {

uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

uint64_t ProcessSeed() {
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed)) {
    seed = std::chrono::steady_clock::now().time_since_epoch().count();
  }
  return seed;
}

}  // namespace

uint64_t RandomId() {
  if (Simulation* simulation = TheSimulation()) return simulation->RandomId();
  // A child that forked after the first call must not repeat its parent's
  // numbers, so the seed belongs to the process.
  static std::atomic<uint64_t> seed{ProcessSeed()};
  static std::atomic<pid_t> owner{getpid()};
  const pid_t self = getpid();
  if (owner.exchange(self) != self) seed.store(ProcessSeed());
  const uint64_t id = Mix(seed.fetch_add(0x9e3779b97f4a7c15ull));
  return id == 0 ? 1 : id;
}

}  // namespace sluice
