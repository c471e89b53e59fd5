// Any bytes decode to a tensor or an error; what decodes survives a round trip.
#include <cstdlib>

#include "sluice/tensor/codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sluice::pb::TensorProto proto;
  if (!proto.ParseFromArray(data, static_cast<int>(size))) return 0;
  const auto shape = sluice::ShapeFromProto(proto.tensor_shape());
  // A value that stands for many is legal; here it would only cost time.
  if (shape.ok() && shape->size() > 4096) return 0;
  const auto tensor = sluice::TensorFromProto(proto);
  if (!tensor.ok()) return 0;
  sluice::pb::TensorProto again;
  for (const bool typed : {false, true}) {
    if (typed) {
      sluice::TensorToTypedProto(*tensor, &again);
    } else {
      sluice::TensorToProto(*tensor, &again);
    }
    const auto copy = sluice::TensorFromProto(again);
    if (!copy.ok() || !sluice::TensorsEqual(*tensor, *copy)) std::abort();
  }
  const auto moved = sluice::TensorFromProto(std::move(proto));
  if (!moved.ok() || !sluice::TensorsEqual(*tensor, *moved)) std::abort();
  return 0;
}
