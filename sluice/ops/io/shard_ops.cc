// The ops of checkpoints without a shared disk (train/saver_ops.cc):
// _SluiceSendShard on the task that holds variables and _SluiceStoreShard on
// the one that owns the directory; back again _SluiceLoadShard there and
// _SluiceFetchShard here. _SluiceShardTicket introduces them to each other.

#include <cstring>

#include "sluice/base/crc32c.h"
#include "sluice/base/thread_pool.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/io/bundle_writer.h"
#include "sluice/io/checkpoint_reader.h"
#include "sluice/io/missing_keys.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/io/shard_stream.h"

namespace sluice {
namespace {
namespace shard_ops {

// Batches that the loader reads ahead of what the receiver has taken.
constexpr int64_t kWindow = 3;

absl::StatusOr<StreamKeys> KeysOf(const KernelContext& ctx, int first) {
  for (int i = first; i < first + 2; ++i) {
    if (ctx.input(i).size() != 1) return InvalidArgument("No ticket");
  }
  return StreamKeys::Create(ctx.input(first).data<std::string>()[0],
                            ctx.input(first + 1).data<std::string>()[0]);
}

absl::Status Ticket(KernelContext& ctx) {
  ctx.set_output(0, Tensor::Scalar(StreamKeys::NewTicket(ctx)));
  return absl::OkStatus();
}

// The bytes of a piece, in the memory of the tensor.
Tensor PieceOf(const Tensor& tensor, const StreamPiece& piece) {
  if (ElementSize(tensor.dtype()) == 0 || tensor.size() == 0) return tensor;
  return Tensor::FromBuffer(
      DType::kUint8, {piece.size},
      Buffer::View(tensor.buffer(), piece.offset, piece.size));
}

// Puts all pieces into the rendezvous at once: they are views of what the
// variables hold now, and go as they are taken.
absl::Status SendShard(KernelContext& ctx) {
  constexpr int kFirst = 4;
  SLUICE_ASSIGN_OR_RETURN(const StreamKeys keys, KeysOf(ctx, 0));
  Rendezvous* rendezvous = ctx.step().rendezvous;
  if (rendezvous == nullptr) return Internal("The step has no rendezvous");
  const auto names = ctx.input(2).data<std::string>();
  const auto slices = ctx.input(3).data<std::string>();
  const size_t count = ctx.num_inputs() - kFirst;
  if (names.size() != count || slices.size() != count) {
    return InvalidArgument("Got ", names.size(), " tensor names and ",
                           slices.size(), " slices, but ", count, " tensors.");
  }
  std::vector<Tensor> tensors;
  std::vector<StreamedTensor> header;
  for (size_t i = 0; i < count; ++i) {
    tensors.push_back(ctx.input(kFirst + static_cast<int>(i)).Owned());
    header.push_back(
        {names[i], slices[i], tensors[i].dtype(), tensors[i].shape()});
  }
  SLUICE_RETURN_IF_ERROR(
      rendezvous->Send(keys.Header(), {.tensor = EncodeStreamHeader(header)}));
  const StreamPlan plan = PlanStream(header);
  for (size_t i = 0; i < plan.pieces.size(); ++i) {
    const StreamPiece& piece = plan.pieces[i];
    SLUICE_RETURN_IF_ERROR(
        rendezvous->Send(keys.Piece(static_cast<int64_t>(i)),
                         {.tensor = PieceOf(tensors[piece.tensor], piece)}));
  }
  return absl::OkStatus();
}

// Whether `bytes` is what the plan says of a piece of numbers.
absl::Status CheckPiece(const StreamedTensor& tensor, const StreamPiece& piece,
                        const Tensor& bytes) {
  const bool right =
      tensor.bytes() > 0
          ? bytes.dtype() == DType::kUint8 && bytes.size() == piece.size
          : bytes.dtype() == tensor.dtype && bytes.shape() == tensor.shape;
  if (right) return absl::OkStatus();
  return InvalidArgument("A piece of tensor ", tensor.name,
                         " comes as something else: ", bytes.DebugString(0));
}

std::string_view Bytes(const Tensor& piece) {
  return {static_cast<const char*>(piece.raw()), piece.bytes()};
}

// Writes what comes to a bundle.
class BundleSink : public StreamSink {
 public:
  BundleSink(FileSystem& files, const std::string& prefix)
      : writer_(files, prefix) {}

