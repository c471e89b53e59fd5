// CopyPastCaches: memcpy for a piece of something so large that whoever reads
// it later finds little of it in the caches anyway. Writing past them saves
// reading the old contents of the destination first.
#pragma once

#include <cstddef>

namespace sluice {

// From this size on of the whole it pays.
inline constexpr size_t kPastCaches = 4 << 20;

// Seen by other threads as any other write.
void CopyPastCaches(void* to, const void* from, size_t size);

}  // namespace sluice
