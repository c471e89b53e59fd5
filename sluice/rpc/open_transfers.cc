#include "sluice/rpc/open_transfers.h"

#include <algorithm>

#include "sluice/base/status.h"

namespace sluice {

void OpenTransfers::Add(int64_t id, int64_t step_id, Tensor tensor,
                        size_t sent) {
  const size_t left = tensor.bytes() - sent;
  MutexLock lock(mu_);
  transfers_.insert_or_assign(id, Transfer{step_id, std::move(tensor), left});
}

absl::StatusOr<OpenTransfers::Chunk> OpenTransfers::Take(int64_t id,
                                                         size_t offset,
                                                         size_t size) {
  MutexLock lock(mu_);
  auto it = transfers_.find(id);
  if (it == transfers_.end()) {
    return Aborted("Transfer ", id, " is not found. Its step is over.");
  }
  Transfer& transfer = it->second;
  const size_t total = transfer.tensor.bytes();
  if (offset >= total || size == 0) {
    return InvalidArgument("A chunk of ", size, " bytes at ", offset,
                           " was asked for of a tensor of ", total);
  }
  Chunk chunk{transfer.tensor, std::min(size, total - offset)};
  transfer.left -= std::min(transfer.left, chunk.size);
  if (transfer.left == 0) transfers_.erase(it);
  return chunk;
}

void OpenTransfers::Forget(int64_t step_id) {
  MutexLock lock(mu_);
  absl::erase_if(transfers_, [&](const auto& entry) {
    return entry.second.step_id == step_id;
  });
}

void OpenTransfers::Drop(int64_t id) {
  MutexLock lock(mu_);
  transfers_.erase(id);
}

std::map<int64_t, size_t> OpenTransfers::BytesLeft() const {
  std::map<int64_t, size_t> left;
  MutexLock lock(mu_);
  for (const auto& [id, transfer] : transfers_) {
    left[transfer.step_id] += transfer.left;
  }
  return left;
}

}  // namespace sluice
