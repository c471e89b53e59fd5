#include "sluice/base/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "sluice/base/status.h"

namespace sluice {
namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

// The number in a file; kNone if it says "max", or is not there.
int64_t LimitIn(const std::string& path) {
  std::ifstream file(path);
  int64_t limit = 0;
  return file >> limit && limit > 0 ? limit : kNone;
}

// Of the group `path` and those it is in, whose files are called `name`. In a
// container the paths are often the host's and only the mount itself is there.
int64_t LimitOfGroup(const std::string& mount, std::string path,
                     const std::string& name) {
  int64_t limit = LimitIn(mount + "/" + name);
  while (path.size() > 1) {
    limit = std::min(limit, LimitIn(StrCat(mount, path, "/", name)));
    path.resize(path.rfind('/'));
  }
  return limit;
}

}  // namespace

int64_t MemoryLimit(const std::string& root) {
  int64_t limit = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  std::ifstream groups(root + "/proc/self/cgroup");
  const std::string mount = root + "/sys/fs/cgroup";
  // Lines are "id:controllers:/path"; no controllers in version 2.
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos || line[second + 1] != '/') continue;
    const std::string controllers =
        "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (controllers == ",,") {
      limit = std::min(limit, LimitOfGroup(mount, path, "memory.max"));
    } else if (controllers.find(",memory,") != std::string::npos) {
      limit = std::min(limit, LimitOfGroup(mount + "/memory", path,
                                           "memory.limit_in_bytes"));
    }
  }
  return limit;
}

}  // namespace sluice
