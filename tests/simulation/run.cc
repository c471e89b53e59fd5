#include "tests/simulation/run.h"

#include <algorithm>
#include <map>
#include <optional>

#include "sluice/base/status.h"
#include "sluice/kernel/step.h"
#include "sluice/proto/master.pb.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/recv_chunks.h"
#include "sluice/tensor/buffer.h"
#include "tests/simulation/client.h"
#include "tests/simulation/cluster.h"

namespace sluice::sim {
namespace {

constexpr nanoseconds kFaultTime = seconds(60);
// A step hears of a lost peer within 30 s, in each of its three legs: the
// client's own, registering, running.
constexpr nanoseconds kPromised = seconds(120);
// How long a call may wait without being named, and how often that is checked.
constexpr nanoseconds kUnnamed = seconds(10);
constexpr nanoseconds kLook = seconds(1);
// A task collects what its client left after two minutes (task.cc), in which it
// looks every few seconds; it may hear late that the client is gone.
constexpr nanoseconds kCollected = seconds(180);

class Run {
 public:
  explicit Run(const RunOptions& options)
      : options_(options),
        bytes_before_(GetBufferPoolStats().bytes_in_use),
        cluster_(options.seed, options.keep_trace),
        client_(cluster_) {
    network().planted = options.planted;
  }
  ~Run() { SetChunkBytesForTest(chunk_bytes_before_); }

  RunReport Go() {
    if (options_.faults) DrawWeather();
    StartAll();
    for (int w = 0; w < kNumWorkers; ++w) client_.StartTrainer(w, Death());
    for (int64_t n = Draw(0, 2); n > 0; --n) {
      client_.StartConsumer(static_cast<int>(Draw(0, kNumWorkers - 1)),
                            Death());
    }
    RunFor(kFaultTime, [] { return false; });
    CalmDown();
    if (!RunFor(kPromised * 3, [&] { return !client_.busy(); })) {
      Violate("a call of the client does not end");
    }
    RunFor(seconds(5), [] { return false; });
    client_.CloseConsumers();
    if (!RunFor(kPromised,
                [&] { return !client_.consuming() && !client_.busy(); })) {
      Violate("a call does not end when its session is closed");
    }
    if (!RunFor(kCollected, [&] { return !AnySessions(); })) {
      Violate("the session of a client that is gone is kept");
    }
    for (const auto& task : cluster_.tasks()) task->StopHousekeeping();
    client_.Sweep();
    if (!RunFor(kPromised, [&] { return !client_.busy(); })) {
      Violate("a session can neither be opened nor closed");
    }
    if (!RunFor(kPromised, [&] { return scheduler().num_events() == 0; })) {
      Violate(StrCat("the cluster does not come to rest: ",
                     scheduler().num_events(), " events are left"));
    }
    client_.CheckUpdates();
    CheckLeaks();
    for (const auto& task : cluster_.tasks()) cluster_.Kill(*task);
    if (!WaitTable::Global().List().empty()) {
      Violate("leak: a wait outlives its task");
    }
    const int64_t bytes = GetBufferPoolStats().bytes_in_use - bytes_before_;
    if (bytes != 0) Violate(StrCat("leak: ", bytes, " bytes of tensors"));
    return Report();
  }

 private:
  Scheduler& scheduler() { return cluster_.scheduler(); }
  Network& network() { return cluster_.network(); }
  int64_t Draw(int64_t low, int64_t high) {
    return scheduler().Between(low, high);
  }
  void Violate(const std::string& what) {
    std::string text = what;
    for (const ClientCall& call : client_.open_calls()) {
      StrAppend(
          &text, "\n  the client waits for ", call.what, " since ",
          std::chrono::duration<double>(call.since.time_since_epoch()).count());
    }
    cluster_.Violate(StrCat(text, network().DescribeOpenCalls()));
  }

