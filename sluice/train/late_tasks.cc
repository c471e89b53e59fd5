#include "sluice/train/late_tasks.h"

#include <algorithm>
#include <set>
#include <vector>

#include "sluice/base/strings.h"
#include "sluice/server/server.h"
#include "sluice/server/status.h"

namespace sluice {
namespace {

constexpr std::chrono::milliseconds kAnswerTime(2000);

// The steps that wait for something of this kind, at whichever task.
std::set<int64_t> StepsThatWaitFor(std::string_view what,
                                   const std::vector<pb::TaskStatus>& tasks) {
  std::set<int64_t> steps;
  for (const pb::TaskStatus& task : tasks) {
    for (const pb::TaskStatus::Wait& wait : task.waits()) {
      if (wait.what().find(what) != std::string::npos) {
        steps.insert(wait.step_id());
      }
    }
  }
  return steps;
}

// What a task that trains does instead of waiting for a token; empty if it
// waits, or does not train.
std::string Activity(const pb::TaskStatus& task,
                     const std::set<int64_t>& for_tokens,
                     const std::set<int64_t>& for_gradients) {
  double computes = -1;
  double idle = -1;
  for (const pb::TaskStatus::Session& session : task.sessions()) {
    idle = std::max(idle, session.idle_seconds());
    for (const pb::TaskStatus::Step& step : session.steps()) {
      if (for_tokens.contains(step.id())) return "";
      // The chief's other thread.
      if (for_gradients.contains(step.id())) continue;
      computes = std::max(computes, step.age_seconds());
    }
  }
  if (computes >= 0) {
    return StrCat(" has been in a step for ", AgeText(computes), ".");
  }
  return idle >= 0 ? StrCat(" has run no step for ", AgeText(idle), ".") : "";
}

}  // namespace

std::string LateTasks(const std::string& target, const AskTaskStatus& ask) {
  if (target.empty()) return "";
  const absl::StatusOr<pb::TaskStatus> own = ask(target);
  if (!own.ok()) return "";
  std::string text;
  std::vector<pb::TaskStatus> tasks = {*own};
  for (const pb::TaskStatus::Peer& peer : own->peers()) {
    if (peer.task() == own->task()) continue;
    absl::StatusOr<pb::TaskStatus> status = ask(peer.address());
    if (status.ok()) {
      tasks.push_back(*std::move(status));
    } else {
      StrAppend(&text, " ", peer.task(), " at ", peer.address(),
                " does not answer: ", status.status().message(), ".");
    }
  }
  const auto tokens = StepsThatWaitFor("'sync_token_q'", tasks);
  const auto gradients = StepsThatWaitFor("gradients in accumulator", tasks);
  for (const pb::TaskStatus& task : tasks) {
    const std::string activity = Activity(task, tokens, gradients);
    if (!activity.empty()) StrAppend(&text, " ", task.task(), activity);
  }
  return text;
}

std::string LateTasks(const std::string& target) {
  // The program may have told its server only.
  const TlsOptions tls = Server::TlsAt(target);
  return LateTasks(target, [&](const std::string& address) {
    return FetchTaskStatus(address, kAnswerTime, tls);
  });
}

}  // namespace sluice
