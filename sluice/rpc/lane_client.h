// LaneClient: the calling end of a lane. Private to rpc/.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "sluice/rpc/client_call.h"
#include "sluice/rpc/lane_connection.h"
#include "sluice/tensor/shared_arena.h"

namespace sluice {

// Thread-safe.
class LaneClient : public LaneConnection {
 public:
  // Gets the lane when the peer has said hello, or why it did not.
  using Ready =
      absl::AnyInvocable<void(absl::StatusOr<std::shared_ptr<LaneClient>>)>;
  // Connects to the lane of that name on this machine (ConnectLane has the
  // errors). `ready` is called once.
  static void Connect(const std::string& name, Ready ready);

  LaneClient(int fd, Ready ready);

  // As RpcChannel's. False, and `done` is untouched, if the lane is over or the
  // server takes no more calls by it.
  bool Call(const char* path, const grpc::ByteBuffer& request,
            const RpcChannel::Options& options, RpcChannel::Done& done);
  // No more calls; it ends with the last one that is open, and the last loan.
  void Release();
  // When the server last answered; the clock's beginning, if it never did.
  SteadyTime last_answer() const {
    return last_answer_.load(std::memory_order_relaxed);
  }

 private:
  struct OpenCall {
    RpcChannel::Done done;
    Landing* landing = nullptr;
    bool lands = false;      // The landing is in use.
    absl::Status cancelled;  // Why, if that happened while it was.
    Cancellation* cancellation = nullptr;
    Cancellation::Token token = Cancellation::kNone;
    CallCounters::Counts* counts = nullptr;
    std::optional<SteadyTime> deadline;
  };
  std::shared_ptr<LaneClient> self() {
    return std::static_pointer_cast<LaneClient>(shared_from_this());
  }

  // Ends a call before its answer. Sooner or later, if its landing is in use.
  void Cancel(uint64_t id, const absl::Status& why);
  // Sees to deadlines: by a timer at that time, or an earlier one.
  void CheckDeadlinesAt(SteadyTime time);
  void CheckDeadlines(SteadyTime timer);
  // The call is open no more. It must be there.
  OpenCall Remove(uint64_t id) SLUICE_REQUIRES(mu_);
  void Deliver(OpenCall call, absl::Status status,
               const grpc::ByteBuffer& payload);
  // Of an answer whose tail is lent: the tail, which is returned when it is
  // dropped.
  struct Loan;
  absl::StatusOr<grpc::Slice> LentTail(const LaneHeader& header);
  void Return(uint64_t loan);
  void HangUpIfUnused();

  void* Place(const LaneHeader& header, const grpc::Slice& lead) override;
  absl::Status OnMessage(LaneMessage message) override;
  void OnClosed(const absl::Status& why) override;
  bool Waits() const override;
  std::chrono::milliseconds hello_patience() const override;

  // Of the loop's thread.
  Ready ready_;
  std::shared_ptr<const MappedArena> arena_;  // The server's.

  std::atomic<SteadyTime> last_answer_{SteadyTime()};

  mutable Mutex mu_;
  uint64_t next_ SLUICE_GUARDED_BY(mu_) = 1;
  uint64_t most_calls_ SLUICE_GUARDED_BY(mu_) = 0;  // As the server said.
  bool over_ SLUICE_GUARDED_BY(mu_) = false;        // Takes no more calls.
  absl::flat_hash_map<uint64_t, OpenCall> calls_ SLUICE_GUARDED_BY(mu_);
  // Which the server has not answered yet: they are open for it.
  absl::flat_hash_set<uint64_t> cancelled_ SLUICE_GUARDED_BY(mu_);
  std::set<std::pair<SteadyTime, uint64_t>> deadlines_ SLUICE_GUARDED_BY(mu_);
  // When timers look at them. A timer cannot be taken back, so it is left where
  // it is when an earlier one is needed, and not made a second time.
  std::set<SteadyTime> timers_ SLUICE_GUARDED_BY(mu_);
  int64_t loans_ SLUICE_GUARDED_BY(mu_) = 0;  // Not returned.
};

}  // namespace sluice
