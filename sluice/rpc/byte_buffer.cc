#include "sluice/rpc/byte_buffer.h"

#include <google/protobuf/io/coded_stream.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>

#include "sluice/base/copy_past_caches.h"
#include "sluice/base/status.h"
#include "sluice/proto/worker.pb.h"
#include "sluice/rpc/utf8.h"
#include "sluice/tensor/codec.h"

namespace sluice {

using google::protobuf::io::CodedInputStream;

namespace {

// gRPC ends the process when there is no memory for its own.
grpc::Slice NewSlice(size_t size) {
  constexpr size_t kMayFail = 1 << 20;
  if (size < kMayFail) return grpc::Slice(size);
  return grpc::Slice(new uint8_t[size], size, [](void* bytes) {
    delete[] static_cast<uint8_t*>(bytes);
  });
}

}  // namespace

absl::StatusOr<grpc::ByteBuffer> ToByteBuffer(
    const google::protobuf::MessageLite& message) {
  const size_t size = message.ByteSizeLong();
  if (size > kMaxMessageBytes) {
    return InvalidArgument("A ", message.GetTypeName(), " of ", size,
                           " bytes cannot be sent: a message has at most ",
                           kMaxMessageBytes, " (2 GiB)");
  }
  grpc::Slice slice = NewSlice(size);
  message.SerializeWithCachedSizesToArray(const_cast<uint8_t*>(slice.begin()));
  return grpc::ByteBuffer(&slice, 1);
}

bool FromByteBuffer(grpc::ByteBuffer* buffer,
                    google::protobuf::MessageLite* message) {
  if (!buffer->Valid()) return false;
  grpc::ProtoBufferReader reader(buffer);
  if (!reader.status().ok()) return false;
  CodedInputStream input(&reader);
  input.SetTotalBytesLimit(INT_MAX);
  return message->ParseFromCodedStream(&input) && input.ConsumedEntireMessage();
}

namespace {

// Most that fits of a text, in bytes: as it is, and in the header, which has
// three for a byte that is not printable ASCII.
struct TextRoom {
  size_t bytes;
  size_t encoded;
};
// As TensorFlow cuts them; gRPC takes 8 KB of headers.
constexpr TextRoom kRoom = {3072, 7000};
// Of the kMetadataBytes that our clients take.
constexpr TextRoom kOwnRoom = {48 << 10, 48 << 10};

// Where to cut it; its size if it fits.
size_t FittingBytes(std::string_view text, const TextRoom& room) {
  size_t encoded = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool plain = text[i] >= ' ' && text[i] <= '~' && text[i] != '%';
    encoded += plain ? 1 : 3;
    if (i >= room.bytes || encoded > room.encoded) {
      return WholeCharacters(text, i);
    }
  }
  return text.size();
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status, bool to_our_own) {
  if (status.ok()) return grpc::Status::OK;
  std::string text = Utf8(ToStd(status.message()));
  const size_t fits = FittingBytes(text, to_our_own ? kOwnRoom : kRoom);
  if (fits < text.size()) {
    text.resize(fits);
    text += " ... [truncated]";
  }
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), text);
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  if (status.error_code() == grpc::StatusCode::UNKNOWN &&
      status.error_message() == "Stream removed") {
    return Unavailable("Stream removed");  // How a restarted peer shows.
  }
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

