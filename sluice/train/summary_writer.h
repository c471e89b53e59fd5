// SummaryWriter: an event file of a training run, which TensorBoard reads; and
// the ops that make summaries.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "sluice/base/mutex.h"
#include "sluice/graph/scope.h"
#include "sluice/io/event_file.h"
#include "sluice/proto/event.pb.h"
#include "sluice/proto/meta_graph.pb.h"

namespace sluice {

// Thread-safe. An error of the disk is logged once and does not end training;
// Flush and Close return it.
class SummaryWriter {
 public:
  // Makes `logdir` when there is something to write. Events reach readers at
  // the latest every `flush_secs` when more come, and at Flush and Close.
  explicit SummaryWriter(std::string logdir, double flush_secs = 120);
  ~SummaryWriter();

  const std::string& logdir() const { return logdir_; }
  // The file; empty before the first event.
  std::string path() const { return events_.path(); }

  // A serialized Summary, as summary ops give it.
  void AddSummary(std::string_view summary, int64_t step);
  void AddScalar(std::string_view tag, float value, int64_t step);
  void AddGraph(Graph& graph);
  void AddMetaGraph(const pb::MetaGraphDef& meta);
  void AddSessionLog(pb::SessionLog::SessionStatus status,
                     std::string_view checkpoint_path,
                     std::optional<int64_t> step);
  absl::Status Flush();
  // A later event starts a new file.
  absl::Status Close();

 private:
  void Write(pb::Event event);

  const std::string logdir_;
  const double flush_secs_;
  EventWriter events_;
  Mutex mu_;
  std::set<std::string, std::less<>> tags_ SLUICE_GUARDED_BY(mu_);
  std::optional<SteadyTime> flushed_ SLUICE_GUARDED_BY(mu_);
  absl::Status error_ SLUICE_GUARDED_BY(mu_);
};

// A summary op in the collection of the graph. The tag is the op's full name;
// characters that are not allowed in one become '_'.
Output AddScalarSummary(const Scope& scope, std::string_view name,
                        Output value);
Output AddHistogramSummary(const Scope& scope, std::string_view name,
                           Output values);
// All summaries of the graph as one; none if there are none.
Output MergeAllSummaries(const Scope& scope);

}  // namespace sluice
