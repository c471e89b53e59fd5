// Products of matrices.
//
// Our own, because the serial OpenBLAS that Debian ships is not safe to call
// from two threads (its buffers are handed out without a lock, and products
// come out wrong), and the threaded one starts threads when it is loaded.
#pragma once

#include <cstdint>

namespace sluice::numeric {

// A row-major matrix; with `transposed` its columns and rows are exchanged when
// it is read.
template <typename T>
struct MatrixView {
  const T* data;
  bool transposed = false;
};

// c = a b, where a is [m, k], b is [k, n] and c is [m, n] and overwritten. c
// must not overlap the others. Runs on the calling thread.
template <typename T>
void MatMul(T* c, MatrixView<T> a, MatrixView<T> b, int64_t m, int64_t n,
            int64_t k);

// As MatMul; large products are split over the compute pool.
template <typename T>
void ParallelMatMul(T* c, MatrixView<T> a, MatrixView<T> b, int64_t m,
                    int64_t n, int64_t k);

}  // namespace sluice::numeric
