// Hashes whose values are part of TensorFlow's formats: the bucket that a
// string falls into must be the same in every program.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice {

// FarmHash's Fingerprint64.
uint64_t Fingerprint64(std::string_view bytes);
// SipHash-2-4 with this key, which makes it hard to find strings that collide.
uint64_t SipHash(uint64_t key0, uint64_t key1, std::string_view bytes);

}  // namespace sluice
