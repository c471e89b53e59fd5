#include "sluice/train/testing/scenarios.h"

#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace sluice {

std::vector<std::vector<std::string>> ScenarioTable(const std::string& name) {
  std::vector<std::vector<std::string>> table;
  std::ifstream file("tests/scenarios/" + name + ".txt");
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string>& fields = table.emplace_back();
    for (const absl::string_view field : absl::StrSplit(line, '|')) {
      fields.emplace_back(absl::StripAsciiWhitespace(field));
    }
  }
  EXPECT_FALSE(table.empty()) << name;
  return table;
}

absl::Status ScenarioError(const std::string& code) {
  for (int i = 1; i <= 16; ++i) {
    const auto status_code = static_cast<absl::StatusCode>(i);
    if (absl::StatusCodeToString(status_code) == code) {
      return absl::Status(status_code, "of a scenario");
    }
  }
  ADD_FAILURE() << code << " is no code";
  return absl::UnknownError(code);
}

}  // namespace sluice
