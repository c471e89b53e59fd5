// QR decomposition by Householder reflections.
#pragma once

#include <cstdint>

namespace sluice::numeric {

// a [rows, columns] = q [rows, rank] r [rank, columns], row by row. `rank` is
// the smaller of both, or `rows` if `full`. Signs are those of LAPACK: a
// diagonal element of r has the sign opposite to what it comes from.
template <typename T>
void HouseholderQr(const T* a, int64_t rows, int64_t columns, bool full, T* q,
                   T* r);

}  // namespace sluice::numeric