  absl::Status Begin(const std::vector<StreamedTensor>& tensors) override {
    tensors_ = tensors;
    return absl::OkStatus();
  }
  absl::Status Take(const StreamPiece& piece, const Tensor& bytes) override {
    const StreamedTensor& tensor = tensors_[piece.tensor];
    SLUICE_RETURN_IF_ERROR(CheckPiece(tensor, piece, bytes));
    if (tensor.bytes() == 0) return AddWhole(tensor, bytes);
    if (piece.offset == 0) {
      SLUICE_RETURN_IF_ERROR(writer_.Begin(tensor.name, tensor.shape_and_slice,
                                           tensor.dtype, tensor.shape));
    }
    return writer_.Append(Bytes(bytes));
  }
  absl::Status End() override { return writer_.Finish(); }

 private:
  absl::Status AddWhole(const StreamedTensor& tensor, const Tensor& value) {
    if (tensor.shape_and_slice.empty()) return writer_.Add(tensor.name, value);
    SLUICE_ASSIGN_OR_RETURN(const ShapeAndSlice at,
                            ParseShapeAndSlice(tensor.shape_and_slice));
    return writer_.AddSlice(tensor.name, at.full, at.slice, value);
  }

  BundleWriter writer_;
  std::vector<StreamedTensor> tensors_;
};

class StoreShardKernel : public AsyncKernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction&) {
    return std::make_unique<StoreShardKernel>();
  }
  void Start(KernelContext& ctx, Done done) override {
    absl::StatusOr<StreamKeys> keys = KeysOf(ctx, 0);
    if (!keys.ok()) return done(keys.status());
    if (ctx.input(2).size() != 1) return done(InvalidArgument("No prefix"));
    ReceiveStream(
        ctx, *std::move(keys), /*acknowledge=*/false,
        std::make_unique<BundleSink>(ctx.device().files(),
                                     ctx.input(2).data<std::string>()[0]),
        std::move(done));
  }
};

// Puts what comes together again as the outputs of the op.
class OutputSink : public StreamSink {
 public:
  explicit OutputSink(KernelContext& ctx) : ctx_(ctx) {}

  absl::Status Begin(const std::vector<StreamedTensor>& tensors) override {
    tensors_ = tensors;
    if (static_cast<int>(tensors.size()) != ctx_.num_outputs()) {
      return Internal("Received ", tensors.size(), " tensors for ",
                      ctx_.num_outputs());
    }
    values_.resize(tensors.size());
    return absl::OkStatus();
  }
  absl::Status Take(const StreamPiece& piece, const Tensor& bytes) override {
    const StreamedTensor& tensor = tensors_[piece.tensor];
    Tensor& value = values_[piece.tensor];
    SLUICE_RETURN_IF_ERROR(CheckPiece(tensor, piece, bytes));
    if (tensor.bytes() == 0) {
      value = bytes;
      return absl::OkStatus();
    }
    if (!value.initialized()) {
      SLUICE_ASSIGN_OR_RETURN(value,
                              Tensor::Create(tensor.dtype, tensor.shape));
    }
    char* const to = static_cast<char*>(value.mutable_raw()) + piece.offset;
    std::memcpy(to, bytes.raw(), piece.size);
    if (tensor.dtype == DType::kBool) {
      // Any other byte in a C++ bool is undefined behaviour.
      for (int64_t i = 0; i < piece.size; ++i) to[i] = to[i] != 0;
    }
    return absl::OkStatus();
  }
  absl::Status End() override {
    for (size_t i = 0; i < values_.size(); ++i) {
      const int output = static_cast<int>(i);
      if (values_[i].dtype() != ctx_.node().output_type(output)) {
        return Internal("Tensor ", tensors_[i].name, " comes as ",
                        DTypeName(values_[i].dtype()));
      }
      ctx_.set_output(output, std::move(values_[i]));
    }
    return absl::OkStatus();
  }

 private:
  KernelContext& ctx_;
  std::vector<StreamedTensor> tensors_;
  std::vector<Tensor> values_;
};

class FetchShardKernel : public AsyncKernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction&) {
    return std::make_unique<FetchShardKernel>();
  }
  void Start(KernelContext& ctx, Done done) override {
    absl::StatusOr<StreamKeys> keys = KeysOf(ctx, 0);
    if (!keys.ok()) return done(keys.status());
    ReceiveStream(ctx, *std::move(keys), /*acknowledge=*/true,
                  std::make_unique<OutputSink>(ctx), std::move(done));
  }
};

