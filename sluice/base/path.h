// Paths as text, with '/' between components.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

inline bool IsAbsolutePath(std::string_view path) {
  return path.starts_with('/');
}
// `b` if it is absolute or `a` is empty, else both with one '/' between.
std::string JoinPath(std::string_view a, std::string_view b);
// What comes before the last '/': "a" of "a/b", "" of "b", "/" of "/b".
std::string_view DirName(std::string_view path);
// What comes after it.
std::string_view BaseName(std::string_view path);

}  // namespace sluice
