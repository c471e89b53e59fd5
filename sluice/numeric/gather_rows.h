// Copying rows of a table by their indices.
#pragma once

#include <cstdint>

namespace sluice {

// The first i with indices[i] not in [0, limit), or -1.
int64_t FindIndexOutside(const int32_t* indices, int64_t n, int64_t limit);
int64_t FindIndexOutside(const int64_t* indices, int64_t n, int64_t limit);

// out[i] = row indices[i] of `table`, whose rows have `row_bytes` bytes. The
// indices must have been checked.
void GatherRowBytes(const char* table, int64_t row_bytes,
                    const int32_t* indices, int64_t n, char* out);
void GatherRowBytes(const char* table, int64_t row_bytes,
                    const int64_t* indices, int64_t n, char* out);

}  // namespace sluice
