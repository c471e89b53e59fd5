// SummaryWriter: an event file of a training run, which TensorBoard reads.
// train/summary_ops.h has the ops that make summaries.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "sluice/base/mutex.h"
#include "sluice/graph/graph.h"
#include "sluice/io/event_queue.h"
#include "sluice/proto/config.pb.h"
#include "sluice/proto/event.pb.h"
#include "sluice/proto/meta_graph.pb.h"
#include "sluice/train/summary_ops.h"

namespace sluice {

struct SummaryWriterOptions {
  // Adding waits when so many events are not written yet.
  int max_queue = 10;
  // Events reach readers at the latest after this time, and at Flush and
  // Close; the first at once.
  double flush_secs = 120;
  std::string filename_suffix = {};
};

// Thread-safe. Another thread writes. An error of the disk is logged and does
// not end training; the next Flush or Close returns it.
class SummaryWriter {
 public:
  // Makes `logdir` when there is something to write.
  explicit SummaryWriter(std::string logdir,
                         const SummaryWriterOptions& options = {});
  SummaryWriter(std::string logdir, double flush_secs)
      : SummaryWriter(std::move(logdir),
                      SummaryWriterOptions{.flush_secs = flush_secs}) {}

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
  // What a traced step took. A tag can be used once.
  absl::Status AddRunMetadata(const pb::RunMetadata& metadata,
                              std::string_view tag,
                              std::optional<int64_t> step = std::nullopt);
  // Any event, as it is.
  void AddEvent(const pb::Event& event) { events_.Add(event); }
  absl::Status Flush() { return events_.Flush(); }
  // Later events are ignored until Reopen, which starts a new file.
  absl::Status Close() { return events_.Close(); }
  void Reopen() { events_.Reopen(); }

 private:
  void Write(pb::Event event);

  const std::string logdir_;
  EventQueue events_;
  Mutex mu_;
  std::set<std::string, std::less<>> tags_ SLUICE_GUARDED_BY(mu_);
  std::set<std::string, std::less<>> run_tags_ SLUICE_GUARDED_BY(mu_);
};

// The writer of a directory that all of this process share, and the end of all
// of them. Thread-safe.
std::shared_ptr<SummaryWriter> SharedSummaryWriter(const std::string& logdir);
void CloseSharedSummaryWriters();

}  // namespace sluice
