#include "sluice/numeric/softmax.h"

#include <limits>

#include "sluice/numeric/simd.h"
#include "sluice/numeric/vector_math.h"

namespace sluice::numeric {
namespace {

constexpr int kLanes = 8;

template <typename T>
inline T RowMax(const T* x, int64_t n) {
  T lanes[kLanes];
  for (T& lane : lanes) lane = -std::numeric_limits<T>::infinity();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) {
      lanes[j] = lanes[j] < x[i + j] ? x[i + j] : lanes[j];
    }
  }
  T result = -std::numeric_limits<T>::infinity();
  for (; i < n; ++i) result = result < x[i] ? x[i] : result;
  for (T lane : lanes) result = result < lane ? lane : result;
  return result;
}

template <typename T>
inline T RowSum(const T* x, int64_t n) {
  T lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) lanes[j] += x[i + j];
  }
  T result = 0;
  for (; i < n; ++i) result += x[i];
  for (T lane : lanes) result += lane;
  return result;
}

// The sum of exp(x[i] - shift), by pieces that stay in the first cache.
template <typename T>
inline T SumOfExp(const T* x, T shift, int64_t n) {
  constexpr int64_t kPiece = 256;
  T piece[kPiece];
  T total = 0;
  for (int64_t i = 0; i < n; i += kPiece) {
    const int64_t count = n - i < kPiece ? n - i : kPiece;
    for (int64_t j = 0; j < count; ++j) piece[j] = Exp(x[i + j] - shift);
    total += RowSum(piece, count);
  }
  return total;
}

// Writes exp(x - max) to out and returns the sum.
template <typename T>
inline T ExpRow(T* out, const T* x, T max, int64_t n) {
  SLUICE_INDEPENDENT
  for (int64_t j = 0; j < n; ++j) out[j] = Exp(x[j] - max);
  return RowSum(out, n);
}

}  // namespace

template <typename T>
void Softmax(T* out, const T* logits, int64_t rows, int64_t classes,
             bool logarithm) {
  Wide(rows * classes, [=] {
    for (int64_t i = 0; i < rows; ++i) {
      const T* x = logits + i * classes;
      T* y = out + i * classes;
      const T max = RowMax(x, classes);
      if (logarithm) {
        const T shift = Log(SumOfExp(x, max, classes));
        SLUICE_INDEPENDENT
        for (int64_t j = 0; j < classes; ++j) y[j] = (x[j] - max) - shift;
      } else {
        const T scale = T(1) / ExpRow(y, x, max, classes);
        for (int64_t j = 0; j < classes; ++j) y[j] *= scale;
      }
    }
  });
}

template <typename T>
void CrossEntropy(T* loss, T* backprop, RowsView<T> logits, RowsView<T> labels,
                  int64_t rows, int64_t classes) {
  Wide(rows * classes, [=] {
    for (int64_t i = 0; i < rows; ++i) {
      const T* x = logits.data + i * logits.row_step;
      const T* t = labels.data + i * labels.row_step;
      T* y = backprop + i * classes;
      T max = logits.column_step == 0 ? x[0] : RowMax(x, classes);
      // First x - max, of which loss and softmax are made.
      for (int64_t j = 0; j < classes; ++j) {
        y[j] = x[j * logits.column_step] - max;
      }
      const T sum = SumOfExp(y, T(0), classes);
      const T log_sum = Log(sum);
      const T scale = T(1) / sum;
      T total = 0;
      for (int64_t j = 0; j < classes; ++j) {
        total += t[j * labels.column_step] * (log_sum - y[j]);
      }
      loss[i] = total;
      SLUICE_INDEPENDENT
      for (int64_t j = 0; j < classes; ++j) {
        y[j] = Exp(y[j]) * scale - t[j * labels.column_step];
      }
    }
  });
}

template <typename T, typename Label>
void SparseCrossEntropy(T* loss, T* backprop, const T* logits,
                        const Label* labels, int64_t rows, int64_t classes) {
  Wide(rows * classes, [=] {
    for (int64_t i = 0; i < rows; ++i) {
      const T* x = logits + i * classes;
      T* y = backprop + i * classes;
      const int64_t label = static_cast<int64_t>(labels[i]);
      const T max = RowMax(x, classes);
      // Read before y, which may be x, is written.
      const T chosen = x[label] - max;
      const T sum = ExpRow(y, x, max, classes);
      loss[i] = Log(sum) - chosen;
      const T scale = T(1) / sum;
      for (int64_t j = 0; j < classes; ++j) y[j] *= scale;
      y[label] -= T(1);
    }
  });
}

#define SLUICE_SOFTMAX(T)                                                     \
  template void Softmax(T*, const T*, int64_t, int64_t, bool);                \
  template void CrossEntropy(T*, T*, RowsView<T>, RowsView<T>, int64_t,       \
                             int64_t);                                        \
  template void SparseCrossEntropy(T*, T*, const T*, const int32_t*, int64_t, \
                                   int64_t);                                  \
  template void SparseCrossEntropy(T*, T*, const T*, const int64_t*, int64_t, \
                                   int64_t);
SLUICE_SOFTMAX(float)
SLUICE_SOFTMAX(double)

}  // namespace sluice::numeric
