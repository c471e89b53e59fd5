// Numbers of the table format that its reader and its writer share.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice {

inline constexpr uint64_t kTableMagic = 0xdb4775248b80fb57ull;
// Two handles, padded, and the magic number.
inline constexpr size_t kFooterSize = 48;
// After each block: its type and a checksum of both.
inline constexpr size_t kBlockTrailer = 5;
inline constexpr char kBlockPlain = 0;
inline constexpr char kBlockSnappy = 1;

}  // namespace sluice
