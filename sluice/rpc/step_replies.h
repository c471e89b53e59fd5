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
#include "absl/functional/function_ref.h"
#include "sluice/base/mutex.h"
#include "sluice/rpc/generic_server.h"

namespace sluice {

class StepAudience;

// The audiences of steps, by request id: of those that run, and of the last
// ones that were answered. Thread-safe.
class AudienceTable {
 public:
  struct Found {
    std::shared_ptr<StepAudience> audience;
    bool first;  // Nobody runs the step yet.
  };
  Found FindOrAdd(int64_t request_id,
                  absl::FunctionRef<std::shared_ptr<StepAudience>()> make);
  // The step was answered: it may go when others have been, too.
  void Answered(int64_t request_id);

 private:
  Mutex mu_;
  absl::flat_hash_map<int64_t, std::shared_ptr<StepAudience>> audiences_
      SLUICE_GUARDED_BY(mu_);
  std::deque<int64_t> answered_ SLUICE_GUARDED_BY(mu_);
};

// Those who wait for one step, and later its answer. Thread-safe.
class StepAudience : public std::enable_shared_from_this<StepAudience> {
 public:
  // `grace` is how long a client may be away that lost its connection.
  // `table`, which may be null, hears of the answer to `request_id`.
  explicit StepAudience(std::chrono::milliseconds grace,
                        const std::shared_ptr<AudienceTable>& table = nullptr,
                        int64_t request_id = 0)
      : grace_(grace), table_(table), request_id_(request_id) {}
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
  const std::weak_ptr<AudienceTable> table_;
  const int64_t request_id_;
  Mutex mu_;
  std::vector<std::shared_ptr<ServerCall>> calls_ SLUICE_GUARDED_BY(mu_);
  absl::AnyInvocable<void()> cancel_ SLUICE_GUARDED_BY(mu_);
  bool abandoned_ SLUICE_GUARDED_BY(mu_) = false;
  bool answered_ SLUICE_GUARDED_BY(mu_) = false;
  grpc::ByteBuffer reply_ SLUICE_GUARDED_BY(mu_);
  absl::Status error_ SLUICE_GUARDED_BY(mu_);
};

// Thread-safe.
class StepReplies {
 public:
  explicit StepReplies(
      std::chrono::milliseconds grace = std::chrono::seconds(1))
      : grace_(grace) {}

  using Found = AudienceTable::Found;
  // An id of 0 is not remembered.
  Found FindOrAdd(int64_t request_id);

 private:
  const std::chrono::milliseconds grace_;
  const std::shared_ptr<AudienceTable> table_ =
      std::make_shared<AudienceTable>();
};

}  // namespace sluice
