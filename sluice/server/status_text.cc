#include <google/protobuf/util/json_util.h>

#include <cmath>
#include <cstdio>

#include "sluice/base/strings.h"
#include "sluice/server/status.h"

namespace sluice {
namespace {

std::string Number(double value, const char* format) {
  char text[32];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

std::string BytesText(int64_t bytes) {
  if (bytes < 10'000) return StrCat(bytes, " B");
  if (bytes < 10'000'000) return Number(bytes / 1e3, "%.0f kB");
  if (bytes < 10'000'000'000) return Number(bytes / 1e6, "%.0f MB");
  return Number(bytes / 1e9, "%.1f GB");
}

class Text {
 public:
  explicit Text(const pb::TaskStatus& status) : status_(status) {}

  std::string Write() {
    Line(status_.task(), " at ", status_.target(), ", process ", status_.pid(),
         ", Sluice ", status_.version(), ", up ",
         AgeText(status_.uptime_seconds()));
    Sessions("sessions", status_.sessions());
    Sessions("sessions of other masters", status_.served_sessions());
    Waits();
    Transfers();
    Queues();
    Peers();
    Line("steps: ", status_.steps_started(), " started, ",
         status_.steps_failed(),
         " failed; kernels run: ", status_.kernels_run());
    Calls("calls in", status_.calls_in());
    Calls("calls out (whole process)", status_.calls_out());
    Line("buffers: ", status_.buffer_hits(), " reused, ",
         status_.buffer_misses(), " fresh; ",
         BytesText(status_.buffer_bytes_in_use()), " in large ones, ",
         BytesText(status_.buffer_bytes_pooled()), " pooled");
    for (const pb::TaskStatus::Pool& pool : status_.pools()) {
      Line(pool.name(), " pool: ", pool.threads(), " threads, ", pool.queued(),
           " queued");
    }
    Line("lanes: ", BytesText(status_.lane_bytes_queued()), " wait to be sent");
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void Line(const Args&... args) {
    StrAppend(&text_, args..., "\n");
  }

  void Sessions(const char* title, const google::protobuf::RepeatedPtrField<
                                       pb::TaskStatus::Session>& sessions) {
    Line(title, ": ", sessions.size());
    for (const pb::TaskStatus::Session& session : sessions) {
      const bool own = session.client().empty();
      Line("  ", session.handle(), "  of ",
           own ? "this process" : session.client(), ", opened ",
           AgeText(session.age_seconds()), " ago",
           own ? ""
               : StrCat(", used ", AgeText(session.idle_seconds()), " ago",
                        session.held() ? ", held" : ", not held"));
      for (const pb::TaskStatus::Step& step : session.steps()) {
        std::string on;
        for (const std::string& task : step.running_on()) {
          StrAppend(&on, on.empty() ? " on " : ", ", task);
        }
        Line("    step ", step.id(), " runs for ", AgeText(step.age_seconds()),
             on);
      }
    }
  }

  void Waits() {
    Line("waits of the process: ", status_.waits_size());
    for (const pb::TaskStatus::Wait& wait : status_.waits()) {
      Line("  ", wait.where(), " waits ", AgeText(wait.age_seconds()), " for ",
           wait.what(),
           wait.step_id() == 0 ? "" : StrCat(" (step ", wait.step_id(), ")"));
    }
  }

  void Transfers() {
    Line("steps with transfers: ", status_.transfers_size());
    for (const pb::TaskStatus::Transfers& step : status_.transfers()) {
      for (const std::string& key : step.wanted_key()) {
        Line("  step ", step.step_id(), " wants ", key);
      }
    }
  }

  void Queues() {
    Line("queues: ", status_.queues_size());
    for (const pb::TaskStatus::Queue& queue : status_.queues()) {
      Line("  ", queue.name(), " (", queue.kind(), " on ", queue.device(),
           ") has ", queue.elements(), " elements, ", queue.adding(),
           " wait to add, ", queue.taking(), " to take");
    }
  }

  void Peers() {
    Line("peers: ", status_.peers_size());
    for (const pb::TaskStatus::Peer& peer : status_.peers()) {
      Line("  ", peer.task(), " at ", peer.address(),
           peer.lane() ? " by a lane, " : ", ",
           peer.last_answer_seconds() < 0
               ? "has not answered yet"
               : StrCat("last answer ", AgeText(peer.last_answer_seconds()),
                        " ago"));
    }
  }

  void Calls(
      const char* title,
      const google::protobuf::RepeatedPtrField<pb::TaskStatus::Calls>& calls) {
    Line(title, ":");
    for (const pb::TaskStatus::Calls& method : calls) {
      Line("  ", method.method(), " ", method.calls(), ", ",
           BytesText(method.request_bytes()), " requests, ",
           BytesText(method.response_bytes()), " answers");
    }
  }

  const pb::TaskStatus& status_;
  std::string text_;
};

}  // namespace

std::string AgeText(double seconds) {
  if (seconds < 1) return Number(seconds * 1000, "%.0f ms");
  if (seconds < 10) return Number(seconds, "%.1f s");
  if (seconds < 600) return Number(seconds, "%.0f s");
  if (seconds < 36000) return Number(seconds / 60, "%.0f min");
  return Number(seconds / 3600, "%.0f h");
}

std::string TaskStatusText(const pb::TaskStatus& status) {
  return Text(status).Write();
}

std::string TaskStatusJson(const pb::TaskStatus& status) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string json;
  // Always OK: a message of ours has a JSON form.
  (void)google::protobuf::util::MessageToJsonString(status, &json, options);
  return json;
}

}  // namespace sluice
