// Any answer to RecvTensor decodes to a tensor or an error, and to the same one
// whether it comes in one piece or several, has its end put in place while it
// arrives, or only lent. The first two bytes of an input say where it is cut.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/proto/worker.pb.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/tensor/codec.h"

namespace sluice {
namespace {

grpc::ByteBuffer Buffer(std::string_view lead, std::string_view tail) {
  const grpc::Slice slices[] = {{lead.data(), lead.size()},
                                {tail.data(), tail.size()}};
  return {slices, 2};
}

bool Same(const absl::StatusOr<ReceivedTensor>& a,
          const absl::StatusOr<ReceivedTensor>& b) {
  if (a.ok() != b.ok()) return false;
  if (!a.ok()) return true;
  if (a->dead != b->dead || a->require_ack != b->require_ack ||
      a->send_start_micros != b->send_start_micros || a->chunk != b->chunk) {
    return false;
  }
  if (!a->chunk) return TensorsEqual(a->tensor, b->tensor);
  // The rest of it holds whatever was there.
  return a->tensor.dtype() == b->tensor.dtype() &&
         a->tensor.shape() == b->tensor.shape() &&
         (*a->chunk == 0 ||
          memcmp(a->tensor.raw(), b->tensor.raw(), *a->chunk) == 0);
}

void CheckWhole(std::string_view lead, std::string_view tail) {
  grpc::ByteBuffer one = Buffer(std::string(lead).append(tail), "");
  const auto expected = DecodeRecvTensor(&one);

  grpc::ByteBuffer two = Buffer(lead, tail);
  if (!Same(DecodeRecvTensor(&two), expected)) std::abort();

  TensorLanding landing;
  void* const place = landing.Place(lead, tail.size());
  if (place != nullptr) memcpy(place, tail.data(), tail.size());
  grpc::ByteBuffer rest =
      place != nullptr ? Buffer(lead, "") : Buffer(lead, tail);
  if (!Same(landing.Take(&rest), expected)) std::abort();

  Tensor lender(DType::kUint8, {static_cast<int64_t>(tail.size())});
  if (!tail.empty()) memcpy(lender.mutable_raw(), tail.data(), tail.size());
  const grpc::Slice lent(lender.raw(), tail.size(), grpc::Slice::STATIC_SLICE);
  TensorLanding borrowing;
  grpc::ByteBuffer answer =
      borrowing.Borrow(lead, lent) ? Buffer(lead, "") : Buffer(lead, tail);
  if (!Same(borrowing.Take(&answer), expected)) std::abort();
}

// A further chunk, of as many bytes as the tail: they land, or nothing does.
void CheckChunk(std::string_view lead, std::string_view tail) {
  const size_t size = tail.size();
  constexpr char kUntouched = 0x5a;
  std::vector<char> whole(size + 1, kUntouched);
  std::vector<char> placed(size + 1, kUntouched);
  grpc::ByteBuffer one = Buffer(lead, tail);
  const absl::Status expected =
      DecodeTensorChunk(&one, size + 1, size, whole.data());
  ChunkLanding landing(size + 1, size, placed.data());
  void* const place = landing.Place(lead, size);
  if (place != nullptr) memcpy(place, tail.data(), size);
  grpc::ByteBuffer rest =
      place != nullptr ? Buffer(lead, "") : Buffer(lead, tail);
  const absl::Status status = landing.Take(&rest);
  if (status.ok() != expected.ok()) std::abort();
  if (status.ok() && whole != placed) std::abort();
  if (whole[size] != kUntouched || placed[size] != kUntouched) std::abort();
}

// A value may stand for many, and a first chunk for all that follow, which is
// legal; here it would only cost memory.
bool IsLarge(std::string_view bytes) {
  pb::RecvTensorResponse response;
  if (!response.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return false;
  }
  const auto shape = ShapeFromProto(response.tensor().tensor_shape());
  return shape.ok() && shape->size() > 4096;
}

void Run(const uint8_t* data, size_t size) {
  if (size < 2) return;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2,
                               size - 2);
  if (IsLarge(bytes)) return;
  const size_t cut = (data[0] + 256u * data[1]) % (bytes.size() + 1);
  CheckWhole(bytes.substr(0, cut), bytes.substr(cut));
  CheckChunk(bytes.substr(0, cut), bytes.substr(cut));
}

}  // namespace
}  // namespace sluice

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sluice::Run(data, size);
  return 0;
}
