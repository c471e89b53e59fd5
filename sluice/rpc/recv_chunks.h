// The receiving end of a tensor that comes in chunks. Private to rpc/.
#pragma once

#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "sluice/proto/worker.pb.h"
#include "sluice/rpc/client_call.h"
#include "sluice/tensor/tensor.h"

namespace sluice {

// What a tensor may have to come in one piece by gRPC.
size_t ChunkBytes();
// Returns what it was.
size_t SetChunkBytesForTest(size_t bytes);

// Fetches what is missing of `tensor`, whose first `received` bytes `first` has
// brought, and hands it to `done`. `cancellation` must live until then.
void RecvChunks(std::shared_ptr<RpcChannel> channel,
                const pb::RecvTensorRequest& first, Tensor tensor,
                size_t received, Cancellation* cancellation,
                absl::AnyInvocable<void(absl::StatusOr<Tensor>)> done);

}  // namespace sluice