  // Each seed has faults of its own, so that each kind also comes alone.
  void DrawWeather() {
    Weather& weather = network().weather;
    weather.longest_delay = milliseconds(Draw(1, 50));
    if (Draw(0, 1)) weather.slow = 0.001 * static_cast<double>(Draw(1, 30));
    if (Draw(0, 1)) weather.lost = 0.001 * static_cast<double>(Draw(1, 20));
    if (Draw(0, 1))
      weather.duplicate = 0.001 * static_cast<double>(Draw(1, 50));
    if (Draw(0, 1)) PlanKill();
    if (Draw(0, 1)) PlanCut();
  }

  // When a client dies, if it does.
  std::optional<nanoseconds> Death() {
    if (!options_.faults || !scheduler().Chance(0.2)) return std::nullopt;
    return milliseconds(Draw(500, 60000));
  }

  bool AnySessions() {
    return std::ranges::any_of(cluster_.tasks(), [](const auto& task) {
      return task->master().num_sessions() > 0;
    });
  }

  // Tasks of one cluster start when they start.
  void StartAll() {
    for (const auto& task : cluster_.tasks()) {
      scheduler().After(
          options_.faults ? milliseconds(Draw(0, 3000)) : milliseconds(0),
          kOutside, [this, task = task.get()] {
            if (!task->up()) cluster_.Start(*task);
          });
    }
  }

  void PlanKill() {
    scheduler().After(milliseconds(Draw(500, 20000)), kOutside, [this] {
      if (calm_) return;
      Task& task = *cluster_.tasks()[Draw(0, kNumPs + kNumWorkers - 1)];
      if (task.up()) {
        ++restarts_;
        cluster_.Kill(task);
        scheduler().After(milliseconds(Draw(1, 15000)), kOutside,
                          [this, &task] {
                            if (!task.up()) cluster_.Start(task);
                          });
      }
      PlanKill();
    });
  }

  void PlanCut() {
    scheduler().After(milliseconds(Draw(500, 15000)), kOutside, [this] {
      if (calm_) return;
      std::vector<std::string> names = {"client"};
      for (const auto& task : cluster_.tasks()) {
        names.push_back(task->address());
      }
      const int64_t last = static_cast<int64_t>(names.size()) - 1;
      const std::string from = names[Draw(1, last)];
      const std::string to = names[Draw(0, last)];
      // Now and then nobody reaches a task at all.
      if (Draw(0, 4) > 0) names = {to};
      const nanoseconds time = milliseconds(Draw(10, 45000));
      for (const std::string& other : names) {
        if (other != from) Cut(from, other, time);
      }
      PlanCut();
    });
  }

  void Cut(const std::string& a, const std::string& b, nanoseconds time) {
    network().Cut(a, b);
    scheduler().After(time, kOutside, [this, a, b] { network().Heal(a, b); });
  }

  void CalmDown() {
    calm_ = true;
    client_.CalmDown();
    network().HealAll();
    network().weather = Weather();
    for (const auto& task : cluster_.tasks()) {
      if (!task->up()) cluster_.Start(*task);
    }
    cluster_.trace().Add(scheduler().Now(), "calm");
  }

  // Runs until `over`; false if that does not come within `time`.
  bool RunFor(nanoseconds time, absl::FunctionRef<bool()> over) {
    const SteadyTime until = scheduler().Now() + time;
    while (!over()) {
      if (scheduler().RunOne(std::min(until, next_look_))) continue;
      if (scheduler().Now() >= until) return over();
      CheckWaits();
      next_look_ = scheduler().Now() + kLook;
    }
    return true;
  }

  // What the wait table says, but for what a planted bug hides.
  std::vector<WaitInfo> Waits() const {
    std::vector<WaitInfo> waits = WaitTable::Global().List();
    std::erase_if(waits, [&](const WaitInfo& wait) {
      return wait.step_id == 0 ? options_.planted.hides_missing_tasks
                               : options_.planted.hides_waits;
    });
    return waits;
  }

