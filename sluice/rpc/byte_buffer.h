// Messages as gRPC byte buffers. Private to rpc/.
#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/status/status.h"
#include "sluice/tensor/tensor.h"

namespace sluice {

grpc::ByteBuffer ToByteBuffer(const google::protobuf::MessageLite& message);
// False if the bytes are not such a message.
bool FromByteBuffer(grpc::ByteBuffer* buffer,
                    google::protobuf::MessageLite* message);

grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

// A RecvTensorResponse whose tensor bytes are the tensor's own memory, in the
// layout TensorFlow writes (docs/protocol).
grpc::ByteBuffer EncodeRecvTensor(const Tensor& tensor, bool dead,
                                  int64_t send_start_micros);
struct ReceivedTensor {
  Tensor tensor;
  bool dead = false;
  int64_t send_start_micros = 0;
  bool require_ack = false;
};
// Copies the bytes once, into pooled memory.
absl::StatusOr<ReceivedTensor> DecodeRecvTensor(grpc::ByteBuffer* buffer);

}  // namespace sluice
