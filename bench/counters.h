// What a step costs besides time: allocations, page faults, kernels, RPCs, CPU
// of all threads, and how often one of them went to sleep.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>

namespace sluice {

// Counts from its construction on; Report puts the counts per iteration beside
// the times of a benchmark.
class StepCounters {
 public:
  StepCounters();
  void Report(benchmark::State& state) const;

 private:
  struct Counts {
    int64_t mallocs, faults, kernels, rpcs, cpu_micros, wakes;
  };
  static Counts Now();
  const Counts start_;
};

}  // namespace sluice
