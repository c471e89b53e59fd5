#include "sluice/train/profiler_hook.h"

#include <cstdio>

#include "sluice/base/file.h"
#include "sluice/base/logging.h"
#include "sluice/base/path.h"
#include "sluice/base/status.h"

namespace sluice {
namespace {

// As JSON writes it, with the quotes.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", c);
      quoted += code;
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// "name = Op(inputs)" names the op of a node.
std::string OpOf(const NodeStats& node) {
  const size_t begin = node.label.find(" = ");
  const size_t end = node.label.find('(');
  if (begin == std::string::npos || end == std::string::npos || end < begin) {
    return node.node;
  }
  return node.label.substr(begin + 3, end - begin - 3);
}

}  // namespace

std::string ChromeTrace(const RunMetadata& metadata) {
  std::string events;
  int pid = 0;
  for (const StepStatsCollector::DeviceStats& device : metadata.step_stats) {
    ++pid;
    StrAppend(&events, events.empty() ? "" : ",\n",
              "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": ", pid,
              ", \"args\": {\"name\": ", Quoted(device.device + " Compute"),
              "}}");
    for (const NodeStats& node : device.nodes) {
      StrAppend(
          &events, ",\n{\"ph\": \"X\", \"cat\": \"Op\", \"pid\": ", pid,
          ", \"tid\": ", node.thread_id, ", \"ts\": ", node.start_nanos / 1000,
          ", \"dur\": ",
          std::max<int64_t>(1, (node.end_nanos - node.start_nanos) / 1000),
          ", \"name\": ", Quoted(OpOf(node)),
          ", \"args\": {\"name\": ", Quoted(node.node), "}}");
    }
  }
  return StrCat("{\"traceEvents\": [\n", events, "\n]}\n");
}

ProfilerHook::ProfilerHook(Every every, std::string output_dir)
    : GlobalStepHook("ProfilerHook"),
      every_(every),
      output_dir_(std::move(output_dir)),
      timer_(every.secs, every.steps) {}

absl::Status ProfilerHook::Begin(Graph& graph) {
  SLUICE_RETURN_IF_ERROR(CheckEvery(every_, "ProfilerHook"));
  next_step_.reset();
  return GlobalStepHook::Begin(graph);
}

absl::StatusOr<SessionRunArgs> ProfilerHook::BeforeRun(
    SessionRunContext& context) {
  SLUICE_ASSIGN_OR_RETURN(SessionRunArgs args,
                          GlobalStepHook::BeforeRun(context));
  requested_ = next_step_ && timer_.ShouldTrigger(*next_step_);
  args.trace = requested_;
  return args;
}

absl::Status ProfilerHook::AfterRun(SessionRunContext& context,
                                    const std::vector<Tensor>& results) {
  SLUICE_ASSIGN_OR_RETURN(const int64_t stale, IntegerOf(results[0]));
  if (!next_step_) timer_.Triggered(stale);
  int64_t step = stale + 1;
  if (requested_) {
    SLUICE_ASSIGN_OR_RETURN(step, ReadStep(context.session()));
    timer_.Triggered(step);
    const std::string path =
        JoinPath(output_dir_, StrCat("timeline-", step, ".json"));
    SLUICE_LOG(INFO) << "Saving timeline for " << step << " into '" << path
                     << "'.";
    SLUICE_RETURN_IF_ERROR(
        RealFileSystem().WriteFile(path, ChromeTrace(context.metadata())));
  }
  next_step_ = step + 1;
  return absl::OkStatus();
}

}  // namespace sluice
