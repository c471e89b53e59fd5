#include "sluice/ops/io/shard_stream.h"

#include <atomic>
#include <charconv>
#include <optional>

#include "absl/strings/str_split.h"
#include "sluice/base/mutex.h"
#include "sluice/base/random.h"
#include "sluice/base/status.h"
#include "sluice/base/thread_pool.h"
#include "sluice/io/tensor_slice.h"
#include "sluice/kernel/rendezvous.h"
#include "sluice/proto/bundle.pb.h"
#include "sluice/tensor/codec.h"

namespace sluice {
namespace {

// As large as what the network sends in one message; a batch is about that.
std::atomic<int64_t> piece_bytes{4 << 20};
// Small tensors share a message, but a message has a list of keys.
constexpr size_t kMaxBatchPieces = 512;
// A ticket names a device, its incarnation and a number, with '|' between.
constexpr std::string_view kBar = "|";
constexpr int64_t kHeaderColumns = 3;

absl::Status BadTicket(std::string_view ticket) {
  return InvalidArgument("'", ticket, "' is no ticket of a checkpoint stream");
}

// The state of a receiver. Batch i + 1 is fetched while batch i is used.
class Receiver : public std::enable_shared_from_this<Receiver> {
 public:
  Receiver(KernelContext& ctx, StreamKeys keys, bool acknowledge,
           std::unique_ptr<StreamSink> sink, Done done)
      : rendezvous_(*ctx.step().rendezvous),
        keys_(std::move(keys)),
        acknowledge_(acknowledge),
        sink_(std::move(sink)),
        done_(std::move(done)) {
    WaitInfo info{
        .what = StrCat("part of a checkpoint from ", keys_.sender()),
        .where = StrCat(ctx.node().name(), " on ", ctx.device().name()),
        .step_id = ctx.step().id,
        .since = ctx.step().clock ? ctx.step().clock->Now() : SteadyTime(),
        .owed_by = std::string(TaskOf(keys_.sender()))};
    wait_ = WaitTable::Global().Add(std::move(info));
  }

  void Start() {
    rendezvous_.RecvAsync(keys_.Header(), [self = shared_from_this()](
                                              absl::StatusOr<Parcel> header) {
      // Not on the thread of the network: what follows may block.
      ComputePool().Schedule([self, header = std::move(header)]() mutable {
        self->Begin(std::move(header));
      });
    });
  }

 private:
  using Batch = absl::StatusOr<std::vector<Parcel>>;

  void Begin(absl::StatusOr<Parcel> header) {
    if (!header.ok()) return Finish(header.status());
    absl::StatusOr<std::vector<StreamedTensor>> tensors =
        DecodeStreamHeader(header->tensor);
    if (!tensors.ok()) return Finish(tensors.status());
    plan_ = PlanStream(*tensors);
    if (absl::Status status = sink_->Begin(*tensors); !status.ok()) {
      return Finish(status);
    }
    if (num_batches() == 0) return Finish(sink_->End());
    Fetch(0);
  }

  size_t num_batches() const { return plan_.batches.size() - 1; }

  void Fetch(size_t batch) {
    std::vector<std::string> keys;
    for (size_t i = plan_.batches[batch]; i < plan_.batches[batch + 1]; ++i) {
      keys.push_back(keys_.Piece(static_cast<int64_t>(i)));
    }
    rendezvous_.RecvGroupAsync(keys,
                               [self = shared_from_this()](Batch parcels) {
                                 if (self->TakeTurn(&parcels))
                                   self->Schedule(std::move(parcels));
                               });
  }

  // Whether the batch may be used now; else it is kept.
  bool TakeTurn(Batch* parcels) {
    MutexLock lock(mu_);
    if (finished_) return false;
    if (busy_) {
      waiting_ = std::move(*parcels);
      return false;
    }
    busy_ = true;
    return true;
  }

  void Schedule(Batch parcels) {
    ComputePool().Schedule(
        [self = shared_from_this(), parcels = std::move(parcels)]() mutable {
          self->UseNext(std::move(parcels));
        });
  }

  void UseNext(Batch parcels) {
    if (!parcels.ok()) return Finish(parcels.status());
    const size_t batch = next_++;
    if (next_ < num_batches()) Fetch(next_);
    absl::Status status = Use(batch, *parcels);
    if (!status.ok()) return Finish(status);
    if (next_ == num_batches()) return Finish(sink_->End());
    std::optional<Batch> waiting;
    {
      MutexLock lock(mu_);
      std::swap(waiting, waiting_);
      busy_ = waiting.has_value();
    }
    if (waiting.has_value()) Schedule(*std::move(waiting));
  }

  absl::Status Use(size_t batch, const std::vector<Parcel>& parcels) {
    for (size_t i = 0; i < parcels.size(); ++i) {
      SLUICE_RETURN_IF_ERROR(sink_->Take(plan_.pieces[plan_.batches[batch] + i],
                                         parcels[i].tensor));
    }
    if (!acknowledge_) return absl::OkStatus();
    return rendezvous_.Send(keys_.Taken(static_cast<int64_t>(batch)),
                            {.tensor = Tensor::Scalar<bool>(true)});
  }

  void Finish(const absl::Status& status) {
    {
      MutexLock lock(mu_);
      finished_ = true;
    }
    WaitTable::Global().Remove(wait_);
    sink_.reset();
    done_(status);
  }

  Rendezvous& rendezvous_;
  const StreamKeys keys_;
  const bool acknowledge_;
  std::unique_ptr<StreamSink> sink_;
  Done done_;
  WaitTable::Token wait_;
  StreamPlan plan_;
  size_t next_ = 0;  // The batch to use; only whoever is busy touches it.

