// Moving the tensors of one task's part of a checkpoint to or from the task
// that owns the checkpoint directory, when the two share no disk.
//
// Both ends know each other by tickets, strings that travel over ordinary
// edges. The sender puts a header and then pieces of the tensors under keys
// that follow from the tickets into the step's rendezvous, and the receiver
// takes them in batches, so neither end ever holds more than it must.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/kernel/kernel.h"

namespace sluice {

// A tensor on its way.
struct StreamedTensor {
  std::string name;
  std::string shape_and_slice;
  DType dtype = DType::kInvalid;
  Shape shape;
  int64_t bytes() const {
    return shape.size() * static_cast<int64_t>(ElementSize(dtype));
  }
};

// Who takes part, for one direction and one step.
class StreamKeys {
 public:
  // A ticket of the device that `ctx` runs on; never the same twice.
  static std::string NewTicket(const KernelContext& ctx);
  static absl::StatusOr<StreamKeys> Create(const std::string& from,
                                           const std::string& to);
  std::string Header() const { return ToReceiver("header"); }
  std::string Piece(int64_t i) const { return ToReceiver(std::to_string(i)); }
  // Sent back by the receiver: batch i is no longer needed.
  std::string Taken(int64_t i) const;
  const std::string& sender() const { return from_device_; }

 private:
  std::string ToReceiver(const std::string& what) const;

  std::string from_device_, to_device_, id_;
  uint64_t from_incarnation_ = 0, to_incarnation_ = 0;
};

// How tensors are cut. Both ends make the same plan of the same header.
struct StreamPiece {
  size_t tensor;
  int64_t offset;  // 0 and the whole tensor for strings.
  int64_t size;
};
struct StreamPlan {
  std::vector<StreamPiece> pieces;
  std::vector<size_t> batches;  // The first piece of each; then all of them.
};
StreamPlan PlanStream(const std::vector<StreamedTensor>& tensors);
// For tests: returns what it was.
int64_t SetStreamPieceBytesForTest(int64_t bytes);

Tensor EncodeStreamHeader(const std::vector<StreamedTensor>& tensors);
absl::StatusOr<std::vector<StreamedTensor>> DecodeStreamHeader(
    const Tensor& header);

// What a receiver does with what comes. Calls come one after the other, on
// threads that may block.
class StreamSink {
 public:
  virtual ~StreamSink() = default;
  virtual absl::Status Begin(const std::vector<StreamedTensor>& tensors) = 0;
  // Pieces come in the order of the plan; `bytes` are numbers as they lie in
  // memory, or a string tensor.
  virtual absl::Status Take(const StreamPiece& piece, const Tensor& bytes) = 0;
  virtual absl::Status End() = 0;
};

// Receives all and calls `done` once. `acknowledge`: tells the sender which
// batches it has. `ctx` must stay until then.
void ReceiveStream(KernelContext& ctx, StreamKeys keys, bool acknowledge,
                   std::unique_ptr<StreamSink> sink, Done done);

}  // namespace sluice