// Reads a checkpoint piece by piece and sends it, some batches ahead of the
// receiver.
class Loader : public std::enable_shared_from_this<Loader> {
 public:
  Loader(KernelContext& ctx, StreamKeys keys, Done done)
      : ctx_(ctx),
        rendezvous_(*ctx.step().rendezvous),
        keys_(std::move(keys)),
        done_(std::move(done)) {}

  void Start() {
    ComputePool().Schedule([self = shared_from_this()] {
      const absl::Status status = self->SendHeader();
      if (!status.ok()) return self->done_(status);
      self->SendBatch(0);
    });
  }

 private:
  // A tensor that is not read in pieces, or the sum of what was read so far.
  struct Source {
    std::optional<CheckpointReader::Place> place;
    Tensor whole;
    uint32_t crc = 0;
  };

  absl::Status SendHeader() {
    const std::string& prefix = ctx_.input(2).data<std::string>()[0];
    const auto names = ctx_.input(3).data<std::string>();
    const auto slices = ctx_.input(4).data<std::string>();
    const std::vector<DType> types = ctx_.attr<AttrList>("dtypes").types;
    if (names.size() != types.size() || slices.size() != types.size()) {
      return InvalidArgument("Got ", names.size(), " tensor names, but ",
                             types.size(), " expected dtypes.");
    }
    SLUICE_ASSIGN_OR_RETURN(
        reader_, CheckpointReader::Open(ctx_.device().files(), prefix));
    for (size_t i = 0; i < names.size(); ++i) {
      absl::StatusOr<StreamedTensor> tensor =
          Describe(names[i], slices[i], types[i]);
      if (absl::IsNotFound(tensor.status())) {
        // Unless it is a file that is missing.
        SLUICE_RETURN_IF_ERROR(MissingKeys(*reader_, prefix, names));
      }
      SLUICE_RETURN_IF_ERROR(tensor.status());
      tensors_.push_back(*std::move(tensor));
    }
    sources_.resize(tensors_.size());
    plan_ = PlanStream(tensors_);
    return rendezvous_.Send(keys_.Header(),
                            {.tensor = EncodeStreamHeader(tensors_)});
  }

  absl::StatusOr<StreamedTensor> Describe(const std::string& name,
                                          const std::string& slice,
                                          DType dtype) {
    SLUICE_ASSIGN_OR_RETURN(const std::string key, reader_->KeyOf(name));
    SLUICE_ASSIGN_OR_RETURN(const CheckpointTensor stored, reader_->Find(key));
    if (stored.dtype != dtype) {
      // For its error.
      SLUICE_RETURN_IF_ERROR(reader_->Restore(name, slice, dtype).status());
    }
    if (slice.empty()) return StreamedTensor{key, "", dtype, stored.shape};
    SLUICE_ASSIGN_OR_RETURN(const ShapeAndSlice at, ParseShapeAndSlice(slice));
    return StreamedTensor{key, slice, dtype, at.part};
  }

  void SendBatch(size_t batch) {
    if (batch + 1 >= plan_.batches.size()) return done_(absl::OkStatus());
    for (size_t i = plan_.batches[batch]; i < plan_.batches[batch + 1]; ++i) {
      absl::StatusOr<Tensor> piece = ReadPiece(plan_.pieces[i]);
      absl::Status status = piece.status();
      if (status.ok()) {
        status = rendezvous_.Send(keys_.Piece(static_cast<int64_t>(i)),
                                  {.tensor = *std::move(piece)});
      }
      if (!status.ok()) return done_(status);
    }
    const int64_t taken = static_cast<int64_t>(batch) - kWindow;
    if (taken < 0) return SendBatch(batch + 1);
    rendezvous_.RecvAsync(
        keys_.Taken(taken),
        [self = shared_from_this(), batch](absl::StatusOr<Parcel> parcel) {
          ComputePool().Schedule([self, batch, status = parcel.status()] {
            if (!status.ok()) return self->done_(status);
            self->SendBatch(batch + 1);
          });
        });
  }

