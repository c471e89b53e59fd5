#include "sluice/train/sync_replicas_chief.h"

#include <algorithm>
#include <cstdio>

#include "sluice/base/logging.h"
#include "sluice/base/status.h"
#include "sluice/train/global_step.h"
#include "sluice/train/late_tasks.h"

namespace sluice {
namespace {

using Seconds = std::chrono::duration<double>;

// A step is late when it takes so many times as long as they usually do, and
// longer than this; that is said, and said again.
constexpr double kLateTimes = 10;
constexpr double kLateSecs = 5;
constexpr double kAgainSecs = 10;
// Between looks whether a step is late.
constexpr Coordinator::Seconds kLookInterval(0.5);
// An update that is under way may finish before the thread is interrupted.
constexpr std::chrono::milliseconds kUpdateTime(50);

double Since(SteadyTime time) {
  return Seconds(RealClock().Now() - time).count();
}

}  // namespace

SyncReplicasChief::SyncReplicasChief(SyncReplicasOps ops, int replicas,
                                     SyncReplicasOptions options)
    : ops_(std::move(ops)),
      replicas_(replicas),
      options_(options),
      required_(replicas) {}

void SyncReplicasChief::Start(const std::shared_ptr<Session>& session,
                              Coordinator& coordinator) {
  {
    MutexLock lock(mu_);
    ended_ = false;
    updating_ = true;
    required_ = replicas_;
    typical_secs_ = 0;
    began_ = acted_ = RealClock().Now();
    said_ = SteadyTime();
  }
  // The coordinator's state outlives its threads; a copy shares it.
  const auto self = shared_from_this();
  const std::string prefix = "QueueRunnerThread-dummy_queue-";
  coordinator.Start(prefix + ops_.update->name(),
                    [self, session, coordinator = coordinator] {
                      absl::Status status;
                      while (!coordinator.ShouldStop() && status.ok()) {
                        status = self->Update(*session);
                      }
                      MutexLock lock(self->mu_);
                      self->updating_ = false;
                      self->stopped_.NotifyAll();
                      return status;
                    });
  coordinator.Start(prefix + "close_on_stop",
                    [self, session, coordinator = coordinator] {
                      self->Watch(*session, coordinator);
                      return absl::OkStatus();
                    });
}

void SyncReplicasChief::TrainingEnded() {
  MutexLock lock(mu_);
  ended_ = true;
}

int SyncReplicasChief::required() const {
  MutexLock lock(mu_);
  return required_;
}

absl::Status SyncReplicasChief::Update(Session& session) {
  std::vector<Session::Feed> feeds;
  if (const int required = this->required(); required != replicas_) {
    for (const Output& input : ops_.required) {
      feeds.emplace_back(input, Tensor::Scalar<int32_t>(required));
    }
  }
  SLUICE_RETURN_IF_ERROR(session.Run(ops_.update, feeds));
  MutexLock lock(mu_);
  typical_secs_ += 0.1 * (Since(began_) - typical_secs_);
  began_ = acted_ = RealClock().Now();
  return absl::OkStatus();
}

void SyncReplicasChief::Watch(Session& session,
                              const Coordinator& coordinator) {
  while (!coordinator.WaitForStop(kLookInterval)) {
    // The training meets an error too, and knows what to do.
    Look(session).IgnoreError();
  }
  // It may wait for gradients that no worker sends any more.
  while (!StoppedWithin(kUpdateTime)) session.Interrupt();
  bool ended;
  {
    MutexLock lock(mu_);
    ended = ended_;
  }
  // Others may be gone already.
  if (ended) session.Run(ops_.close).IgnoreError();
}

bool SyncReplicasChief::StoppedWithin(std::chrono::milliseconds time) {
  const SteadyTime deadline = RealClock().Now() + time;
  MutexLock lock(mu_);
  while (updating_) {
    if (!stopped_.WaitUntil(mu_, deadline)) break;
  }
  return !updating_;
}

absl::Status SyncReplicasChief::Look(Session& session) {
  bool say, act;
  SteadyTime began;
  {
    MutexLock lock(mu_);
    const double late = kLateTimes * typical_secs_;
    say = Since(began_) >= std::max(kLateSecs, late) &&
          Since(said_) >= kAgainSecs;
    act = options_.step_timeout_secs > 0 &&
          Since(acted_) >= std::max(options_.step_timeout_secs, late);
    began = began_;
  }
  if (!say && !act) return absl::OkStatus();
  std::vector<Output> fetches = ops_.counts;
  fetches.push_back(ops_.step);
  std::vector<Tensor> values;
  SLUICE_RETURN_IF_ERROR(session.Run({}, fetches, {}, &values));
  SLUICE_ASSIGN_OR_RETURN(const int64_t step, IntegerOf(values.back()));
  const int required = this->required();
  int32_t fewest = required;
  std::string there;
  for (size_t i = 0; i < ops_.counts.size(); ++i) {
    const int32_t count = values[i].scalar<int32_t>();
    fewest = std::min(fewest, count);
    StrAppend(&there, i == 0 ? "'" : ", '", ops_.names[i], "' has ", count);
  }
  {
    MutexLock lock(mu_);
    if (fewest >= required || began != began_) {
      return absl::OkStatus();  // It moves, or moved.
    }
    said_ = RealClock().Now();
    if (act) acted_ = said_;
  }
  char waited[32];
  std::snprintf(waited, sizeof waited, "%.0f", Since(began));
  const std::string text =
      StrCat("Step ", step, " has waited ", waited, " s for gradients of ",
             required, " workers: ", there, ".", LateTasks(session.target()));
  if (!act) {
    SLUICE_LOG(INFO) << text;
    return absl::OkStatus();
  }
  const int missing = required - fewest;
  SLUICE_LOG(WARNING) << text << " Other workers compute the " << missing
                      << " that are missing.";
  for (int i = 0; i < missing; ++i) {
    SLUICE_RETURN_IF_ERROR(session.Run(ops_.hand_out));
  }
  const int least =
      options_.least_replicas > 0 ? options_.least_replicas : replicas_;
  const int fewer = std::max(least, required - missing);
  if (fewer >= required) return absl::OkStatus();
  SLUICE_LOG(WARNING) << "From now on a step is made of " << fewer
                      << " gradients in place of " << required << ".";
  MutexLock lock(mu_);
  required_ = fewer;
  return absl::OkStatus();
}

void TokenWait::Start(std::string target, Coordinator& coordinator) {
  End();
  coordinator.StartLoop(
      "TokenWait", kLookInterval,
      [self = shared_from_this(), target = std::move(target)] {
        self->Look(target);
        return absl::OkStatus();
      });
}

void TokenWait::Begin() {
  MutexLock lock(mu_);
  began_ = RealClock().Now();
}

void TokenWait::End() {
  MutexLock lock(mu_);
  began_.reset();
}

void TokenWait::Look(const std::string& target) {
  double waited;
  {
    MutexLock lock(mu_);
    if (!began_ || Since(*began_) < kLateSecs || Since(said_) < kAgainSecs) {
      return;
    }
    said_ = RealClock().Now();
    waited = Since(*began_);
  }
  SLUICE_LOG(INFO) << "This worker has waited " << static_cast<int64_t>(waited)
                   << " s for a step of synchronous training."
                   << LateTasks(target);
}

}  // namespace sluice
