#include "sluice/rpc/tensor_sender.h"

#include <algorithm>
#include <string>
#include <vector>

#include "sluice/base/simulation.h"
#include "sluice/base/status.h"
#include "sluice/rpc/answer.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/tensor/codec.h"

namespace sluice {
namespace {

using CallPtr = std::shared_ptr<ServerCall>;

size_t ChunkOf(const pb::RecvTensorRequest& request) {
  return static_cast<size_t>(
      std::clamp<int64_t>(request.sluice_chunk_bytes(), 0, 1 << 30));
}

bool ComesInChunks(const pb::RecvTensorRequest& request, const Parcel& parcel) {
  const size_t chunk = ChunkOf(request);
  return chunk > 0 && request.request_id() != 0 && !parcel.dead &&
         ElementSize(parcel.tensor.dtype()) != 0 &&
         parcel.tensor.bytes() > chunk;
}

// A receiver that is gone has failed, and its step with it.
void AbandonStep(Worker& worker, int64_t step_id) {
  worker.AbortStep(step_id,
                   Derived(Cancelled("A receiver of the step went away")));
}

pb::RecvTensorResponse GroupToProto(const std::vector<Parcel>& parcels) {
  pb::RecvTensorResponse response;
  response.set_send_start_micros(TheClock().WallMicros());
  for (size_t i = 0; i < parcels.size(); ++i) {
    pb::RecvTensorResponse* one =
        i == 0 ? &response : response.add_sluice_more();
    one->set_is_dead(parcels[i].dead);
    if (!parcels[i].dead) {
      TensorToProto(parcels[i].tensor, one->mutable_tensor());
    }
  }
  return response;
}

}  // namespace

void TensorSender::Send(CallPtr call, const pb::RecvTensorRequest& request) {
  if (request.sluice_transfer() != 0) {
    SendNextChunk(*call, request);
    return;
  }
  if (!ids_.Add(request.request_id())) {
    call->Fail(
        Aborted("The same RecvTensor (WorkerServiceImpl) request was "
                "received twice. Request ",
                request.request_id(), " of step ", request.step_id(), " and ",
                request.rendezvous_key()));
    return;
  }
  call->OnCancel([worker = worker_, step_id = request.step_id()] {
    AbandonStep(*worker, step_id);
  });
  if (request.sluice_more_key_size() > 0) {
    SendGroup(std::move(call), request);
  } else {
    SendOne(std::move(call), request);
  }
}

void TensorSender::SendOne(CallPtr call, const pb::RecvTensorRequest& request) {
  worker_->RecvTensor(
      request.step_id(), request.rendezvous_key(),
      [self = shared_from_this(), call = std::move(call),
       request](absl::StatusOr<Parcel> parcel) {
        const int64_t start = TheClock().WallMicros();
        if (!parcel.ok()) {
          call->Fail(parcel.status());
        } else if (ComesInChunks(request, *parcel)) {
          self->SendFirstChunk(*call, request, parcel->tensor, start);
        } else {
          Answer(*call, EncodeRecvTensor(parcel->tensor, parcel->dead, start));
        }
      });
}

void TensorSender::SendGroup(CallPtr call,
                             const pb::RecvTensorRequest& request) {
  std::vector<std::string> keys = {request.rendezvous_key()};
  keys.insert(keys.end(), request.sluice_more_key().begin(),
              request.sluice_more_key().end());
  worker_->RecvTensors(
      request.step_id(), keys,
      [call = std::move(call)](absl::StatusOr<std::vector<Parcel>> parcels) {
        if (parcels.ok()) {
          Answer(*call, GroupToProto(*parcels));
        } else {
          call->Fail(parcels.status());
        }
      });
}

void TensorSender::SendFirstChunk(ServerCall& call,
                                  const pb::RecvTensorRequest& request,
                                  const Tensor& tensor, int64_t start) {
  const size_t size = ChunkOf(request);
  transfers_->Add(request.request_id(), request.step_id(), tensor, size);
  // Nobody comes for the rest of a step that has ended meanwhile.
  if (worker_->IsOver(request.step_id())) {
    transfers_->Forget(request.step_id());
  }
  DropWith(call, request.request_id(), request.step_id());
  call.Reply(EncodeTensorChunk(tensor, 0, size, start));
}

void TensorSender::SendNextChunk(ServerCall& call,
                                 const pb::RecvTensorRequest& request) {
  const auto offset =
      static_cast<size_t>(std::max<int64_t>(0, request.sluice_offset()));
  auto chunk =
      transfers_->Take(request.sluice_transfer(), offset, ChunkOf(request));
  if (!chunk.ok()) {
    call.Fail(chunk.status());
    return;
  }
  DropWith(call, request.sluice_transfer(), request.step_id());
  // The first chunk says more; it came with the first answer.
  call.Reply(EncodeTensorChunk(chunk->tensor, offset, chunk->size, 0));
}

// Drops the rest of a transfer when the receiver of a chunk goes away, and ends
// its step, as the first call does.
void TensorSender::DropWith(ServerCall& call, int64_t transfer,
                            int64_t step_id) {
  call.OnCancel([transfers = transfers_, worker = worker_, transfer, step_id] {
    transfers->Drop(transfer);
    AbandonStep(*worker, step_id);
  });
}

}  // namespace sluice
