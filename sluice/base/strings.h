// Text helpers: StrCat over std::string_view, and the one bridge between
// std::string_view (ours) and absl::string_view (a different type in the
// abseil that Debian 12 ships).
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace sluice {

inline absl::string_view ToAbsl(std::string_view s) {
  return absl::string_view(s.data(), s.size());
}
inline std::string_view ToStd(absl::string_view s) {
  return std::string_view(s.data(), s.size());
}

namespace strings_internal {
template <typename T>
decltype(auto) Piece(const T& value) {
  if constexpr (std::is_same_v<T, std::string_view>) {
    return ToAbsl(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else {
    return (value);
  }
}
}  // namespace strings_internal

// absl::StrCat that takes std::string_view too and prints bools as words.
template <typename... Args>
std::string StrCat(const Args&... args) {
  return absl::StrCat(strings_internal::Piece(args)...);
}
template <typename... Args>
void StrAppend(std::string* dest, const Args&... args) {
  absl::StrAppend(dest, strings_internal::Piece(args)...);
}

}  // namespace sluice