  Mutex mu_;
  bool busy_ SLUICE_GUARDED_BY(mu_) = false;
  bool finished_ SLUICE_GUARDED_BY(mu_) = false;
  std::optional<Batch> waiting_ SLUICE_GUARDED_BY(mu_);
};

}  // namespace

std::string StreamKeys::NewTicket(const KernelContext& ctx) {
  return StrCat(ctx.device().name(), kBar, ctx.device().incarnation(), kBar,
                RandomId());
}

absl::StatusOr<StreamKeys> StreamKeys::Create(const std::string& from,
                                              const std::string& to) {
  StreamKeys keys;
  const auto read = [](const std::string& ticket, std::string* device,
                       uint64_t* incarnation, std::string* id) -> absl::Status {
    const std::vector<std::string> parts = absl::StrSplit(ticket, '|');
    if (parts.size() != 3) return BadTicket(ticket);
    const char* const end = parts[1].data() + parts[1].size();
    const auto [stop, error] =
        std::from_chars(parts[1].data(), end, *incarnation);
    if (error != std::errc() || stop != end) return BadTicket(ticket);
    *device = parts[0];
    *id = parts[2];
    return absl::OkStatus();
  };
  std::string from_id, to_id;
  SLUICE_RETURN_IF_ERROR(
      read(from, &keys.from_device_, &keys.from_incarnation_, &from_id));
  SLUICE_RETURN_IF_ERROR(
      read(to, &keys.to_device_, &keys.to_incarnation_, &to_id));
  keys.id_ = StrCat("shard_", from_id, "_", to_id, "_");
  return keys;
}

std::string StreamKeys::ToReceiver(const std::string& what) const {
  return StrCat(RendezvousKeyPrefix(from_device_, from_incarnation_, to_device_,
                                    StrCat(id_, what)),
                "0:0");
}

std::string StreamKeys::Taken(int64_t i) const {
  return StrCat(RendezvousKeyPrefix(to_device_, to_incarnation_, from_device_,
                                    StrCat(id_, "taken_", i)),
                "0:0");
}

int64_t SetStreamPieceBytesForTest(int64_t bytes) {
  return piece_bytes.exchange(bytes);
}

StreamPlan PlanStream(const std::vector<StreamedTensor>& tensors) {
  const int64_t limit = piece_bytes.load();
  StreamPlan plan;
  int64_t batch_bytes = limit;  // So that the first piece begins a batch.
  const auto add = [&](const StreamPiece& piece) {
    if (batch_bytes + piece.size > limit ||
        plan.pieces.size() - plan.batches.back() >= kMaxBatchPieces) {
      plan.batches.push_back(plan.pieces.size());
      batch_bytes = 0;
    }
    plan.pieces.push_back(piece);
    batch_bytes += piece.size;
  };
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t bytes = tensors[i].bytes();
    if (bytes == 0) {
      // Strings, whose size is not known, travel alone.
      batch_bytes = limit;
      add({i, 0, 1});
      batch_bytes = limit;
    }
    for (int64_t offset = 0; offset < bytes; offset += limit) {
      add({i, offset, std::min(limit, bytes - offset)});
    }
  }
  plan.batches.push_back(plan.pieces.size());
  return plan;
}

Tensor EncodeStreamHeader(const std::vector<StreamedTensor>& tensors) {
  Tensor header(DType::kString,
                {static_cast<int64_t>(tensors.size()), kHeaderColumns});
  auto cell = header.mutable_data<std::string>().begin();
  for (const StreamedTensor& tensor : tensors) {
    pb::BundleEntryProto entry;
    entry.set_dtype(DTypeToProto(tensor.dtype));
    ShapeToProto(tensor.shape, entry.mutable_shape());
    *cell++ = tensor.name;
    *cell++ = tensor.shape_and_slice;
    *cell++ = entry.SerializeAsString();
  }
  return header;
}

absl::StatusOr<std::vector<StreamedTensor>> DecodeStreamHeader(
    const Tensor& header) {
  if (header.dtype() != DType::kString || header.rank() != 2 ||
      header.dim(1) != kHeaderColumns) {
    return InvalidArgument("The header of a checkpoint stream is broken");
  }
  std::vector<StreamedTensor> tensors;
  const auto cells = header.data<std::string>();
  for (size_t i = 0; i < cells.size(); i += kHeaderColumns) {
    pb::BundleEntryProto entry;
    if (!entry.ParseFromString(cells[i + 2])) {
      return InvalidArgument("The header of a checkpoint stream is broken");
    }
    StreamedTensor& tensor = tensors.emplace_back();
    tensor.name = cells[i];
    tensor.shape_and_slice = cells[i + 1];
    tensor.dtype = DTypeFromProto(entry.dtype());
    SLUICE_ASSIGN_OR_RETURN(tensor.shape, ShapeFromProto(entry.shape()));
    if (!IsKnown(tensor.dtype) || IsRef(tensor.dtype)) {
      return InvalidArgument("Tensor ", tensor.name,
                             " of a checkpoint stream has no known type");
    }
  }
  return tensors;
}

void ReceiveStream(KernelContext& ctx, StreamKeys keys, bool acknowledge,
                   std::unique_ptr<StreamSink> sink, Done done) {
  if (ctx.step().rendezvous == nullptr) {
    return done(Internal("Op ", ctx.node().name(),
                         " needs a rendezvous, but the step has none"));
  }
  std::make_shared<Receiver>(ctx, std::move(keys), acknowledge, std::move(sink),
                             std::move(done))
      ->Start();
}

}  // namespace sluice
