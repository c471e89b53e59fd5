// Softmax and cross entropy, by rows of `classes` elements.
#pragma once

#include <cstdint>

namespace sluice::numeric {

// Each row of out is the softmax of one of logits, or its logarithm. `out` may
// be logits.
template <typename T>
void Softmax(T* out, const T* logits, int64_t rows, int64_t classes,
             bool logarithm);

// Where element (i, j) of an operand that may be broadcast stands: at
// i * row_step + j * column_step.
template <typename T>
struct RowsView {
  const T* data;
  int64_t row_step;
  int64_t column_step;
};

// loss[i] = -sum_j labels(i, j) log softmax(logits)(i, j), and its derivative
// softmax - labels.
template <typename T>
void CrossEntropy(T* loss, T* backprop, RowsView<T> logits, RowsView<T> labels,
                  int64_t rows, int64_t classes);

// The same for labels that are class numbers, all of them within [0, classes).
template <typename T, typename Label>
void SparseCrossEntropy(T* loss, T* backprop, const T* logits,
                        const Label* labels, int64_t rows, int64_t classes);

}  // namespace sluice::numeric
