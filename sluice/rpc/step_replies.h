// StepReplies: a step that is asked for twice, because the first answer got
// lost on its way, runs once and is answered twice.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "sluice/base/mutex.h"
#include "sluice/rpc/generic_server.h"

namespace sluice {

// Those who wait for one step, and later its answer. Thread-safe.
class StepAudience : public std::enable_shared_from_this<StepAudience> {
 public:
  // `grace` is how long a client may be away that lost its connection.
  explicit StepAudience(std::chrono::milliseconds grace) : grace_(grace) {}
  // Answers `call` with the others, or at once if the answer is there.
  void Join(std::shared_ptr<ServerCall> call);
  // Calls `cancel` if all clients go away for good before the answer; at once
  // if they have gone.
  void OnAbandoned(absl::AnyInvocable<void()> cancel);
  // Once, when the step is over.
  void Reply(grpc::ByteBuffer reply);
  void Fail(const absl::Status& status);

 private:
  void Leave(const ServerCall* call);
  void AbandonIfAlone();
  void Answer();

  const std::chrono::milliseconds grace_;
  Mutex mu_;
  std::vector<std::shared_ptr<ServerCall>> calls_ SLUICE_GUARDED_BY(mu_);
  absl::AnyInvocable<void()> cancel_ SLUICE_GUARDED_BY(mu_);
  bool abandoned_ SLUICE_GUARDED_BY(mu_) = false;
  bool answered_ SLUICE_GUARDED_BY(mu_) = false;
  grpc::ByteBuffer reply_ SLUICE_GUARDED_BY(mu_);
  absl::Status error_ SLUICE_GUARDED_BY(mu_);
};

// The audiences of the last steps, by request id. Thread-safe.
class StepReplies {
 public:
  explicit StepReplies(
      std::chrono::milliseconds grace = std::chrono::seconds(1))
      : grace_(grace) {}

  struct Found {
    std::shared_ptr<StepAudience> audience;
    bool first;  // Nobody runs the step yet.
  };
  // An id of 0 is not remembered.
  Found FindOrAdd(int64_t request_id);

 private:
  const std::chrono::milliseconds grace_;
  Mutex mu_;
  absl::flat_hash_map<int64_t, std::shared_ptr<StepAudience>> audiences_
      SLUICE_GUARDED_BY(mu_);
  std::deque<int64_t> order_ SLUICE_GUARDED_BY(mu_);
};

}  // namespace sluice
