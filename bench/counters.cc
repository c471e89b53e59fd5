#include "bench/counters.h"

#include <sys/resource.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

#include "sluice/executor/executor.h"
#include "sluice/rpc/client_call.h"

// The program's own malloc stands before the C library's, for libraries too.
namespace {
std::atomic<int64_t> mallocs{0};
}  // namespace

extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier): the C library's names.
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
// NOLINTEND(bugprone-reserved-identifier)

void* malloc(size_t size) {
  mallocs.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  mallocs.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  mallocs.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(old, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  mallocs.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  mallocs.fetch_add(1, std::memory_order_relaxed);
  *out = __libc_memalign(alignment, size);
  return *out == nullptr ? ENOMEM : 0;
}
}  // extern "C"

namespace sluice {

StepCounters::Counts StepCounters::Now() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto micros = [](const timeval& time) {
    return time.tv_sec * int64_t{1000000} + time.tv_usec;
  };
  return {mallocs.load(),
          usage.ru_minflt,
          KernelsRun(),
          RpcsStarted(),
          micros(usage.ru_utime) + micros(usage.ru_stime),
          usage.ru_nvcsw};
}

StepCounters::StepCounters() : start_(Now()) {}

void StepCounters::Report(benchmark::State& state) const {
  const Counts now = Now();
  const auto per_step = [&](int64_t count) {
    return benchmark::Counter(static_cast<double>(count),
                              benchmark::Counter::kAvgIterations);
  };
  state.counters["mallocs"] = per_step(now.mallocs - start_.mallocs);
  state.counters["faults"] = per_step(now.faults - start_.faults);
  state.counters["kernels"] = per_step(now.kernels - start_.kernels);
  state.counters["rpcs"] = per_step(now.rpcs - start_.rpcs);
  state.counters["cpu_us"] = per_step(now.cpu_micros - start_.cpu_micros);
  state.counters["wakes"] = per_step(now.wakes - start_.wakes);
}

}  // namespace sluice
