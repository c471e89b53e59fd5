// SessionUses: the sessions that processes elsewhere have on this task, so that
// those of processes that are gone can be ended.
//
// A process of ours *holds* its session: it leaves one call open, and when that
// call breaks the session is collected after a while in which nobody came back
// or used it. TensorFlow's clients hold nothing. Their sessions go when nobody
// used them for long and their connection is gone too: it alone proves nothing,
// as newer gRPC closes the connections of clients that are idle.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "sluice/base/clock.h"
#include "sluice/base/mutex.h"
#include "sluice/rpc/generic_server.h"

namespace sluice {

// One session. Thread-safe.
class SessionUse {
 public:
  // `end` closes the session; called at most once, by SessionUses::Collect.
  SessionUse(std::string handle, std::string client, std::function<void()> end)
      : handle_(std::move(handle)),
        client_(std::move(client)),
        end_(std::move(end)) {}

  const std::string& handle() const { return handle_; }
  const std::string& client() const { return client_; }
  SteadyTime opened() const { return opened_; }
  SteadyTime last_use() const {
    return last_use_.load(std::memory_order_relaxed);
  }
  void Touch(SteadyTime time = CoarseNow()) {
    last_use_.store(time, std::memory_order_relaxed);
  }

  // Steps that run in it.
  void BeginStep(int64_t id);
  void EndStep(int64_t id);
  struct RunningStep {
    int64_t id;
    SteadyTime since;
  };
  std::vector<RunningStep> ListSteps() const;
  bool held() const;

 private:
  friend class SessionUses;
  void Hold(std::shared_ptr<ServerCall> call);
  void Release(const ServerCall* call);
  std::vector<std::shared_ptr<ServerCall>> TakeHolders();

  const std::string handle_;
  const std::string client_;
  const SteadyTime opened_ = CoarseNow();
  const std::function<void()> end_;
  std::atomic<SteadyTime> last_use_{opened_};
  mutable Mutex mu_;
  absl::flat_hash_map<int64_t, SteadyTime> steps_ SLUICE_GUARDED_BY(mu_);
  absl::flat_hash_set<std::shared_ptr<ServerCall>> holders_
      SLUICE_GUARDED_BY(mu_);
  bool was_held_ SLUICE_GUARDED_BY(mu_) = false;
  SteadyTime released_ SLUICE_GUARDED_BY(mu_);
  bool closed_ SLUICE_GUARDED_BY(mu_) = false;
};

// Thread-safe.
class SessionUses {
 public:
  struct Limits {
    // How long a session that was held waits for its holder to come back, or to
    // use it.
    std::chrono::milliseconds released = std::chrono::minutes(2);
    // How long a session that never was must be unused.
    std::chrono::milliseconds unused = std::chrono::hours(24);
  };

  // `client` is the peer as gRPC names it, "ipv4:10.0.0.1:4711".
  std::shared_ptr<SessionUse> Add(const std::string& handle, std::string client,
                                  std::function<void()> end);
  std::shared_ptr<SessionUse> Find(std::string_view handle) const;
  // The session was closed; its holders hear that.
  void Remove(std::string_view handle);
  std::vector<std::shared_ptr<SessionUse>> List() const;

  // Leaves `call` open as long as the session is; false if there is none.
  bool Hold(std::string_view handle, std::shared_ptr<ServerCall> call);

  // Ends the sessions whose process is gone. `connected` says whether a client
  // still has a connection.
  void Collect(const Limits& limits, SteadyTime now,
               const std::function<bool(const std::string&)>& connected);

 private:
  mutable Mutex mu_;
  absl::flat_hash_map<std::string, std::shared_ptr<SessionUse>> uses_
      SLUICE_GUARDED_BY(mu_);
};

// The processes that have a connection to this one, as gRPC names them.
absl::flat_hash_set<std::string> ConnectedPeers();

}  // namespace sluice
