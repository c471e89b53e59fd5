// Hash64: MurmurHash64A with TensorFlow's seed. Frame ids of loops that cross
// tasks are made of it, so it is part of the wire (docs/protocol).
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice {

uint64_t Hash64(std::string_view bytes);

}  // namespace sluice
