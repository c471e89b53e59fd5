// Any bytes are an Example or a SequenceExample, or are refused; and what was
// taken can be written and read again.
#include <cstdlib>

#include "sluice/proto/example.pb.h"

namespace {

template <typename Message>
void ReadAndWrite(const uint8_t* data, size_t size) {
  Message message;
  if (!message.ParseFromArray(data, static_cast<int>(size))) return;
  Message again;
  if (!again.ParseFromString(message.SerializeAsString())) std::abort();
  if (again.ByteSizeLong() != message.ByteSizeLong()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ReadAndWrite<sluice::pb::Example>(data, size);
  ReadAndWrite<sluice::pb::SequenceExample>(data, size);
  return 0;
}
