#include "sluice/numeric/add_n.h"

#include <algorithm>
#include <cstring>

#include "sluice/numeric/simd.h"

namespace sluice::numeric {

template <typename T>
void AddN(T* out, std::span<const T* const> inputs, int64_t n) {
  // The block takes all sums before any goes to `out`, which may be an input.
  constexpr int64_t kBlock = 256;
  Wide(n, [=] {
    T block[kBlock];
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t count = std::min(kBlock, n - i);
      const T* first = inputs[0] + i;
      if (inputs.size() == 1) {
        std::memmove(out + i, first, count * sizeof(T));
        continue;
      }
      const T* second = inputs[1] + i;
      for (int64_t j = 0; j < count; ++j) block[j] = first[j] + second[j];
      size_t k = 2;
      for (; k + 1 < inputs.size(); k += 2) {
        const T* a = inputs[k] + i;
        const T* b = inputs[k + 1] + i;
        for (int64_t j = 0; j < count; ++j) block[j] = block[j] + a[j] + b[j];
      }
      if (k < inputs.size()) {
        const T* last = inputs[k] + i;
        for (int64_t j = 0; j < count; ++j) block[j] += last[j];
      }
      std::memcpy(out + i, block, count * sizeof(T));
    }
  });
}

template <typename T>
void AddTo(T* out, const T* x, int64_t n) {
  Wide(n, [=] {
    SLUICE_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) out[i] += x[i];
  });
}

template <typename T>
void AddScaledTo(T* out, const T* x, T scale, int64_t n) {
  Wide(n, [=] {
    SLUICE_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) out[i] += scale * x[i];
  });
}

template <typename T>
void Scale(T* out, T scale, int64_t n) {
  Wide(n, [=] {
    for (int64_t i = 0; i < n; ++i) out[i] *= scale;
  });
}

#define SLUICE_ADD_N(T)                                       \
  template void AddN(T*, std::span<const T* const>, int64_t); \
  template void AddTo(T*, const T*, int64_t);                 \
  template void AddScaledTo(T*, const T*, T, int64_t);        \
  template void Scale(T*, T, int64_t);
SLUICE_ADD_N(float)
SLUICE_ADD_N(double)
SLUICE_ADD_N(int32_t)
SLUICE_ADD_N(int64_t)

}  // namespace sluice::numeric