namespace {

constexpr uint32_t kTensorTag = 0x0a;
constexpr uint32_t kIsDeadTag = 0x10;
constexpr uint32_t kSendStartTag = 0x18;
constexpr uint32_t kRequireAckTag = 0x28;
// Fields 1001 and 1002, a varint and bytes.
constexpr uint32_t kTotalTag = 1001 << 3;
constexpr uint32_t kChunkTag = 1002 << 3 | 2;
constexpr uint32_t kDtypeTag = 0x08;
constexpr uint32_t kShapeTag = 0x12;
constexpr uint32_t kContentTag = 0x22;
// Up to this the bytes are copied into the message's own slice.
constexpr size_t kInlineBytes = 1024;

void AppendVarint(std::string* out, uint64_t value) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

// TensorProto without its content.
std::string TensorHeader(const Tensor& tensor) {
  std::string out;
  AppendVarint(&out, kDtypeTag);
  AppendVarint(&out, static_cast<uint64_t>(tensor.dtype()));
  if (tensor.rank() > 0) {
    // Every dimension is written with its size, also 0, which protobuf would
    // leave out.
    std::string bytes;
    for (int64_t dim : tensor.shape().dims()) {
      std::string one;
      AppendVarint(&one, 0x08);
      AppendVarint(&one, static_cast<uint64_t>(dim));
      AppendVarint(&bytes, 0x12);
      AppendVarint(&bytes, one.size());
      bytes += one;
    }
    AppendVarint(&out, kShapeTag);
    AppendVarint(&out, bytes.size());
    out += bytes;
  }
  return out;
}

// `head` and behind it bytes of the tensor, in its own memory unless they are
// few.
grpc::ByteBuffer WithBytes(std::string head, const Tensor& tensor,
                           size_t offset, size_t size) {
  char* const bytes =
      static_cast<char*>(const_cast<void*>(tensor.raw())) + offset;
  if (size <= kInlineBytes) {
    head.append(bytes, size);
    grpc::Slice slice(head);
    return grpc::ByteBuffer(&slice, 1);
  }
  tensor.buffer()->Ref();
  grpc::Slice slices[2] = {
      grpc::Slice(head),
      grpc::Slice(
          bytes, size,
          [](void* buffer) { static_cast<Buffer*>(buffer)->Unref(); },
          tensor.buffer())};
  return grpc::ByteBuffer(slices, 2);
}

}  // namespace

absl::StatusOr<grpc::ByteBuffer> EncodeRecvTensor(const Tensor& tensor,
                                                  bool dead,
                                                  int64_t send_start_micros) {
  if (dead || ElementSize(tensor.dtype()) == 0) {
    pb::RecvTensorResponse response;
    response.set_is_dead(dead);
    response.set_send_start_micros(send_start_micros);
    if (dead) {
      TensorToProto(Tensor(DType::kFloat, {0}), response.mutable_tensor());
    } else {
      TensorToProto(tensor, response.mutable_tensor());
    }
    return ToByteBuffer(response);
  }
  std::string header = TensorHeader(tensor);
  if (tensor.bytes() > 0) {
    AppendVarint(&header, kContentTag);
    AppendVarint(&header, tensor.bytes());
  }
  std::string head;
  AppendVarint(&head, kSendStartTag);
  AppendVarint(&head, static_cast<uint64_t>(send_start_micros));
  AppendVarint(&head, kTensorTag);
  AppendVarint(&head, header.size() + tensor.bytes());
  head += header;
  if (head.size() + tensor.bytes() > kMaxMessageBytes) {
    return InvalidArgument(
        "A tensor of ", tensor.bytes(),
        " bytes cannot be sent to a task that takes no chunks: a message has "
        "at most ",
        kMaxMessageBytes, " (2 GiB). Send it in parts.");
  }
  return WithBytes(std::move(head), tensor, 0, tensor.bytes());
}

grpc::ByteBuffer EncodeTensorChunk(const Tensor& tensor, size_t offset,
                                   size_t size, int64_t send_start_micros) {
  std::string head;
  if (offset == 0) {
    const std::string header = TensorHeader(tensor);
    AppendVarint(&head, kSendStartTag);
    AppendVarint(&head, static_cast<uint64_t>(send_start_micros));
    AppendVarint(&head, kTensorTag);
    AppendVarint(&head, header.size());
    head += header;
    AppendVarint(&head, kTotalTag);
    AppendVarint(&head, tensor.bytes());
  }
  AppendVarint(&head, kChunkTag);
  AppendVarint(&head, size);
  return WithBytes(std::move(head), tensor, offset, size);
}

namespace {

// The next `size` bytes, of a tensor that has `total`.
bool ReadBytes(CodedInputStream* in, size_t total, int size, void* to) {
  if (total < kPastCaches) return in->ReadRaw(to, size);
  auto* next = static_cast<char*>(to);
  while (size > 0) {
    const void* piece;
    int length;
    if (!in->GetDirectBufferPointer(&piece, &length)) return false;
    length = std::min(length, size);
    CopyPastCaches(next, piece, static_cast<size_t>(length));
    if (!in->Skip(length)) return false;
    next += length;
    size -= length;
  }
  return true;
}

// The usual layout, read without an intermediate message.
class FastDecoder {
 public:
  // Bytes of elements that are not in the input, which ends before them.
  struct Outside {
    size_t size;
    const grpc::Slice* lent = nullptr;  // They stand here and may stay.
  };
  FastDecoder(CodedInputStream* in, ReceivedTensor* out,
              const Outside* outside = nullptr)
      : in_(in), out_(out), outside_(outside) {}

