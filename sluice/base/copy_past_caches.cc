#include "sluice/base/copy_past_caches.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace sluice {

#ifdef __SSE2__

void CopyPastCaches(void* to, const void* from, size_t size) {
  constexpr size_t kLine = 64;
  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  const size_t lead =
      std::min(size, -reinterpret_cast<uintptr_t>(target) % kLine);
  std::memcpy(target, source, lead);
  size_t at = lead;
  for (; at + kLine <= size; at += kLine) {
    const auto* line = reinterpret_cast<const __m128i*>(source + at);
    auto* out = reinterpret_cast<__m128i*>(target + at);
    const __m128i a = _mm_loadu_si128(line);
    const __m128i b = _mm_loadu_si128(line + 1);
    const __m128i c = _mm_loadu_si128(line + 2);
    const __m128i d = _mm_loadu_si128(line + 3);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
  }
  // Such writes are ordered by nothing else.
  _mm_sfence();
  std::memcpy(target + at, source + at, size - at);
}

#else

void CopyPastCaches(void* to, const void* from, size_t size) {
  std::memcpy(to, from, size);
}

#endif

}  // namespace sluice
