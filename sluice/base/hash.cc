#include "sluice/base/hash.h"

#include <cstring>

namespace sluice {

uint64_t Hash64(std::string_view bytes) {
  constexpr uint64_t kMultiplier = 0xc6a4a7935bd1e995ull;
  constexpr int kShift = 47;
  uint64_t h = 0xDECAFCAFFEull ^ (bytes.size() * kMultiplier);
  while (bytes.size() >= 8) {
    uint64_t k;
    std::memcpy(&k, bytes.data(), 8);
    k *= kMultiplier;
    k ^= k >> kShift;
    k *= kMultiplier;
    h ^= k;
    h *= kMultiplier;
    bytes.remove_prefix(8);
  }
  if (!bytes.empty()) {
    uint64_t tail = 0;
    std::memcpy(&tail, bytes.data(), bytes.size());
    h ^= tail;
    h *= kMultiplier;
  }
  h ^= h >> kShift;
  h *= kMultiplier;
  h ^= h >> kShift;
  return h;
}

}  // namespace sluice