  // False: something else than expected; the caller starts again with
  // protobuf.
  bool Run() {
    while (const uint32_t tag = in_->ReadTag()) {
      if (!ReadField(tag)) return false;
    }
    // A tag of 0 is not the end.
    if (outside_ == nullptr && !in_->ConsumedEntireMessage()) return false;
    return out_->dead || out_->tensor.initialized();
  }

 private:
  bool ReadField(uint32_t tag) {
    uint64_t value;
    uint32_t length;
    switch (tag) {
      case kIsDeadTag:
        return in_->ReadVarint64(&value) && (out_->dead = value != 0, true);
      case kSendStartTag:
        if (!in_->ReadVarint64(&value)) return false;
        out_->send_start_micros = static_cast<int64_t>(value);
        return true;
      case kRequireAckTag:
        if (!in_->ReadVarint64(&value)) return false;
        out_->require_ack = value != 0;
        return true;
      case kTotalTag:
        return in_->ReadVarint64(&total_);
      case kTensorTag:
        return in_->ReadVarint32(&length) && ReadTensor(length);
      case kChunkTag:
        if (!in_->ReadVarint32(&length) || length > total_) return false;
        out_->chunk = length;
        return ReadElements(total_, length);
      default:
        return false;
    }
  }

  bool ReadTensor(uint32_t length) {
    tensor_end_ = in_->CurrentPosition() + int64_t{length};
    const auto limit = in_->PushLimit(static_cast<int>(length));
    while (const uint32_t field = in_->ReadTag()) {
      uint32_t size;
      if (field == kDtypeTag) {
        if (!in_->ReadVarint64(&dtype_)) return false;
      } else if (field == kShapeTag) {
        if (!in_->ReadVarint32(&size)) return false;
        const auto inner = in_->PushLimit(static_cast<int>(size));
        if (!shape_.MergeFromCodedStream(in_)) return false;
        in_->PopLimit(inner);
      } else if (field == kContentTag) {
        // The bytes of a bool need checking.
        if (!in_->ReadVarint32(&size) ||
            static_cast<DType>(dtype_) == DType::kBool ||
            !ReadElements(size, size)) {
          return false;
        }
      } else {
        return false;
      }
    }
    if (outside_ == nullptr && in_->BytesUntilLimit() != 0) return false;
    in_->PopLimit(limit);
    tensor_end_ = -1;
    return true;
  }

  // The first `size` of the tensor's `total` bytes.
  bool ReadElements(uint64_t total, uint32_t size) {
    absl::StatusOr<Shape> shape = ShapeFromProto(shape_);
    const DType type = static_cast<DType>(dtype_);
    if (!shape.ok() || ElementSize(type) == 0 || IsRef(type)) return false;
    if (outside_ != nullptr) {
      // They end what they are in, where it is said to end.
      const int64_t end = in_->CurrentPosition() + int64_t{size};
      if (size != outside_->size) return false;
      if (tensor_end_ >= 0 && end != tensor_end_) return false;
    }
    if (outside_ != nullptr && outside_->lent != nullptr) {
      // Divided: the size times that of an element may be more than 64 bits.
      if (size != total || total % ElementSize(type) != 0 ||
          total / ElementSize(type) != static_cast<uint64_t>(shape->size())) {
        return false;
      }
      out_->tensor =
          Tensor::FromBuffer(type, *shape, Borrowed(*outside_->lent));
      return true;
    }
    absl::StatusOr<Tensor> tensor = Tensor::Create(type, *shape);
    if (!tensor.ok() || tensor->bytes() != total || size > INT_MAX ||
        (outside_ == nullptr && !ReadBytes(in_, total, static_cast<int>(size),
                                           tensor->mutable_raw()))) {
      return false;
    }
    out_->tensor = *std::move(tensor);
    return true;
  }

