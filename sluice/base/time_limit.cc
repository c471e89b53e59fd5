#include "sluice/base/time_limit.h"

#include <cstdlib>

#include "sluice/base/logging.h"

namespace sluice {

std::optional<std::chrono::milliseconds> SecondsFromEnvironment(
    const char* name, std::chrono::milliseconds least) {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  char* end = nullptr;
  const Milliseconds value(std::strtod(text, &end) * 1000);
  // NaN is not at least anything.
  if (end == text || *end != '\0' || !(value >= least)) {
    SLUICE_LOG(WARNING) << name << " must be a number of seconds, not '" << text
                        << "'; it is ignored";
    return std::nullopt;
  }
  // Only then an integer can hold it.
  if (value >= kCentury) return kCentury;
  return std::chrono::duration_cast<std::chrono::milliseconds>(value);
}

}  // namespace sluice
