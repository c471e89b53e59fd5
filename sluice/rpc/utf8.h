// Texts for messages, which carry UTF-8 only: errors may quote any bytes.
// Private to rpc/.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

// The text with every byte that is not UTF-8 as "\\xe9".
std::string Utf8(std::string_view text);

// The length of the characters that fit into `most` bytes, which are fewer than
// the text has. It is UTF-8.
size_t WholeCharacters(std::string_view text, size_t most);

}  // namespace sluice
