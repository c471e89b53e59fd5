// RequestTensors: the tensors that come with one request.
#pragma once

#include "absl/status/statusor.h"
#include "sluice/base/limits.h"
#include "sluice/base/status.h"
#include "sluice/tensor/codec.h"

namespace sluice {

// A value that repeats takes few bytes in a message and many in memory; so does
// a short string or a handle. Therefore the tensors of a request are together
// held to the limit of its own length. Thread-compatible.
class RequestTensors {
 public:
  explicit RequestTensors(const Limits& limits) : most_(limits.message_bytes) {}

  // `proto` is left in no particular state.
  absl::StatusOr<Tensor> Read(pb::TensorProto&& proto) {
    SLUICE_ASSIGN_OR_RETURN(const int64_t bytes, BytesBeyondContent(proto));
    bytes_ += bytes;
    if (bytes_ > most_) {
      return OverLimit(StrCat("a request with tensors of ", bytes_, " bytes"),
                       "message_bytes", most_);
    }
    return TensorFromProto(std::move(proto));
  }

 private:
  const int64_t most_;
  int64_t bytes_ = 0;
};

}  // namespace sluice
