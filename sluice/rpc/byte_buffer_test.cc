#include "sluice/rpc/byte_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/base/status.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/proto/worker.pb.h"
#include "sluice/rpc/utf8.h"
#include "sluice/tensor/codec.h"

namespace sluice {
namespace {

std::string Flat(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

grpc::ByteBuffer Buffer(const std::string& bytes) {
  grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::vector<Tensor> SomeTensors() {
  Tensor large(DType::kDouble, {100, 30});
  double next = 0;
  for (double& x : large.mutable_data<double>()) x = next++;
  return {Tensor::Scalar(3.0f),
          Tensor::Of<int64_t>({2, 1}, {-1, 1LL << 40}),
          Tensor::Of<bool>({3}, {true, false, true}),
          Tensor::Of<std::string>({2}, {"", std::string("a\0b", 3)}),
          Tensor(DType::kFloat, {2, 0, 3}),
          large};
}

TEST(RecvTensorBytes, ComeBackAsTheTensor) {
  for (const Tensor& tensor : SomeTensors()) {
    grpc::ByteBuffer buffer = *EncodeRecvTensor(tensor, false, 77);
    absl::StatusOr<ReceivedTensor> got = DecodeRecvTensor(&buffer);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_FALSE(got->dead);
    EXPECT_EQ(got->send_start_micros, 77);
    ExpectClose(got->tensor, tensor);
  }
}

TEST(RecvTensorBytes, AreTheMessageThatProtobufReads) {
  for (const Tensor& tensor : SomeTensors()) {
    pb::RecvTensorResponse response;
    ASSERT_TRUE(
        response.ParseFromString(Flat(*EncodeRecvTensor(tensor, false, 77))));
    EXPECT_EQ(response.send_start_micros(), 77);
    absl::StatusOr<Tensor> got = TensorFromProto(response.tensor());
    ASSERT_TRUE(got.ok()) << got.status();
    ExpectClose(*got, tensor);
  }
}

// As a connection brings it: in pieces of its own choice.
grpc::ByteBuffer InPieces(const std::string& bytes) {
  std::vector<grpc::Slice> pieces;
  for (size_t at = 0, size = 1; at < bytes.size(); at += size) {
    size = std::min(bytes.size() - at, size * 3 % 100'003);
    pieces.emplace_back(bytes.data() + at, size);
  }
  return grpc::ByteBuffer(pieces.data(), pieces.size());
}

TEST(RecvTensorBytes, OfALargeTensorComeInPieces) {
  Tensor tensor(DType::kFloat, {1300, 1001});
  float next = 0;
  for (float& x : tensor.mutable_data<float>()) x = next++;
  const std::string bytes = Flat(*EncodeRecvTensor(tensor, false, 77));
  grpc::ByteBuffer buffer = InPieces(bytes);
  absl::StatusOr<ReceivedTensor> got = DecodeRecvTensor(&buffer);
  ASSERT_TRUE(got.ok()) << got.status();
  ExpectClose(got->tensor, tensor);
  for (const size_t missing : {1, 1000, 5'000'000}) {
    buffer = InPieces(bytes.substr(0, bytes.size() - missing));
    EXPECT_FALSE(DecodeRecvTensor(&buffer).ok());
  }
}

TEST(RecvTensorBytes, ALargeTensorIsPutTogetherFromItsChunks) {
  Tensor tensor(DType::kInt32, {1'200'001});
  int next = 0;
  for (int& x : tensor.mutable_data<int>()) x = next++;
  constexpr size_t kSize = 1'600'003;
  grpc::ByteBuffer buffer =
      InPieces(Flat(EncodeTensorChunk(tensor, 0, kSize, 7)));
  absl::StatusOr<ReceivedTensor> got = DecodeRecvTensor(&buffer);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->chunk, kSize);
  auto* bytes = static_cast<char*>(got->tensor.mutable_raw());
  for (size_t at = kSize; at < tensor.bytes(); at += kSize) {
    const size_t size = std::min(kSize, tensor.bytes() - at);
    const std::string chunk = Flat(EncodeTensorChunk(tensor, at, size, 0));
    buffer = InPieces(chunk.substr(0, chunk.size() - 1));
    EXPECT_FALSE(
        DecodeTensorChunk(&buffer, tensor.bytes(), size, bytes + at).ok());
    buffer = InPieces(chunk);
    SLUICE_ASSERT_OK(
        DecodeTensorChunk(&buffer, tensor.bytes(), size, bytes + at));
  }
  ExpectClose(got->tensor, tensor);
}

TEST(RecvTensorBytes, ADeadValueHasNoTensor) {
  grpc::ByteBuffer buffer = *EncodeRecvTensor(Tensor(), true, 1);
  absl::StatusOr<ReceivedTensor> got = DecodeRecvTensor(&buffer);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(got->dead);
}

TEST(RecvTensorBytes, OfOtherEncodersAreRead) {
  pb::RecvTensorResponse response;
  TensorToProto(Tensor::Scalar(5.0f), response.mutable_tensor());
  response.set_require_ack(true);
  grpc::ByteBuffer buffer = *ToByteBuffer(response);
  absl::StatusOr<ReceivedTensor> got = DecodeRecvTensor(&buffer);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(got->require_ack);
  EXPECT_EQ(got->tensor.scalar<float>(), 5.0f);
}

TEST(RecvTensorBytes, CutOffAnywhereAreAnError) {
  for (const Tensor& tensor : SomeTensors()) {
    const std::string bytes = Flat(*EncodeRecvTensor(tensor, false, 77));
    const size_t step = bytes.size() > 500 ? 97 : 1;
    // The time stands before the tensor, or behind it; it may be left out.
    for (size_t n = 3; n < bytes.size() - 2; n += step) {
      grpc::ByteBuffer buffer = Buffer(bytes.substr(0, n));
      EXPECT_FALSE(DecodeRecvTensor(&buffer).ok()) << n;
    }
  }
}

TEST(RecvTensorBytes, WithABitWrongNeverCrash) {
  const std::string bytes =
      Flat(*EncodeRecvTensor(Tensor::Of<float>({2}, {1, 2}), false, 77));
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string wrong = bytes;
    wrong[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    grpc::ByteBuffer buffer = Buffer(wrong);
    const absl::StatusOr<ReceivedTensor> got = DecodeRecvTensor(&buffer);
    EXPECT_TRUE(!got.ok() || got->dead || got->tensor.initialized());
  }
}

// 2^62 + 2 floats have 8 bytes, if one counts to 2^64.
TEST(RecvTensorBytes, ThatAreFarTooFewForTheShapeAreNotBorrowed) {
  pb::RecvTensorResponse response;
  response.mutable_tensor()->set_dtype(pb::DT_FLOAT);
  response.mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(
      (int64_t{1} << 62) + 2);
  response.mutable_tensor()->set_tensor_content("12345678");
  const std::string bytes = response.SerializeAsString();
  alignas(kBufferAlignment) static const char tail[8] = {};
  TensorLanding landing;
  EXPECT_FALSE(landing.Borrow({bytes.data(), bytes.size() - 8},
                              grpc::Slice(tail, 8, grpc::Slice::STATIC_SLICE)));
}

TEST(RecvTensorBytes, NothingIsAnError) {
  grpc::ByteBuffer nothing;
  EXPECT_FALSE(DecodeRecvTensor(&nothing).ok());
  pb::RecvTensorResponse response;
  EXPECT_FALSE(FromByteBuffer(&nothing, &response));
}

TEST(GrpcStatus, KeepsItsCodeAndText) {
  for (const absl::Status& status :
       {absl::OkStatus(), absl::AbortedError("gone"),
        absl::UnavailableError("away"), absl::DataLossError("torn")}) {
    EXPECT_EQ(FromGrpc(ToGrpc(status)), status);
  }
  const absl::Status lengthy = absl::InternalError(std::string(10000, 'x'));
  EXPECT_THAT(FromGrpc(ToGrpc(lengthy)),
              StatusIs(absl::StatusCode::kInternal,
                       testing::EndsWith("xxx ... [truncated]")));
}

TEST(GrpcStatus, ARestartedPeerIsUnavailable) {
  EXPECT_TRUE(absl::IsUnavailable(
      FromGrpc(grpc::Status(grpc::StatusCode::UNKNOWN, "Stream removed"))));
}

TEST(ToGrpc, CutsALongTextBetweenCharacters) {
  for (const char* start : {"", "1"}) {
    std::string text = start;
    while (text.size() < 50000) text += "\xc3\xa9";
    // Each byte has three in a header, which has 8 KB, or 64 KB.
    for (const bool to_our_own : {false, true}) {
      const std::string sent =
          ToGrpc(InvalidArgument(text), to_our_own).error_message();
      EXPECT_EQ(Utf8(sent), sent);
      EXPECT_LT(sent.size(), to_our_own ? 17000 : 2500);
      EXPECT_GT(sent.size(), to_our_own ? 16000 : 2300);
    }
  }
  EXPECT_EQ(ToGrpc(InvalidArgument("caf\xe9")).error_message(), "caf\\xe9");
}

}  // namespace
}  // namespace sluice
