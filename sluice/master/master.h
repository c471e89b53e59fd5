// Master: the session service of one task. rpc/ serves it to other processes;
// sessions of this process call it directly.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/master/session.h"

namespace sluice {

// Thread-safe.
class Master {
 public:
  Master(MasterEnv env, SessionOptions defaults);
  ~Master();

  // Opens a session and remembers it by its handle. `options` are the client's;
  // the server's own are behind them.
  void CreateSession(SessionOptions options,
                     std::shared_ptr<Cancellation> cancellation,
                     MasterSession::CreateDone done);
  // ABORTED if there is none: it is how clients notice a restart.
  absl::StatusOr<std::shared_ptr<MasterSession>> FindSession(
      std::string_view handle);
  void CloseSession(std::string_view handle, const absl::Status& why,
                    MasterSession::Done done);
  // Closes every session, also those being opened; later ones are refused.
  void Shutdown();
  // Closes every session and clears containers on the workers that
  // `device_filters` leave. One that cannot be reached is an error, but the
  // others are cleared.
  void Reset(const std::vector<std::string>& containers,
             const std::vector<std::string>& device_filters,
             MasterSession::Done done);
  // All devices of all tasks; waits for none longer than it takes to answer.
  void ListDevices(WorkerInterface::StatusDone done);

  const MasterEnv& env() const;
  int num_sessions() const;
  // The open sessions, oldest first.
  std::vector<MasterSession::Info> ListSessions() const;

 private:
  struct State;
  // Shared with calls that are under way, which may outlive the master.
  const std::shared_ptr<State> state_;
};

// The masters of this process by target ("grpc://localhost:2222"), so that a
// session on its own server skips the network. Thread-safe.
void AddLocalMaster(const std::string& target, std::weak_ptr<Master> master);
std::shared_ptr<Master> FindLocalMaster(const std::string& target);
// Only if `master` is the one found there: a server that is gone may share its
// target with the one that followed it.
void RemoveLocalMaster(const std::string& target,
                       const std::shared_ptr<Master>& master);

// A master over one worker of its own, for sessions without a server.
std::shared_ptr<Master> MakePrivateMaster(const SessionOptions& options);

}  // namespace sluice
