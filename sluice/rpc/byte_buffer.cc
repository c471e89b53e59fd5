#include "sluice/rpc/byte_buffer.h"

#include <google/protobuf/io/coded_stream.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>

#include "sluice/base/status.h"
#include "sluice/proto/worker.pb.h"
#include "sluice/tensor/codec.h"

namespace sluice {

using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

grpc::ByteBuffer ToByteBuffer(const google::protobuf::MessageLite& message) {
  const size_t size = message.ByteSizeLong();
  grpc::Slice slice(size);
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

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  // Longer texts do not fit a header.
  constexpr size_t kMaxText = 3072;
  std::string text(status.message());
  if (text.size() > kMaxText) {
    text.resize(kMaxText);
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

// TensorProto up to the content bytes themselves.
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
  if (tensor.bytes() > 0) {
    AppendVarint(&out, kContentTag);
    AppendVarint(&out, tensor.bytes());
  }
  return out;
}

}  // namespace

grpc::ByteBuffer EncodeRecvTensor(const Tensor& tensor, bool dead,
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
  std::string head;
  AppendVarint(&head, kSendStartTag);
  AppendVarint(&head, static_cast<uint64_t>(send_start_micros));
  const std::string header = TensorHeader(tensor);
  AppendVarint(&head, kTensorTag);
  AppendVarint(&head, header.size() + tensor.bytes());
  head += header;
  if (tensor.bytes() <= kInlineBytes) {
    head.append(static_cast<const char*>(tensor.raw()), tensor.bytes());
    grpc::Slice slice(head);
    return grpc::ByteBuffer(&slice, 1);
  }
  tensor.buffer()->Ref();
  grpc::Slice slices[2] = {
      grpc::Slice(head),
      grpc::Slice(
          const_cast<void*>(tensor.raw()), tensor.bytes(),
          [](void* buffer) { static_cast<Buffer*>(buffer)->Unref(); },
          tensor.buffer())};
  return grpc::ByteBuffer(slices, 2);
}

namespace {

// The usual layout, read without an intermediate message. False: something else
// than expected; the caller starts again with protobuf.
bool FastDecode(CodedInputStream* in, ReceivedTensor* out) {
  while (const uint32_t tag = in->ReadTag()) {
    uint64_t value;
    if (tag == kIsDeadTag || tag == kSendStartTag || tag == kRequireAckTag) {
      if (!in->ReadVarint64(&value)) return false;
      if (tag == kIsDeadTag) out->dead = value != 0;
      if (tag == kSendStartTag)
        out->send_start_micros = static_cast<int64_t>(value);
      if (tag == kRequireAckTag) out->require_ack = value != 0;
      continue;
    }
    uint32_t length;
    if (tag != kTensorTag || !in->ReadVarint32(&length)) return false;
    const auto limit = in->PushLimit(static_cast<int>(length));
    uint64_t dtype = 0;
    pb::TensorShapeProto shape_proto;
    while (const uint32_t field = in->ReadTag()) {
      if (field == kDtypeTag) {
        if (!in->ReadVarint64(&dtype)) return false;
      } else if (field == kShapeTag) {
        uint32_t size;
        if (!in->ReadVarint32(&size)) return false;
        const auto inner = in->PushLimit(static_cast<int>(size));
        if (!shape_proto.MergeFromCodedStream(in)) return false;
        in->PopLimit(inner);
      } else if (field == kContentTag) {
        uint32_t size;
        if (!in->ReadVarint32(&size)) return false;
        absl::StatusOr<Shape> shape = ShapeFromProto(shape_proto);
        const DType type = static_cast<DType>(dtype);
        if (!shape.ok() || ElementSize(type) == 0 || IsRef(type)) return false;
        if (type == DType::kBool) return false;  // Its bytes need checking.
        absl::StatusOr<Tensor> tensor = Tensor::Create(type, *shape);
        if (!tensor.ok() || tensor->bytes() != size) return false;
        if (!in->ReadRaw(tensor->mutable_raw(), static_cast<int>(size)))
          return false;
        out->tensor = *std::move(tensor);
      } else {
        return false;
      }
    }
    in->PopLimit(limit);
  }
  return out->dead || out->tensor.initialized();
}

}  // namespace

absl::StatusOr<ReceivedTensor> DecodeRecvTensor(grpc::ByteBuffer* buffer) {
  if (!buffer->Valid()) return Internal("RecvTensor got no answer");
  {
    grpc::ByteBuffer copy(*buffer);  // Shares the slices.
    grpc::ProtoBufferReader reader(&copy);
    CodedInputStream input(&reader);
    input.SetTotalBytesLimit(INT_MAX);
    ReceivedTensor received;
    if (FastDecode(&input, &received)) return received;
  }
  pb::RecvTensorResponse response;
  if (!FromByteBuffer(buffer, &response)) {
    return Internal("The answer to RecvTensor could not be read");
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

}  // namespace sluice
