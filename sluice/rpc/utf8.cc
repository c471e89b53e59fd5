#include "sluice/rpc/utf8.h"

#include "absl/strings/str_format.h"

namespace sluice {
namespace {

bool GoesOn(char byte) { return (byte & 0xc0) == 0x80; }

// The length of the character at the start of `text`; 0 if it is none.
size_t CharacterLength(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (!GoesOn(text[i])) return 0;
  }
  // Longer than needed, half of a pair of UTF-16, or behind the last one.
  const auto second = static_cast<unsigned char>(text[1]);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90)) {
    return 0;
  }
  return length;
}

}  // namespace

std::string Utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    size_t length = CharacterLength(text);
    if (length == 0) {
      out += absl::StrFormat("\\x%02x", static_cast<unsigned char>(text[0]));
      length = 1;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out;
}

size_t WholeCharacters(std::string_view text, size_t most) {
  while (most > 0 && GoesOn(text[most])) --most;
  return most;
}

}  // namespace sluice
