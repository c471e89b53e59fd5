// Choosing between two arrays element by element.
#pragma once

#include <cstdint>

namespace sluice {

// out[i] = condition[i] ? a[i] : b[i] for elements of 1, 2, 4, 8 or 16 bytes.
// `out` may be a or b.
void SelectElements(int64_t element_size, const bool* condition, const void* a,
                    const void* b, void* out, int64_t n);

}  // namespace sluice
