// How a Session talks to its master: directly, or through the network. Private
// to session/.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/master/master.h"
#include "sluice/session/session.h"

namespace sluice {

// Keeps the graph as it is.
inline std::unique_lock<std::mutex> LockGraph(const SessionConfig& config) {
  return config.graph_mu == nullptr
             ? std::unique_lock<std::mutex>()
             : std::unique_lock<std::mutex>(*config.graph_mu);
}

// How long closing may take: a dead master or a kernel that does not end must
// not keep a program from ending.
inline int64_t CloseTimeout(int64_t operation_timeout_ms) {
  constexpr int64_t kMostMs = 10000;
  return operation_timeout_ms > 0 ? std::min(operation_timeout_ms, kMostMs)
                                  : kMostMs;
}

// Thread-safe.
class SessionClient {
 public:
  virtual ~SessionClient() = default;
  // Opens the session at first and sends the nodes the master does not know.
  // Blocks while tasks are missing. One thread at a time; others wait, as long
  // as their own options allow.
  virtual absl::Status Sync(const Graph& graph, const RunOptions& options) = 0;
  virtual absl::StatusOr<std::shared_ptr<PreparedStep>> Prepare(
      const StepSignature& signature, const RunOptions& options) = 0;
  virtual absl::StatusOr<std::string> SetUpPartialRun(
      const StepSignature& signature) = 0;
  virtual absl::Status RunPartially(const std::string& name,
                                    PartialRunArgs args) = 0;
  virtual absl::StatusOr<std::vector<DeviceInfo>> ListDevices() = 0;
  // Ends Sync and running steps of other threads, then the session. Gives up
  // after CloseTimeout, with a warning.
  virtual absl::Status Close() = 0;
  virtual void Interrupt() = 0;
};

// For a master of this process; the client keeps it alive.
std::unique_ptr<SessionClient> MakeDirectClient(std::shared_ptr<Master> master,
                                                const SessionConfig& config);
// For a master in another process.
absl::StatusOr<std::unique_ptr<SessionClient>> MakeRemoteClient(
    const SessionConfig& config);

// What Session::Reset does with them.
absl::Status ResetDirectly(Master& master, const SessionConfig& config,
                           const std::vector<std::string>& containers);
absl::Status ResetRemotely(const SessionConfig& config,
                           const std::vector<std::string>& containers);

}  // namespace sluice
