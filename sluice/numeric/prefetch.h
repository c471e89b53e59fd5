// Asking for rows of a table ahead of their use: tables are larger than caches,
// and a miss takes as long as the work on some rows.
#pragma once

#include <cstdint>

namespace sluice {

// So many rows before a row's turn.
inline constexpr int64_t kRowsAhead = 16;

template <bool kToWrite>
inline void PrefetchRow(const void* data, int64_t bytes) {
  const char* at = static_cast<const char*>(data);
  // More than this and the hardware has seen the direction itself.
  constexpr int64_t kMost = 512;
  for (int64_t i = 0; i < bytes && i < kMost; i += 64) {
    __builtin_prefetch(at + i, kToWrite);
  }
  // A function that only prefetches has no effect in gcc's eyes: without this
  // it drops the calls.
  asm volatile("");
}

}  // namespace sluice
