#include "sluice/rpc/prepare_grpc.h"

#include "absl/synchronization/mutex.h"
#include "sluice/rpc/grpc_log.h"

namespace sluice {

void PrepareGrpc() {
  TakeOverGrpcLog();
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

}  // namespace sluice
