// ProfilerHook: where the time of a step goes, as files that trace viewers
// read.
#pragma once

#include <memory>
#include <string>

#include "sluice/train/hooks.h"

namespace sluice {

// The nodes of a traced step by device and thread, as the JSON of Chrome's
// tracing (about:tracing, Perfetto).
std::string ChromeTrace(const RunMetadata& metadata);

// Traces a step every so often, but not the first, and writes it to
// `<output_dir>/timeline-<step>.json`.
class ProfilerHook : public GlobalStepHook {
 public:
  explicit ProfilerHook(Every every, std::string output_dir = "");

  absl::Status Begin(Graph& graph) override;
  absl::StatusOr<SessionRunArgs> BeforeRun(SessionRunContext& context) override;
  absl::Status AfterRun(SessionRunContext& context,
                        const std::vector<Tensor>& results) override;

 private:
  const Every every_;
  const std::string output_dir_;
  StepTimer timer_;
  std::optional<int64_t> next_step_;
  bool requested_ = false;
};

}  // namespace sluice
