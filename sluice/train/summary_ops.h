// Ops that make summaries, in the collection of the graph. A tag is the op's
// full name, below `family` if one is given; characters that are not allowed in
// a name become '_'.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/graph/scope.h"
#include "sluice/proto/summary.pb.h"

namespace sluice {

struct SummaryOptions {
  std::string family = {};
  // In place of "summaries".
  std::vector<std::string> collections = {"summaries"};
};

Output AddScalarSummary(const Scope& scope, std::string_view name, Output value,
                        const SummaryOptions& options = {});
// `skip_nonfinite`: NaN and infinities are left out and said once, where they
// would end the step.
Output AddHistogramSummary(const Scope& scope, std::string_view name,
                           Output values, const SummaryOptions& options = {},
                           bool skip_nonfinite = false);
// The first images of a batch [n, height, width, 1|3|4].
Output AddImageSummary(const Scope& scope, std::string_view name, Output images,
                       int64_t max_outputs = 3,
                       const SummaryOptions& options = {});
// The first sounds of a batch [n, frames] or [n, frames, channels].
Output AddAudioSummary(const Scope& scope, std::string_view name, Output sounds,
                       float sample_rate, int64_t max_outputs = 3,
                       const SummaryOptions& options = {});
// Strings, which TensorBoard shows as text.
Output AddTextSummary(const Scope& scope, std::string_view name, Output text,
                      const SummaryOptions& options = {});
// Any tensor, for the plugin that the metadata names.
Output AddTensorSummary(const Scope& scope, std::string_view name, Output value,
                        const pb::SummaryMetadata& metadata = {},
                        const SummaryOptions& options = {});
Output MergeSummaries(const Scope& scope, const std::vector<Output>& summaries);
// All summaries of a collection, or of "summaries", as one; none if there are
// none.
Output MergeSummariesOf(const Scope& scope, std::string_view key);
Output MergeAllSummaries(const Scope& scope);

}  // namespace sluice
