// TempDir: a fresh directory that goes away with the object, for tests.
#pragma once

#include <stdlib.h>

#include <string>

#include "sluice/base/file.h"
#include "sluice/base/path.h"

namespace sluice {

class TempDir {
 public:
  TempDir() {
    const char* root = getenv("TMPDIR");
    path_ = JoinPath(root == nullptr ? "/tmp" : root, "sluice_test_XXXXXX");
    if (mkdtemp(path_.data()) == nullptr) path_ = ".";
  }
  ~TempDir() {
    if (path_ != ".") RealFileSystem().DeleteRecursively(path_).IgnoreError();
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const {
    return JoinPath(path_, name);
  }

 private:
  std::string path_;
};

}  // namespace sluice
