#include "sluice/server/housekeeper.h"

#include <algorithm>

#include "sluice/base/blocking_pool.h"
#include "sluice/base/logging.h"
#include "sluice/base/simulation.h"
#include "sluice/base/time_limit.h"
#include "sluice/base/timer.h"

namespace sluice {
namespace {

// How long a task may take to say what it does.
constexpr auto kAskTimeout = std::chrono::seconds(5);

void LimitFromEnvironment(const char* name, std::chrono::milliseconds* limit) {
  *limit = SecondsFromEnvironment(name, {}).value_or(*limit);
}

}  // namespace

HousekeeperOptions HousekeeperOptions::FromEnvironment() {
  HousekeeperOptions options;
  if (const auto stall = SecondsFromEnvironment("SLUICE_STALL_SECONDS", {})) {
    options.stall_seconds = std::chrono::duration<double>(*stall).count();
  }
  LimitFromEnvironment("SLUICE_SESSION_GRACE_SECONDS",
                       &options.sessions.released);
  LimitFromEnvironment("SLUICE_SESSION_IDLE_SECONDS", &options.sessions.unused);
  return options;
}

std::shared_ptr<Housekeeper> Housekeeper::Start(
    TaskParts task, const HousekeeperOptions& options) {
  std::shared_ptr<Housekeeper> keeper(
      new Housekeeper(std::move(task), options));
  keeper->Schedule();
  return keeper;
}

// Often enough to be on time, rarely enough to cost nothing.
void Housekeeper::Schedule() {
  auto period = std::min(options_.sessions.released, options_.sessions.unused);
  if (options_.stall_seconds > 0) {
    period = std::min(period, std::chrono::milliseconds(static_cast<int64_t>(
                                  options_.stall_seconds * 1000)));
  }
  period = std::clamp<std::chrono::milliseconds>(
      period / 4, std::chrono::milliseconds(100), std::chrono::seconds(5));
  CallLater(period, [weak = weak_from_this()] {
    // Looking at everything may wait for locks, and telling of a stall for
    // other tasks: not on a thread that polls the network.
    if (weak.expired()) return;
    RunBlocking([weak] {
      if (auto self = weak.lock()) self->Tick();
    });
  });
}

void Housekeeper::Tick() {
  CollectSessions();
  if (options_.stall_seconds > 0) LookForStalls();
  Schedule();
}

void Housekeeper::CollectSessions() {
  TaskActivity& activity = *task_.activity;
  absl::flat_hash_map<std::string, SteadyTime> last_uses;
  for (const MasterSession::Info& info : task_.master->ListSessions()) {
    last_uses.emplace(info.handle, info.last_use);
  }
  for (const auto& use : activity.clients.List()) {
    const auto it = last_uses.find(use->handle());
    if (it != last_uses.end()) {
      use->Touch(it->second);
    } else if (TheClock().Now() - use->opened() > std::chrono::seconds(1)) {
      // It ended without its client, as by Reset.
      activity.clients.Remove(use->handle());
    }
  }
  absl::flat_hash_set<std::string> peers;
  bool looked = false;
  const auto connected = [&](const std::string& client) {
    if (!looked) peers = ConnectedPeers();
    looked = true;
    return peers.contains(client);
  };
  const SteadyTime now = TheClock().Now();
  activity.clients.Collect(options_.sessions, now, connected);
  activity.masters.Collect(options_.sessions, now, connected);
}

void Housekeeper::LookForStalls() {
  const pb::TaskStatus status = GetTaskStatus(task_);
  for (const StallWatch::Stall& stall : stalls_.Find(status)) {
    const StallLine line = DescribeStall(
        stall, status, [this](const std::string&, const std::string& address) {
          return FetchTaskStatus(address, kAskTimeout, options_.tls);
        });
    if (line.patient) {
      SLUICE_LOG(INFO) << line.text;
    } else {
      SLUICE_LOG(WARNING) << line.text;
    }
  }
}

}  // namespace sluice
