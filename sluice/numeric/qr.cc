#include "sluice/numeric/qr.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace sluice::numeric {
namespace {

// v -> (1 - tau h h^T) v for each column v of m[from.., 0..columns), where h is
// given from row `from` on.
void Reflect(double* m, int64_t columns, int64_t begin, int64_t from,
             const std::vector<double>& h, double tau,
             std::vector<double>& dots) {
  const auto count = static_cast<int64_t>(h.size());
  std::fill(dots.begin(), dots.end(), 0.0);
  for (int64_t i = 0; i < count; ++i) {
    const double* row = m + (from + i) * columns;
    for (int64_t j = begin; j < columns; ++j) dots[j] += h[i] * row[j];
  }
  for (int64_t i = 0; i < count; ++i) {
    double* row = m + (from + i) * columns;
    const double scale = tau * h[i];
    for (int64_t j = begin; j < columns; ++j) row[j] -= scale * dots[j];
  }
}

struct Reflection {
  std::vector<double> h;
  double tau = 0;
};

// The reflection that leaves of a column only its first element.
Reflection ReflectionFor(const double* m, int64_t rows, int64_t columns,
                         int64_t k) {
  Reflection result;
  result.h.resize(rows - k);
  double tail = 0;
  for (int64_t i = k; i < rows; ++i) {
    result.h[i - k] = m[i * columns + k];
    if (i > k) tail += result.h[i - k] * result.h[i - k];
  }
  if (tail == 0) return result;
  const double first = result.h[0];
  double length = std::sqrt(first * first + tail);
  if (first >= 0) length = -length;
  for (double& x : result.h) x /= first - length;
  result.h[0] = 1;
  result.tau = (length - first) / length;
  return result;
}

}  // namespace

template <typename T>
void HouseholderQr(const T* a, int64_t rows, int64_t columns, bool full, T* q,
                   T* r) {
  const int64_t steps = std::min(rows, columns);
  const int64_t rank = full ? rows : steps;
  std::vector<double> m(a, a + rows * columns);
  std::vector<double> dots(std::max(columns, rank));
  std::vector<Reflection> reflections;
  for (int64_t k = 0; k < steps; ++k) {
    reflections.push_back(ReflectionFor(m.data(), rows, columns, k));
    if (reflections[k].tau == 0) continue;
    Reflect(m.data(), columns, k, k, reflections[k].h, reflections[k].tau,
            dots);
  }
  for (int64_t i = 0; i < rank; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      r[i * columns + j] = j < i ? T(0) : static_cast<T>(m[i * columns + j]);
    }
  }
  // q is the product of the reflections, applied to the unit matrix.
  std::vector<double> unit(rows * rank, 0.0);
  for (int64_t i = 0; i < rank; ++i) unit[i * rank + i] = 1;
  for (int64_t k = steps - 1; k >= 0; --k) {
    if (reflections[k].tau == 0) continue;
    Reflect(unit.data(), rank, 0, k, reflections[k].h, reflections[k].tau,
            dots);
  }
  for (int64_t i = 0; i < rows * rank; ++i) q[i] = static_cast<T>(unit[i]);
}

template void HouseholderQr(const float*, int64_t, int64_t, bool, float*,
                            float*);
template void HouseholderQr(const double*, int64_t, int64_t, bool, double*,
                            double*);

}  // namespace sluice::numeric