  // Who waits long says for what. What is still on its way to a task, or back,
  // waits for the network, which nobody there can know.
  void CheckWaits() {
    const std::vector<WaitInfo> waits = Waits();
    const SteadyTime now = scheduler().Now();
    // Those of a session that is opened are not told apart: one for each.
    auto opening = std::ranges::count_if(
        waits, [](const WaitInfo& wait) { return wait.step_id == 0; });
    std::map<int64_t, SteadyTime> unnamed;
    for (Network::TakenCall& call : network().TakenCalls("client")) {
      if (call.method == "Hold") continue;
      if (call.method == "CreateSession" ? opening-- > 0
                                         : IsNamed(&call, waits)) {
        continue;
      }
      const auto known = unnamed_.find(call.id);
      const SteadyTime since = known == unnamed_.end() ? now : known->second;
      unnamed[call.id] = since;
      if (now - since < kUnnamed || now - since >= kUnnamed + kLook) continue;
      Violate(
          StrCat(call.method, " on ", call.to, " waits for what nobody names"));
    }
    unnamed_ = std::move(unnamed);
  }

  // Whether the wait table, or the list of the steps that run, says what a call
  // of a session waits for.
  bool IsNamed(Network::TakenCall* call, const std::vector<WaitInfo>& waits) {
    pb::CloseSessionRequest request;  // The others have its field, too.
    FromByteBuffer(&call->request, &request);
    const Task* master = cluster_.FindTask(call->to);
    for (const MasterSession::Info& session : master->master().ListSessions()) {
      if (session.handle != request.session_handle()) continue;
      for (const WaitInfo& wait : waits) {
        if (wait.where == StrCat("session ", session.handle)) return true;
        for (const auto& step : session.steps) {
          if (wait.step_id == step.id) return true;
        }
      }
      for (const auto& step : session.steps) {
        for (const std::string& task : step.running_on) {
          if (IsLost(*master, task)) return true;
        }
      }
    }
    return false;
  }

  // Whether `name` is down, or silent for `master`.
  bool IsLost(const Task& master, const std::string& name) {
    for (const auto& task : cluster_.tasks()) {
      if (task->name() != name) continue;
      return !task->up() || network().IsCut(master.address(), task->address());
    }
    return false;
  }

  void CheckLeaks() {
    for (const auto& task : cluster_.tasks()) {
      const auto check = [&](const char* what, int count) {
        if (count == 0) return;
        Violate(StrCat("leak: ", count, " ", what, " on ", task->name()));
      };
      check("sessions of the master", task->master().num_sessions());
      check("sessions of the worker", task->worker().num_sessions());
      check("registered graphs", task->worker().num_graphs());
      check("steps", task->worker().num_steps());
    }
    for (const WaitInfo& wait : WaitTable::Global().List()) {
      Violate(StrCat("leak: a wait: ", wait.what, " at ", wait.where));
    }
    if (network().num_open_calls() > 0) Violate("leak: open calls");
  }

  RunReport Report() {
    RunReport report;
    report.violations = cluster_.violations();
    report.hash = cluster_.trace().hash();
    report.trace = cluster_.trace().lines();
    report.attempted = client_.attempted();
    report.acknowledged = client_.acknowledged;
    report.sessions = client_.sessions;
    report.deaths = client_.deaths;
    report.taken_in = client_.taken_in;
    report.longest_step = client_.longest_step;
    report.restarts = restarts_;
    report.messages = network().messages;
    report.faults = network().faults;
    report.seconds =
        std::chrono::duration<double>(scheduler().Now().time_since_epoch())
            .count();
    return report;
  }

  const RunOptions options_;
  const int64_t bytes_before_;
  // The largest tensors are of 80 KB.
  const size_t chunk_bytes_before_ = SetChunkBytesForTest(16 << 10);
  Cluster cluster_;
  Client client_;
  bool calm_ = false;
  int restarts_ = 0;
  SteadyTime next_look_ = {};
  // Calls that nobody names, since when.
  std::map<int64_t, SteadyTime> unnamed_;
};

}  // namespace

RunReport RunSeed(const RunOptions& options) { return Run(options).Go(); }

}  // namespace sluice::sim
