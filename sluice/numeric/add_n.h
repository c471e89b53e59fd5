// Sums of several arrays.
#pragma once

#include <cstdint>
#include <span>

namespace sluice::numeric {

// out[i] = inputs[0][i] + inputs[1][i] + …, from the left. `out` may be one of
// the inputs, which may be the same array several times.
template <typename T>
void AddN(T* out, std::span<const T* const> inputs, int64_t n);

// out[i] += x[i].
template <typename T>
void AddTo(T* out, const T* x, int64_t n);
// out[i] += scale * x[i].
template <typename T>
void AddScaledTo(T* out, const T* x, T scale, int64_t n);
// out[i] *= scale.
template <typename T>
void Scale(T* out, T scale, int64_t n);

}  // namespace sluice::numeric