  static Buffer* Borrowed(const grpc::Slice& slice) {
    return Buffer::Borrow(const_cast<uint8_t*>(slice.begin()), slice.size(),
                          [keep = slice]() mutable { keep = grpc::Slice(); });
  }

  CodedInputStream* const in_;
  ReceivedTensor* const out_;
  const Outside* const outside_;
  uint64_t dtype_ = 0;
  pb::TensorShapeProto shape_;
  uint64_t total_ = 0;
  // Where the tensor that is being read ends; -1 outside of one.
  int64_t tensor_end_ = -1;
};

}  // namespace

absl::StatusOr<ReceivedTensor> DecodeRecvTensor(grpc::ByteBuffer* buffer) {
  if (!buffer->Valid()) return Internal("RecvTensor got no answer");
  {
    grpc::ByteBuffer copy(*buffer);  // Shares the slices.
    grpc::ProtoBufferReader reader(&copy);
    CodedInputStream input(&reader);
    input.SetTotalBytesLimit(INT_MAX);
    ReceivedTensor received;
    if (FastDecoder(&input, &received).Run()) return received;
  }
  pb::RecvTensorResponse response;
  if (!FromByteBuffer(buffer, &response)) {
    return Internal("The answer to RecvTensor could not be read");
  }
  if (response.sluice_total() != 0) {
    return Internal("The chunk of a tensor could not be read");
  }
  ReceivedTensor received;
  received.dead = response.is_dead();
  received.send_start_micros = response.send_start_micros();
  received.require_ack = response.require_ack();
  if (!received.dead) {
    SLUICE_ASSIGN_OR_RETURN(
        received.tensor,
        TensorFromProto(std::move(*response.mutable_tensor())));
  }
  return received;
}

absl::Status DecodeTensorChunk(grpc::ByteBuffer* buffer, size_t total,
                               size_t size, void* to) {
  grpc::ProtoBufferReader reader(buffer);
  CodedInputStream input(&reader);
  input.SetTotalBytesLimit(INT_MAX);
  uint32_t length;
  if (!reader.status().ok() || input.ReadTag() != kChunkTag ||
      !input.ReadVarint32(&length) || length != size ||
      !ReadBytes(&input, total, static_cast<int>(size), to) ||
      input.ReadTag() != 0) {
    return Internal("The chunk of a tensor could not be read");
  }
  return absl::OkStatus();
}

namespace {

// A tensor of which `lead` has all but the last bytes.
std::optional<ReceivedTensor> DecodeLead(std::string_view lead,
                                         const FastDecoder::Outside& outside) {
  CodedInputStream input(reinterpret_cast<const uint8_t*>(lead.data()),
                         static_cast<int>(lead.size()));
  ReceivedTensor received;
  if (FastDecoder(&input, &received, &outside).Run() && !received.dead &&
      input.CurrentPosition() == static_cast<int>(lead.size())) {
    return received;
  }
  return std::nullopt;
}

}  // namespace

void* TensorLanding::Place(std::string_view lead, size_t size) {
  received_ = DecodeLead(lead, {size});
  return received_ ? received_->tensor.mutable_raw() : nullptr;
}

bool TensorLanding::Borrow(std::string_view lead, const grpc::Slice& tail) {
  if (reinterpret_cast<uintptr_t>(tail.begin()) % kBufferAlignment == 0) {
    received_ = DecodeLead(lead, {tail.size(), &tail});
  }
  return received_.has_value();
}

absl::StatusOr<ReceivedTensor> TensorLanding::Take(grpc::ByteBuffer* answer) {
  if (received_) return *std::move(received_);
  return DecodeRecvTensor(answer);
}

void* ChunkLanding::Place(std::string_view lead, size_t size) {
  CodedInputStream input(reinterpret_cast<const uint8_t*>(lead.data()),
                         static_cast<int>(lead.size()));
  uint32_t length;
  placed_ = size == size_ && input.ReadTag() == kChunkTag &&
            input.ReadVarint32(&length) && length == size &&
            input.CurrentPosition() == static_cast<int>(lead.size());
  return placed_ ? to_ : nullptr;
}

absl::Status ChunkLanding::Take(grpc::ByteBuffer* answer) {
  if (placed_) return absl::OkStatus();
  return DecodeTensorChunk(answer, total_, size_, to_);
}

}  // namespace sluice
