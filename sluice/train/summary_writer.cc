#include "sluice/train/summary_writer.h"

#include "sluice/base/logging.h"
#include "sluice/base/status.h"
#include "sluice/client/collections.h"
#include "sluice/graph/graph_def.h"
#include "sluice/proto/graph.pb.h"
#include "sluice/proto/summary.pb.h"

namespace sluice {
namespace {

std::string CleanTag(std::string_view name) {
  std::string clean;
  for (const char c : name) {
    const bool allowed = isalnum(static_cast<unsigned char>(c)) || c == '_' ||
                         c == '-' || c == '/' || c == '.';
    clean += allowed ? c : '_';
  }
  clean.erase(0, clean.find_first_not_of('/'));
  if (clean != name) {
    SLUICE_LOG(INFO) << "Summary name " << name << " is illegal; using "
                     << clean << " instead.";
  }
  return clean;
}

Output AddTagged(const Scope& outer, std::string_view name,
                 std::string_view tag_input, std::string_view op,
                 Output value) {
  const Scope scope = outer.NameScope(CleanTag(name));
  if (!scope.ok()) return Output();
  const std::string& inside = scope.context().name_scope;
  const Output tag = scope.Named(tag_input).Scalar<std::string>(
      inside.substr(0, inside.size() - 1));
  const Output summary = scope.Named(inside).Add(op, {tag, value});
  if (summary) {
    Collections::Of(outer.graph()).Add(keys::kSummaries, summary);
  }
  return summary;
}

}  // namespace

SummaryWriter::SummaryWriter(std::string logdir, double flush_secs)
    : logdir_(std::move(logdir)),
      flush_secs_(flush_secs),
      events_(RealFileSystem(), RealClock(), logdir_) {}

SummaryWriter::~SummaryWriter() {
  Close().IgnoreError();  // Write has logged it.
}

void SummaryWriter::Write(pb::Event event) {
  event.set_wall_time(static_cast<double>(RealClock().WallMicros()) / 1e6);
  absl::Status status = events_.Write(event);
  MutexLock lock(mu_);
  const SteadyTime now = RealClock().Now();
  // The first event goes out at once, so that readers see the run.
  const bool due =
      !flushed_ ||
      std::chrono::duration<double>(now - *flushed_).count() >= flush_secs_;
  if (status.ok() && due) {
    flushed_ = now;
    status = events_.Flush();
  }
  if (!status.ok() && error_.ok()) {
    error_ = status;
    SLUICE_LOG(ERROR) << "Events are lost: " << status.message();
  }
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

absl::Status SummaryWriter::Flush() {
  const absl::Status status = events_.Flush();
  MutexLock lock(mu_);
  return error_.ok() ? status : error_;
}

absl::Status SummaryWriter::Close() {
  const absl::Status status = events_.Close();
  MutexLock lock(mu_);
  return error_.ok() ? status : error_;
}

Output AddScalarSummary(const Scope& scope, std::string_view name,
                        Output value) {
  return AddTagged(scope, name, "tags", "ScalarSummary", value);
}

Output AddHistogramSummary(const Scope& scope, std::string_view name,
                           Output values) {
  return AddTagged(scope, name, "tag", "HistogramSummary", values);
}

Output MergeAllSummaries(const Scope& outer) {
  const std::vector<Output> all =
      Collections::Of(outer.graph()).outputs(keys::kSummaries);
  if (all.empty()) return Output();
  const Scope scope = outer.NameScope("Merge");
  return scope.Named("MergeSummary")
      .Add("MergeSummary", all, {{"N", static_cast<int64_t>(all.size())}});
}

}  // namespace sluice
