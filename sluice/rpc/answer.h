// How a service answers a call with a message. Private to rpc/.
#pragma once

#include "sluice/base/blocking_pool.h"
#include "sluice/base/status.h"
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

// With what `encode` returns, which may need more memory than there is.
template <typename Encode>
void AnswerInMemory(ServerCall& call, Encode encode) {
  absl::StatusOr<grpc::ByteBuffer> bytes;
  try {
    bytes = encode();
  } catch (const std::bad_alloc&) {
    bytes = ResourceExhausted("Out of memory while writing an answer");
  }
  Answer(call, std::move(bytes));
}

inline void FailForMemory(ServerCall& call) {
  call.Fail(ResourceExhausted("Out of memory while reading a request"));
}

// Calls `task`, which answers `call` at its end: a request that takes more
// memory than there is must not end the server.
template <typename Task>
void RunInMemory(ServerCall& call, Task&& task) {
  try {
    task();
  } catch (const std::bad_alloc&) {
    FailForMemory(call);
  }
}

// The same by RunBlocking.
template <typename Task>
void RunBlockingFor(std::shared_ptr<ServerCall> call, Task task) {
  RunBlocking([call = std::move(call), task = std::move(task)]() mutable {
    RunInMemory(*call, task);
  });
}

}  // namespace sluice
