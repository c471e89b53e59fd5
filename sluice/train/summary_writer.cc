#include "sluice/train/summary_writer.h"

#include <map>

#include "sluice/base/clock.h"
#include "sluice/base/logging.h"
#include "sluice/base/status.h"
#include "sluice/graph/graph_def.h"
#include "sluice/proto/graph.pb.h"
#include "sluice/proto/summary.pb.h"

namespace sluice {
namespace {

struct SharedWriters {
  Mutex mu;
  std::map<std::string, std::shared_ptr<SummaryWriter>> writers
      SLUICE_GUARDED_BY(mu);
};
SharedWriters& Shared() {
  static auto* const shared = new SharedWriters;
  return *shared;
}

}  // namespace

SummaryWriter::SummaryWriter(std::string logdir,
                             const SummaryWriterOptions& options)
    : logdir_(std::move(logdir)),
      events_(
          RealFileSystem(), RealClock(), logdir_,
          {options.max_queue, options.flush_secs, options.filename_suffix}) {}

void SummaryWriter::Write(pb::Event event) {
  event.set_wall_time(static_cast<double>(RealClock().WallMicros()) / 1e6);
  events_.Add(event);
}

void SummaryWriter::AddSummary(std::string_view summary, int64_t step) {
  pb::Event event;
  event.set_step(step);
  if (!event.mutable_summary()->ParseFromArray(
          summary.data(), static_cast<int>(summary.size()))) {
    SLUICE_LOG(ERROR) << "A summary of step " << step << " does not parse";
    return;
  }
  {
    // How to show a tag is said once.
    MutexLock lock(mu_);
    for (pb::Summary::Value& value :
         *event.mutable_summary()->mutable_value()) {
      if (value.has_metadata() && !tags_.insert(value.tag()).second) {
        value.clear_metadata();
      }
    }
  }
  Write(std::move(event));
}

void SummaryWriter::AddScalar(std::string_view tag, float value, int64_t step) {
  pb::Summary summary;
  summary.add_value()->set_tag(std::string(tag));
  summary.mutable_value(0)->set_simple_value(value);
  AddSummary(summary.SerializeAsString(), step);
}

void SummaryWriter::AddGraph(Graph& graph) {
  pb::GraphDef def;
  ExportOptions options;
  options.add_shapes = true;
  ExportGraphDef(graph, options, &def);
  pb::Event event;
  event.set_graph_def(def.SerializeAsString());
  Write(std::move(event));
}

void SummaryWriter::AddMetaGraph(const pb::MetaGraphDef& meta) {
  pb::Event event;
  event.set_meta_graph_def(meta.SerializeAsString());
  Write(std::move(event));
}

void SummaryWriter::AddSessionLog(pb::SessionLog::SessionStatus status,
                                  std::string_view checkpoint_path,
                                  std::optional<int64_t> step) {
  pb::Event event;
  event.mutable_session_log()->set_status(status);
  event.mutable_session_log()->set_checkpoint_path(
      std::string(checkpoint_path));
  if (step) event.set_step(*step);
  Write(std::move(event));
}

absl::Status SummaryWriter::AddRunMetadata(const pb::RunMetadata& metadata,
                                           std::string_view tag,
                                           std::optional<int64_t> step) {
  {
    MutexLock lock(mu_);
    if (!run_tags_.emplace(tag).second) {
      return InvalidArgument(
          "The provided tag was already used for this event type");
    }
  }
  pb::Event event;
  event.mutable_tagged_run_metadata()->set_tag(std::string(tag));
  event.mutable_tagged_run_metadata()->set_run_metadata(
      metadata.SerializeAsString());
  if (step) event.set_step(*step);
  Write(std::move(event));
  return absl::OkStatus();
}

std::shared_ptr<SummaryWriter> SharedSummaryWriter(const std::string& logdir) {
  SharedWriters& shared = Shared();
  MutexLock lock(shared.mu);
  std::shared_ptr<SummaryWriter>& writer = shared.writers[logdir];
  if (writer == nullptr) writer = std::make_shared<SummaryWriter>(logdir);
  return writer;
}

void CloseSharedSummaryWriters() {
  SharedWriters& shared = Shared();
  std::map<std::string, std::shared_ptr<SummaryWriter>> writers;
  {
    MutexLock lock(shared.mu);
    std::swap(writers, shared.writers);
  }
  for (const auto& [logdir, writer] : writers) {
    writer->Close().IgnoreError();  // It was logged.
  }
}

}  // namespace sluice
