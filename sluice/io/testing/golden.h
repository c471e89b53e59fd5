// Files that real TensorFlow wrote, and checks that several tests share.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "sluice/base/file.h"
#include "sluice/base/status.h"

namespace sluice {

// Tests run in the root of the project.
inline std::string GoldenCheckpoint(const std::string& name) {
  return "tests/golden/checkpoints/" + name;
}
inline std::string GoldenEvents(const std::string& name) {
  return "tests/golden/events/" + name;
}

inline std::string Contents(FileSystem& files, const std::string& path) {
  const absl::StatusOr<std::string> contents = files.ReadFile(path);
  EXPECT_TRUE(contents.ok()) << contents.status();
  return contents.ok() ? *contents : "";
}

#define SLUICE_EXPECT_OK(expr)            \
  do {                                    \
    const absl::Status status_ = (expr);  \
    EXPECT_TRUE(status_.ok()) << status_; \
  } while (0)
#define SLUICE_ASSERT_OK(expr)            \
  do {                                    \
    const absl::Status status_ = (expr);  \
    ASSERT_TRUE(status_.ok()) << status_; \
  } while (0)

}  // namespace sluice
