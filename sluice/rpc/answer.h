// How a service answers a call with a message. Private to rpc/.
#pragma once

#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/generic_server.h"

namespace sluice {

// With the bytes, or with the error.
inline void Answer(ServerCall& call,
                   absl::StatusOr<grpc::ByteBuffer> response) {
  if (response.ok()) {
    call.Reply(*std::move(response));
  } else {
    call.Fail(response.status());
  }
}

inline void Answer(ServerCall& call,
                   const google::protobuf::MessageLite& response) {
  Answer(call, ToByteBuffer(response));
}

inline void Answer(ServerCall& call, const absl::Status& status,
                   const google::protobuf::MessageLite& response) {
  if (status.ok()) {
    Answer(call, response);
  } else {
    call.Fail(status);
  }
}

}  // namespace sluice
