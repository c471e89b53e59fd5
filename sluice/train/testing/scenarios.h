// The tables of tests/scenarios, which the Python tests play too.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace sluice {

// The lines of tests/scenarios/<name>.txt, field by field.
std::vector<std::vector<std::string>> ScenarioTable(const std::string& name);
// An error of the code that is called so, "INTERNAL" for one.
absl::Status ScenarioError(const std::string& code);

}  // namespace sluice
