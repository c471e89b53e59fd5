// Messages as gRPC byte buffers. Private to rpc/.
#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/byte_buffer.h>

#include <climits>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/rpc/client_call.h"
#include "sluice/tensor/tensor.h"

namespace sluice {

// What protobuf can write and read in one piece.
inline constexpr size_t kMaxMessageBytes = INT_MAX;

// INVALID_ARGUMENT if the message is too large for one piece.
absl::StatusOr<grpc::ByteBuffer> ToByteBuffer(
    const google::protobuf::MessageLite& message);
// False if the bytes are not such a message.
bool FromByteBuffer(grpc::ByteBuffer* buffer,
                    google::protobuf::MessageLite* message);

// The text is cut where it would not fit the header it travels in: that of a
// peer of ours, or of any.
grpc::Status ToGrpc(const absl::Status& status, bool to_our_own = false);
absl::Status FromGrpc(const grpc::Status& status);

// A RecvTensorResponse whose tensor bytes are the tensor's own memory, in the
// layout TensorFlow writes (docs/protocol).
absl::StatusOr<grpc::ByteBuffer> EncodeRecvTensor(const Tensor& tensor,
                                                  bool dead,
                                                  int64_t send_start_micros);
// `size` bytes of the tensor from `offset` on; the first chunk also says what
// the tensor is. For types of fixed size.
grpc::ByteBuffer EncodeTensorChunk(const Tensor& tensor, size_t offset,
                                   size_t size, int64_t send_start_micros);
struct ReceivedTensor {
  Tensor tensor;
  bool dead = false;
  int64_t send_start_micros = 0;
  bool require_ack = false;
  // The bytes of `tensor` that have come, if it comes in chunks.
  std::optional<size_t> chunk;
};
// Copies the bytes once, into pooled memory.
absl::StatusOr<ReceivedTensor> DecodeRecvTensor(grpc::ByteBuffer* buffer);
// Copies a further chunk of a tensor of `total` bytes, which must be `size`
// bytes, to `to`.
absl::Status DecodeTensorChunk(grpc::ByteBuffer* buffer, size_t total,
                               size_t size, void* to);

// Makes the tensor when its first bytes come, so that the others are put into
// it while they arrive.
class TensorLanding : public Landing {
 public:
  void* Place(std::string_view lead, size_t size) override;
  bool Borrow(std::string_view lead, const grpc::Slice& tail) override;
  // As DecodeRecvTensor, of the call's answer.
  absl::StatusOr<ReceivedTensor> Take(grpc::ByteBuffer* answer);

 private:
  std::optional<ReceivedTensor> received_;
};

// The same for a further chunk of `size` of `total` bytes, which goes to `to`.
class ChunkLanding : public Landing {
 public:
  ChunkLanding(size_t total, size_t size, void* to)
      : total_(total), size_(size), to_(to) {}
  void* Place(std::string_view lead, size_t size) override;
  // As DecodeTensorChunk.
  absl::Status Take(grpc::ByteBuffer* answer);

 private:
  const size_t total_;
  const size_t size_;
  void* const to_;
  bool placed_ = false;
};

}  // namespace sluice
