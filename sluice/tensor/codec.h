// Tensors and shapes as wire messages, both ways. The decoders take bytes from
// strangers: they check every size before they use it. docs/protocol has the
// rules for TensorProto.
#pragma once

#include "absl/status/statusor.h"
#include "sluice/proto/tensor.pb.h"
#include "sluice/tensor/tensor.h"

namespace sluice {

// The numbers are the same. A number we do not know passes; IsKnown tells.
inline DType DTypeFromProto(pb::DataType type) {
  return static_cast<DType>(type);
}
inline pb::DataType DTypeToProto(DType type) {
  return static_cast<pb::DataType>(type);
}

// Refuses what Shape::Create refuses, and unknown ranks.
absl::StatusOr<Shape> ShapeFromProto(const pb::TensorShapeProto& proto);
absl::StatusOr<PartialShape> PartialShapeFromProto(
    const pb::TensorShapeProto& proto);
void ShapeToProto(const Shape& shape, pb::TensorShapeProto* proto);
void PartialShapeToProto(const PartialShape& shape,
                         pb::TensorShapeProto* proto);

// Fewer typed values than elements mean that the last one repeats; that way at
// most 2 GiB can come out of a small message.
absl::StatusOr<Tensor> TensorFromProto(const pb::TensorProto& proto);
// The same without a copy of large contents: the tensor borrows them. `proto`
// is left in no particular state.
absl::StatusOr<Tensor> TensorFromProto(pb::TensorProto&& proto);

// The bytes that `proto` takes as a tensor beyond those that tensor_content
// has: of typed values all, each as often as it repeats, but of strings only
// what the repeated ones hold; of strings and handles in there what an empty
// one takes; of numbers in there none.
absl::StatusOr<int64_t> BytesBeyondContent(const pb::TensorProto& proto);

// The form of calls between tasks: everything in tensor_content.
void TensorToProto(const Tensor& tensor, pb::TensorProto* proto);
// The form a Python client gives constants, which Python can read too: the
// typed field of the dtype, but tensor_content for several plain numbers.
void TensorToTypedProto(const Tensor& tensor, pb::TensorProto* proto);
// The same for a shape that the values fill only by repeating the last one.
void TensorToTypedProto(const Tensor& values, const Shape& shape,
                        pb::TensorProto* proto);

// Only the values, in the typed field of the dtype.
void AppendTypedValues(const Tensor& tensor, pb::TensorProto* proto);

void ResourceHandleToProto(const ResourceHandle& handle,
                           pb::ResourceHandleProto* proto);
absl::StatusOr<ResourceHandle> ResourceHandleFromProto(
    const pb::ResourceHandleProto& proto);

}  // namespace sluice
