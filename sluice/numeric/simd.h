// Wide: runs a loop compiled for AVX2 and FMA where the processor has them. The
// rest of the tree is compiled for the plain x86-64.
#pragma once

#include <cstdint>

// Before a loop whose iterations do not depend on each other. clang finds out
// for itself, and has no such hint that may go unheeded.
#ifdef __clang__
#define SLUICE_INDEPENDENT
#else
#define SLUICE_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace sluice::numeric {

// Calling the wide copy costs more than it saves below this many elements.
inline constexpr int64_t kMinWide = 16;

#if defined(__x86_64__) && !defined(__AVX2__)

template <typename Loop>
__attribute__((target("avx2,fma"), flatten, noinline)) void RunWide(Loop loop) {
  loop();
}

// Calls loop(), whose work is about `n` elements. Everything it calls must be
// inline, or it stays narrow.
template <typename Loop>
inline void Wide(int64_t n, const Loop& loop) {
  if (n >= kMinWide && __builtin_cpu_supports("avx2") &&
      __builtin_cpu_supports("fma")) {
    RunWide(loop);
  } else {
    loop();
  }
}

#else

template <typename Loop>
inline void Wide(int64_t, const Loop& loop) {
  loop();
}

#endif

}  // namespace sluice::numeric
