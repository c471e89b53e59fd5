#include "sluice/rpc/recv_chunks.h"

#include <algorithm>
#include <atomic>

#include "sluice/base/mutex.h"
#include "sluice/base/status.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/paths.h"

namespace sluice {
namespace {

// So that a chunk is in the caches while it is copied into place.
std::atomic<size_t> chunk_bytes{4 << 20};

// Calls open at a time: one is copied into place while another travels and the
// sender has the next.
constexpr int kCallsOpen = 3;

class ChunkedRecv : public std::enable_shared_from_this<ChunkedRecv> {
 public:
  ChunkedRecv(std::shared_ptr<RpcChannel> channel, Tensor tensor,
              size_t received, Cancellation* cancellation,
              absl::AnyInvocable<void(absl::StatusOr<Tensor>)> done)
      : channel_(std::move(channel)),
        bytes_(static_cast<char*>(tensor.mutable_raw())),
        total_(tensor.bytes()),
        cancellation_(cancellation),
        tensor_(std::move(tensor)),
        next_(received),
        done_(std::move(done)) {}

  void Start(const pb::RecvTensorRequest& first) {
    request_.set_step_id(first.step_id());
    request_.set_rendezvous_key(first.rendezvous_key());
    request_.set_sluice_transfer(first.request_id());
    size_ = static_cast<size_t>(first.sluice_chunk_bytes());
    for (int i = 0; i < kCallsOpen; ++i) AskNext();
    Release();
  }

 private:
  void AskNext() {
    pb::RecvTensorRequest request = request_;
    size_t offset, size;
    {
      MutexLock lock(mu_);
      if (next_ >= total_ || !status_.ok()) return;
      offset = next_;
      size = std::min(size_, total_ - offset);
      next_ += size;
      ++open_;
    }
    request.set_sluice_offset(static_cast<int64_t>(offset));
    request.set_sluice_chunk_bytes(static_cast<int64_t>(size));
    auto landing =
        std::make_unique<ChunkLanding>(total_, size, bytes_ + offset);
    RpcChannel::Options options;
    options.cancellation = cancellation_;
    options.landing = landing.get();
    channel_->Call(paths::kRecvTensor, request, options,
                   [self = shared_from_this(), landing = std::move(landing)](
                       absl::Status status, grpc::ByteBuffer buffer) {
                     self->Take(std::move(status), &buffer, *landing);
                   });
  }

  void Take(absl::Status status, grpc::ByteBuffer* buffer,
            ChunkLanding& landing) {
    if (status.ok()) status = landing.Take(buffer);
    // The next chunk travels before the last user of this one is told.
    buffer->Clear();
    if (!status.ok()) {
      MutexLock lock(mu_);
      if (status_.ok()) status_ = std::move(status);
    }
    AskNext();
    Release();
  }

  // Reports when no call is open: they use the tensor and the cancellation.
  void Release() {
    absl::Status status;
    {
      MutexLock lock(mu_);
      if (--open_ > 0) return;
      status = status_;
    }
    if (status.ok()) status = CheckBools();
    if (status.ok()) {
      done_(std::move(tensor_));
    } else {
      done_(std::move(status));
    }
  }

  absl::Status CheckBools() const {
    if (tensor_.dtype() != DType::kBool) return absl::OkStatus();
    const auto* bytes = reinterpret_cast<const unsigned char*>(bytes_);
    if (std::all_of(bytes, bytes + total_,
                    [](unsigned char b) { return b <= 1; })) {
      return absl::OkStatus();
    }
    return InvalidArgument("A bool tensor holds a byte that is not 0 or 1");
  }

  const std::shared_ptr<RpcChannel> channel_;
  char* const bytes_;
  const size_t total_;
  Cancellation* const cancellation_;
  pb::RecvTensorRequest request_;  // Constant after Start, like size_.
  size_t size_ = 0;
  Tensor tensor_;
  Mutex mu_;
  size_t next_ SLUICE_GUARDED_BY(mu_);
  int open_ SLUICE_GUARDED_BY(mu_) = 1;  // Start counts as one.
  absl::Status status_ SLUICE_GUARDED_BY(mu_);
  absl::AnyInvocable<void(absl::StatusOr<Tensor>)> done_;
};

}  // namespace

size_t ChunkBytes() { return chunk_bytes.load(std::memory_order_relaxed); }
size_t SetChunkBytesForTest(size_t bytes) {
  return chunk_bytes.exchange(bytes);
}

void RecvChunks(std::shared_ptr<RpcChannel> channel,
                const pb::RecvTensorRequest& first, Tensor tensor,
                size_t received, Cancellation* cancellation,
                absl::AnyInvocable<void(absl::StatusOr<Tensor>)> done) {
  std::make_shared<ChunkedRecv>(std::move(channel), std::move(tensor), received,
                                cancellation, std::move(done))
      ->Start(first);
}

}  // namespace sluice
