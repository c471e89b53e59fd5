#include "sluice/rpc/prepare_grpc.h"

#include <malloc.h>

#include <cstdlib>

#include "absl/synchronization/mutex.h"
#include "sluice/rpc/grpc_log.h"

namespace sluice {
namespace {

// gRPC receives into fresh memory of up to 4 MB a piece. By default the memory
// goes back to the system each time a message is done with, and each page of
// the next message costs a fault.
void KeepReceivedMemory() {
#ifdef __GLIBC__
  if (getenv("MALLOC_TRIM_THRESHOLD_") != nullptr) return;  // The user's word.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
  // Also what an arena of a thread keeps before it gives a part back.
  mallopt(M_TOP_PAD, 64 << 20);
#endif
}

}  // namespace

void PrepareGrpc() {
  TakeOverGrpcLog();
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  KeepReceivedMemory();
}

}  // namespace sluice
