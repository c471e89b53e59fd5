// TensorSender: how a task answers RecvTensor.
#pragma once

#include <cstdint>
#include <memory>

#include "sluice/proto/worker.pb.h"
#include "sluice/rpc/generic_server.h"
#include "sluice/rpc/open_transfers.h"
#include "sluice/rpc/recent_ids.h"
#include "sluice/worker/worker.h"

namespace sluice {

// Sends the tensors of the worker's steps: one, several at once, or in chunks
// to those who ask for them so. Thread-safe. Private to rpc/.
class TensorSender : public std::enable_shared_from_this<TensorSender> {
 public:
  TensorSender(std::shared_ptr<Worker> worker,
               std::shared_ptr<OpenTransfers> transfers)
      : worker_(std::move(worker)), transfers_(std::move(transfers)) {}

  // Answers the call, when the step has what is asked for.
  void Send(std::shared_ptr<ServerCall> call,
            const pb::RecvTensorRequest& request);

 private:
  void SendOne(std::shared_ptr<ServerCall> call,
               const pb::RecvTensorRequest& request);
  void SendGroup(std::shared_ptr<ServerCall> call,
                 const pb::RecvTensorRequest& request);
  void SendFirstChunk(ServerCall& call, const pb::RecvTensorRequest& request,
                      const Tensor& tensor, int64_t start);
  void SendNextChunk(ServerCall& call, const pb::RecvTensorRequest& request);
  void DropWith(ServerCall& call, int64_t transfer, int64_t step_id);

  const std::shared_ptr<Worker> worker_;
  const std::shared_ptr<OpenTransfers> transfers_;
  RecentIds ids_;
};

}  // namespace sluice
