#include "sluice/base/path.h"

namespace sluice {

std::string JoinPath(std::string_view a, std::string_view b) {
  if (a.empty() || IsAbsolutePath(b)) return std::string(b);
  std::string path(a);
  if (!path.ends_with('/')) path += '/';
  path += b;
  return path;
}

std::string_view DirName(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {};
  return path.substr(0, slash == 0 ? 1 : slash);
}

std::string_view BaseName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0.
}

}  // namespace sluice
