// Server: one task of a cluster — a worker and a master on one port.
//
//   ClusterSpec cluster{{"ps", {"localhost:2222"}}, {"worker",
//   {"localhost:2223"}}}; auto server = Server::Create(cluster, "ps", 0);
//   (*server)->Join();
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/base/limits.h"
#include "sluice/rpc/tls.h"
#include "sluice/server/cluster_spec.h"

namespace sluice {

namespace pb {
class ServerDef;
class TaskStatus;
}  // namespace pb

// What a server can be told beside its place in the cluster (docs/security.md).
struct ServerOptions {
  // Empty: what the ServerDef's session config says, else the environment.
  TlsOptions tls = {};
  // None: what SLUICE_LIMITS says.
  std::optional<Limits> limits = {};
  // The folders that ops may touch files in. Empty: those that
  // SLUICE_ALLOW_FILES lists; all if there is none.
  std::vector<std::string> allowed_files = {};
  // Where to listen: a host name or address of this machine; kOwnHost: the one
  // that the cluster names for this task. Empty: what SLUICE_BIND says, else
  // loopback for a task whose host is loopback, and all addresses for others.
  std::string bind = {};
  static constexpr char kOwnHost[] = "own";
};

// Thread-safe. A started server goes on serving when its last handle is
// dropped, until the process ends or Stop is called.
class Server : public std::enable_shared_from_this<Server> {
 public:
  // Binds the port; serves from Start on (which Create calls unless told not
  // to). Calls that come before Start wait for it; as in TensorFlow, sessions
  // of this process need not.
  static absl::StatusOr<std::shared_ptr<Server>> Create(
      const pb::ServerDef& def, bool start = true,
      const ServerOptions& options = {});
  static absl::StatusOr<std::shared_ptr<Server>> Create(
      const ClusterSpec& cluster, const std::string& job, int task,
      const ServerOptions& options = {});
  // A cluster of one task, job "local", on a free port.
  static absl::StatusOr<std::shared_ptr<Server>> CreateLocal();
  ~Server();

  absl::Status Start();
  // Cancels running steps, refuses new ones, frees the port. Then Join returns.
  absl::Status Stop();
  // Blocks until Stop. A server that was never started it stops. On the main
  // thread of a program that does not handle SIGTERM itself, that signal stops
  // the server.
  absl::Status Join();
  // False if `timeout` passed first; for callers that must look at signals.
  bool JoinFor(std::chrono::milliseconds timeout);

  // "grpc://localhost:2222".
  const std::string& target() const;
  const pb::ServerDef& server_def() const;
  // What it does now: server/status.h makes text of it. SIGUSR1 prints that of
  // all servers of a process.
  pb::TaskStatus status() const;

  // The certificates of the started server of this process that has the target;
  // empty if there is none.
  static TlsOptions TlsAt(const std::string& target);

 private:
  struct State;
  // What Stop does, once its caller has said that it goes on.
  void End();
  explicit Server(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

}  // namespace sluice
