// LaneServer: the listening end of lanes. Private to rpc/.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "sluice/rpc/generic_server.h"

namespace sluice {

class LaneServer {
 public:
  // Serves the lane of that name on this machine as `options` say of a gRPC
  // server.
  static absl::StatusOr<std::unique_ptr<LaneServer>> Start(
      const GenericServer::Options& options);
  ~LaneServer();  // Shutdown.

  // Cancels open calls. No handler runs when it returns.
  void Shutdown();

 private:
  class Served;
  class Call;
  class Listener;
  explicit LaneServer(std::shared_ptr<Listener> listener);
  const std::shared_ptr<Listener> listener_;
};

}  // namespace sluice
