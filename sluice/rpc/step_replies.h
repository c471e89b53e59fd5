// StepReplies: a step that is asked for twice, because the first answer got
// lost on its way, runs once and is answered twice.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "sluice/base/clock.h"
#include "sluice/base/mutex.h"
#include "sluice/rpc/generic_server.h"

namespace sluice {

class StepAudience;

// Whether the client of a session has another call open that belongs to it. May
// be empty: nobody knows.
using HoldsSession = std::function<bool(const std::string& handle)>;

// How long answers are kept, and how many.
struct RepliesKept {
  // How long a client may be away that lost its connection.
  std::chrono::milliseconds grace = std::chrono::seconds(5);
  std::chrono::milliseconds time = std::chrono::seconds(60);
  // With what it costs to keep them. The oldest go first.
  size_t total_bytes = size_t{64} << 20;
  // A client waits for few steps of a session at a time, and comes back for no
  // others.
  size_t session_bytes = size_t{20} << 20;
  // A larger answer is not kept: who asks for it again is told so.
  size_t largest = size_t{16} << 20;
};

// The audiences of steps, by session and request id: of those that run, and of
// those that were answered not long ago. Thread-safe.
class AudienceTable : public std::enable_shared_from_this<AudienceTable> {
 public:
  AudienceTable(const RepliesKept& kept, HoldsSession holds)
      : limits_(kept), holds_(std::move(holds)) {}

  struct Session;
  std::shared_ptr<StepAudience> FindOrAdd(std::string_view session,
                                          int64_t request_id, uint64_t content,
                                          bool* first);
  // The answer has `bytes`; the audience may go when it is old, or others need
  // its place.
  void Answered(const std::weak_ptr<Session>& session, int64_t request_id,
                size_t bytes);
  void Forget(std::string_view session);
  bool IsHeld(const std::weak_ptr<Session>& session) const;

 private:
  struct Kept {
    Session* session;  // In the table.
    int64_t request_id;
    size_t bytes;
    SteadyTime until;
  };
  // What is dropped under the lock dies after it.
  using Dropped = std::vector<std::shared_ptr<StepAudience>>;

  void Drop(std::list<Kept>::iterator kept, Dropped* dropped)
      SLUICE_REQUIRES(mu_);
  void DropOld(SteadyTime now, Dropped* dropped) SLUICE_REQUIRES(mu_);
  void DropOldAfter(std::chrono::nanoseconds delay);

  const RepliesKept limits_;
  const HoldsSession holds_;
  Mutex mu_;
  absl::flat_hash_map<std::string, std::shared_ptr<Session>> sessions_
      SLUICE_GUARDED_BY(mu_);
  std::list<Kept> kept_ SLUICE_GUARDED_BY(mu_);  // The oldest first.
  size_t bytes_ SLUICE_GUARDED_BY(mu_) = 0;
  bool timer_set_ SLUICE_GUARDED_BY(mu_) = false;
};

// Those who wait for one step, and later its answer. Thread-safe.
class StepAudience : public std::enable_shared_from_this<StepAudience> {
 public:
  // Of a request that is not remembered.
  explicit StepAudience(const RepliesKept& kept) : kept_(kept) {}
  // `table` hears of the answer to the request, of which `content` is a hash.
  StepAudience(const RepliesKept& kept,
               const std::shared_ptr<AudienceTable>& table,
               const std::shared_ptr<AudienceTable::Session>& session,
               int64_t request_id, uint64_t content)
      : kept_(kept),
        table_(table),
        session_(session),
        request_id_(request_id),
        content_(content) {}

  uint64_t content() const { return content_; }
  // Answers `call` with the others, or at once if the answer is there.
  void Join(std::shared_ptr<ServerCall> call);
  // Calls `cancel` if all clients go away for good before the answer; at once
  // if they have gone.
  void OnAbandoned(absl::AnyInvocable<void()> cancel);
  // When the step is over. The first answer counts.
  void Reply(grpc::ByteBuffer reply);
  void Fail(const absl::Status& status);

 private:
  void Leave(const ServerCall* call);
  bool ClientIsThere() const;
  // If nobody came since so many had.
  void AbandonIfAlone(int64_t joined);
  void Answer(grpc::ByteBuffer reply, absl::Status error);

  const RepliesKept kept_;
  const std::weak_ptr<AudienceTable> table_;
  const std::weak_ptr<AudienceTable::Session> session_;
  const int64_t request_id_ = 0;
  const uint64_t content_ = 0;
  Mutex mu_;
  std::vector<std::shared_ptr<ServerCall>> calls_ SLUICE_GUARDED_BY(mu_);
  int64_t joined_ SLUICE_GUARDED_BY(mu_) = 0;  // How many calls ever did.
  absl::AnyInvocable<void()> cancel_ SLUICE_GUARDED_BY(mu_);
  bool abandoned_ SLUICE_GUARDED_BY(mu_) = false;
  bool answered_ SLUICE_GUARDED_BY(mu_) = false;
  grpc::ByteBuffer reply_ SLUICE_GUARDED_BY(mu_);
  absl::Status error_ SLUICE_GUARDED_BY(mu_);
};

// Thread-safe.
class StepReplies {
 public:
  explicit StepReplies(const RepliesKept& kept = {}, HoldsSession holds = {})
      : kept_(kept),
        table_(std::make_shared<AudienceTable>(kept, std::move(holds))) {}

  struct Found {
    // Null if the id was used in the session for another request.
    std::shared_ptr<StepAudience> audience;
    bool first;  // Nobody runs the step yet.
  };
  // `content` is a hash of what the request asks for. An id of 0 is not
  // remembered.
  Found FindOrAdd(std::string_view session, int64_t request_id,
                  uint64_t content);
  // The session is closed. Who waits for its steps still gets their answers.
  void Forget(std::string_view session) { table_->Forget(session); }

 private:
  const RepliesKept kept_;
  const std::shared_ptr<AudienceTable> table_;
};

}  // namespace sluice
