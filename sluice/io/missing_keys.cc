#include "sluice/io/missing_keys.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_join.h"
#include "sluice/base/status.h"

namespace sluice {
namespace {

// How many names a message shows at most.
constexpr size_t kMaxShown = 20;
constexpr size_t kMaxMatches = 3;
// Comparing all names of a huge checkpoint would take longer than reading it.
constexpr size_t kMaxCompared = 20'000;

std::string ListNames(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kMaxShown);
  std::string text = absl::StrJoin(names.begin(), names.begin() + shown, ", ");
  if (shown < names.size()) {
    StrAppend(&text, " and ", names.size() - shown, " more");
  }
  return text;
}

// Letters to insert, delete or replace; `limit` + 1 if more than `limit`.
size_t Distance(std::string_view a, std::string_view b, size_t limit) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > limit) return limit + 1;
  std::vector<size_t> row(a.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t j = 1; j <= b.size(); ++j) {
    size_t diagonal = std::exchange(row[0], j);
    size_t best = row[0];
    for (size_t i = 1; i <= a.size(); ++i) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[i];
      row[i] = std::min({replaced, row[i] + 1, row[i - 1] + 1});
      best = std::min(best, row[i]);
    }
    if (best > limit) return limit + 1;
  }
  return row.back();
}

// Whether one is the other below some scope.
bool SameBelowAScope(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  return b.size() > a.size() && b.ends_with(a) &&
         b[b.size() - a.size() - 1] == '/';
}

}  // namespace

std::vector<std::string> NearMatches(const std::string& name,
                                     const std::vector<std::string>& present) {
  const size_t limit = std::max<size_t>(2, name.size() / 4);
  std::vector<std::pair<size_t, std::string>> found;
  for (size_t i = 0; i < std::min(present.size(), kMaxCompared); ++i) {
    const size_t distance = SameBelowAScope(name, present[i])
                                ? 0
                                : Distance(name, present[i], limit);
    // A short name is a few letters away from everything.
    if (distance <= limit && distance < name.size()) {
      found.emplace_back(distance, present[i]);
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(found.size(), kMaxMatches); ++i) {
    names.push_back(std::move(found[i].second));
  }
  return names;
}

absl::Status MissingKeys(CheckpointReader& reader, const std::string& prefix,
                         std::span<const std::string> wanted) {
  SLUICE_ASSIGN_OR_RETURN(const CheckpointReader::KeysByName objects,
                          reader.ObjectKeys());
  std::vector<std::string> missing;
  for (const std::string& name : wanted) {
    if (!reader.Contains(name) && !objects.contains(name)) {
      missing.push_back(name);
    }
  }
  if (missing.empty()) return absl::OkStatus();
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  std::string text = StrCat("Key ", missing[0], " not found in checkpoint");
  if (missing.size() > 1) {
    StrAppend(&text, "\n", missing.size(), " of ", wanted.size(),
              " keys are missing: ", ListNames(missing));
  }
  std::vector<std::string> present;
  for (const auto& [name, key] : objects) present.push_back(name);
  SLUICE_ASSIGN_OR_RETURN(const std::vector<CheckpointTensor> tensors,
                          reader.List());
  for (const CheckpointTensor& tensor : tensors) present.push_back(tensor.name);
  for (size_t i = 0; i < std::min(missing.size(), kMaxShown); ++i) {
    const std::vector<std::string> near = NearMatches(missing[i], present);
    if (near.empty()) continue;
    StrAppend(&text, "\nThe checkpoint has no ", missing[i], ", but ",
              absl::StrJoin(near, ", "));
  }
  StrAppend(
      &text, "\nCheckpoint ", prefix, " holds ", tensors.size(),
      tensors.size() == 1 ? " tensor: " : " tensors: ", ListNames(present));
  return NotFound(text);
}

}  // namespace sluice
