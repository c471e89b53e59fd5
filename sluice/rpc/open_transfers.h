// OpenTransfers: tensors that a peer has begun to fetch in chunks.
#pragma once

#include <cstdint>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "sluice/base/mutex.h"
#include "sluice/tensor/tensor.h"

namespace sluice {

// A tensor is dropped with its last byte, or with its step. Thread-safe.
class OpenTransfers {
 public:
  // The first `sent` bytes are on their way. `id` is the peer's.
  void Add(int64_t id, int64_t step_id, Tensor tensor, size_t sent);
  // The tensor, to send `size` bytes from `offset` on; fewer, if it ends there.
  // Each chunk may be taken once.
  struct Chunk {
    Tensor tensor;
    size_t size = 0;
  };
  absl::StatusOr<Chunk> Take(int64_t id, size_t offset, size_t size);
  // The step is over.
  void Forget(int64_t step_id);
  // The peer is gone.
  void Drop(int64_t id);
  // The bytes that nobody asked for yet, by step.
  std::map<int64_t, size_t> BytesLeft() const;

 private:
  struct Transfer {
    int64_t step_id;
    Tensor tensor;
    size_t left;  // Bytes nobody asked for yet.
  };
  mutable Mutex mu_;
  absl::flat_hash_map<int64_t, Transfer> transfers_ SLUICE_GUARDED_BY(mu_);
};

}  // namespace sluice
