#include "sluice/server/stalls.h"

#include <algorithm>
#include <set>

#include "sluice/base/strings.h"
#include "sluice/server/status.h"

namespace sluice {
namespace {

// More would make a line that nobody reads.
constexpr int kWaitsShown = 5;

std::vector<pb::TaskStatus::Wait> WaitsOf(const pb::TaskStatus& status,
                                          int64_t step_id) {
  std::vector<pb::TaskStatus::Wait> waits;
  for (const pb::TaskStatus::Wait& wait : status.waits()) {
    if (wait.step_id() == step_id) waits.push_back(wait);
  }
  return waits;
}

void AppendWaits(const std::vector<pb::TaskStatus::Wait>& waits,
                 std::string* text) {
  int shown = 0;
  for (const pb::TaskStatus::Wait& wait : waits) {
    if (shown == kWaitsShown) break;
    StrAppend(text, shown == 0 ? "" : ", ", "node ", wait.where(),
              " waits for ", wait.what(),
              wait.owed_by().empty() ? " (for as long as that takes)" : "");
    ++shown;
  }
  if (static_cast<int>(waits.size()) > shown) {
    StrAppend(text, " and ", waits.size() - shown, " more");
  }
}

const pb::TaskStatus::Peer* FindPeer(const pb::TaskStatus& status,
                                     const std::string& task) {
  for (const pb::TaskStatus::Peer& peer : status.peers()) {
    if (peer.task() == task) return &peer;
  }
  return nullptr;
}

bool Patient(const std::vector<pb::TaskStatus::Wait>& waits) {
  return std::ranges::all_of(waits, [](const pb::TaskStatus::Wait& wait) {
    return wait.owed_by().empty();
  });
}

}  // namespace

std::vector<StallWatch::Stall> StallWatch::Find(const pb::TaskStatus& status) {
  std::vector<Stall> stalls;
  absl::flat_hash_map<int64_t, double> next_line;
  const auto look = [&](const pb::TaskStatus::Session& session,
                        const pb::TaskStatus::Step& step) {
    if (step.age_seconds() < patience_seconds_) return;
    std::vector<pb::TaskStatus::Wait> waits = WaitsOf(status, step.id());
    // Something new began, so the step moves; without any wait a kernel
    // computes, here or on another task that will say so itself.
    const bool moves =
        std::ranges::any_of(waits, [&](const pb::TaskStatus::Wait& wait) {
          return wait.age_seconds() < patience_seconds_;
        });
    const bool elsewhere = std::ranges::any_of(
        step.running_on(),
        [&](const std::string& task) { return task != status.task(); });
    if (moves || (waits.empty() && !elsewhere)) return;
    const auto known = next_line_.find(step.id());
    double next = known == next_line_.end() ? 0 : known->second;
    if (step.age_seconds() >= next) {
      next = 2 * step.age_seconds();
      stalls.push_back({session.handle(), step, std::move(waits)});
    }
    next_line[step.id()] = next;
  };
  for (const auto* sessions : {&status.sessions(), &status.served_sessions()}) {
    for (const pb::TaskStatus::Session& session : *sessions) {
      for (const pb::TaskStatus::Step& step : session.steps()) {
        look(session, step);
      }
    }
  }
  // Steps that are over, or moved on, are forgotten.
  next_line_ = std::move(next_line);
  return stalls;
}

StallLine DescribeStall(const StallWatch::Stall& stall,
                        const pb::TaskStatus& status, const AskTask& ask) {
  StallLine line;
  line.patient = Patient(stall.waits);
  line.text = StrCat("Step ", stall.step.id(), " of session ", stall.session,
                     " has waited ", AgeText(stall.step.age_seconds()), ": ");
  AppendWaits(stall.waits, &line.text);
  // Those who owe something, and those whose part is not done.
  std::set<std::string> debtors(stall.step.running_on().begin(),
                                stall.step.running_on().end());
  for (const pb::TaskStatus::Wait& wait : stall.waits) {
    if (!wait.owed_by().empty()) debtors.insert(wait.owed_by());
  }
  debtors.erase(status.task());
  bool first = stall.waits.empty();
  for (const std::string& task : debtors) {
    const pb::TaskStatus::Peer* peer = FindPeer(status, task);
    StrAppend(&line.text, first ? "" : "; ", task);
    first = false;
    if (peer == nullptr) continue;
    StrAppend(&line.text, " at ", peer->address(), " (last answer ",
              peer->last_answer_seconds() < 0
                  ? "never"
                  : StrCat(AgeText(peer->last_answer_seconds()), " ago"),
              ")");
    const absl::StatusOr<pb::TaskStatus> theirs = ask(task, peer->address());
    if (!theirs.ok()) {
      StrAppend(&line.text,
                " does not tell what it does: ", theirs.status().message());
      line.patient = false;
      continue;
    }
    const std::vector<pb::TaskStatus::Wait> waits =
        WaitsOf(*theirs, stall.step.id());
    if (waits.empty()) {
      StrAppend(&line.text, " waits for nothing of this step");
      line.patient = false;
    } else {
      StrAppend(&line.text, ": ");
      AppendWaits(waits, &line.text);
      // Somewhere at the end of the chain stands one who may take his time.
      if (!line.patient) line.patient = Patient(waits);
    }
  }
  return line;
}

}  // namespace sluice