  absl::StatusOr<Tensor> ReadPiece(const StreamPiece& piece) {
    const StreamedTensor& tensor = tensors_[piece.tensor];
    Source& source = sources_[piece.tensor];
    if (piece.offset == 0) {
      if (tensor.shape_and_slice.empty() && tensor.bytes() > 0) {
        source.place = reader_->Locate(tensor.name);
      }
      if (!source.place) {
        SLUICE_ASSIGN_OR_RETURN(
            source.whole, reader_->Restore(tensor.name, tensor.shape_and_slice,
                                           tensor.dtype));
      }
    }
    const bool last = piece.offset + piece.size >= tensor.bytes();
    if (!source.place) {
      Tensor bytes = PieceOf(source.whole, piece);
      if (last) source.whole.Reset();
      return bytes;
    }
    SLUICE_ASSIGN_OR_RETURN(Tensor bytes,
                            Tensor::Create(DType::kUint8, {piece.size}));
    char* const to = static_cast<char*>(bytes.mutable_raw());
    absl::Status status =
        reader_->ReadPiece(*source.place, piece.offset, piece.size, to);
    if (status.ok()) {
      source.crc = Crc32cExtend(source.crc, Bytes(bytes));
      if (!last || MaskCrc(source.crc) == source.place->masked_crc) {
        return bytes;
      }
    }
    // The reader of whole tensors knows what to say. Nothing damaged is sent
    // whole: the last piece stays here.
    SLUICE_RETURN_IF_ERROR(
        reader_->Restore(tensor.name, "", tensor.dtype).status());
    return DataLoss("Tensor ", tensor.name, " changed while it was read");
  }

  KernelContext& ctx_;
  Rendezvous& rendezvous_;
  const StreamKeys keys_;
  Done done_;
  std::unique_ptr<CheckpointReader> reader_;
  std::vector<StreamedTensor> tensors_;
  std::vector<Source> sources_;
  StreamPlan plan_;
};

class LoadShardKernel : public AsyncKernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction&) {
    return std::make_unique<LoadShardKernel>();
  }
  void Start(KernelContext& ctx, Done done) override {
    absl::StatusOr<StreamKeys> keys = KeysOf(ctx, 0);
    if (!keys.ok()) return done(keys.status());
    if (ctx.input(2).size() != 1) return done(InvalidArgument("No prefix"));
    if (ctx.step().rendezvous == nullptr) {
      return done(Internal("The step has no rendezvous"));
    }
    std::make_shared<Loader>(ctx, *std::move(keys), std::move(done))->Start();
  }
};

}  // namespace shard_ops
}  // namespace

SLUICE_OP(_SluiceShardTicket)
    .Output("ticket: string")
    .Stateful()
    .Shape(shapes::Scalar);

SLUICE_OP(_SluiceSendShard)
    .Input("from: string")
    .Input("to: string")
    .Input("tensor_names: string")
    .Input("shape_and_slices: string")
    .Input("tensors: dtypes")
    .Attr("dtypes: list(type) >= 1")
    .Stateful();

SLUICE_OP(_SluiceStoreShard)
    .Input("from: string")
    .Input("to: string")
    .Input("prefix: string")
    .Stateful();

SLUICE_OP(_SluiceLoadShard)
    .Input("from: string")
    .Input("to: string")
    .Input("prefix: string")
    .Input("tensor_names: string")
    .Input("shape_and_slices: string")
    .Attr("dtypes: list(type) >= 1")
    .Stateful();

SLUICE_OP(_SluiceFetchShard)
    .Input("from: string")
    .Input("to: string")
    .Output("tensors: dtypes")
    .Attr("dtypes: list(type) >= 1")
    .Stateful()
    .Shape(shapes::Unknown)
    .NotDifferentiable();

SLUICE_KERNEL(_SluiceShardTicket, kCpu).Function(shard_ops::Ticket);
SLUICE_KERNEL(_SluiceSendShard, kCpu).Function(shard_ops::SendShard);
SLUICE_KERNEL(_SluiceStoreShard, kCpu).Class<shard_ops::StoreShardKernel>();
SLUICE_KERNEL(_SluiceLoadShard, kCpu).Class<shard_ops::LoadShardKernel>();
SLUICE_KERNEL(_SluiceFetchShard, kCpu).Class<shard_ops::FetchShardKernel>();

}  // namespace sluice
