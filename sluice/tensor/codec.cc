// Shapes, handles, and tensors from messages. codec_encode.cc has the way back.
#include "sluice/tensor/codec.h"

#include <algorithm>
#include <cstring>

#include "sluice/base/coding.h"
#include "sluice/base/status.h"

namespace sluice {
namespace {

// No message is larger than this, so what one value repeated can stand for is
// held to it too: a few bytes must not fill the memory of a server.
constexpr int64_t kMaxRepeatedBytes = int64_t{1} << 31;
// Below this a copy into warm memory beats a borrowed buffer.
constexpr size_t kSmallestBorrowed = 4096;

absl::InlinedVector<int64_t, 8> DimsOf(const pb::TensorShapeProto& proto) {
  absl::InlinedVector<int64_t, 8> dims;
  for (const auto& dim : proto.dim()) dims.push_back(dim.size());
  return dims;
}

// Copies `values`, then repeats the last one, or a zero if there is none.
template <typename T, typename Values, typename Convert>
void Fill(const Values& values, Tensor* tensor, Convert convert) {
  const std::span<T> out = tensor->mutable_data<T>();
  const int64_t given =
      std::min<int64_t>(values.size(), static_cast<int64_t>(out.size()));
  for (int64_t i = 0; i < given; ++i) {
    out[i] = convert(values[static_cast<int>(i)]);
  }
  std::fill(out.begin() + given, out.end(), given > 0 ? out[given - 1] : T());
}

template <typename T, typename Values>
void Fill(const Values& values, Tensor* tensor) {
  Fill<T>(values, tensor, [](const auto& value) { return T(value); });
}

// Values come as real and imaginary parts; an odd last one is dropped.
template <typename T, typename Values>
void FillComplex(const Values& values, Tensor* tensor) {
  struct Pairs {
    const Values& values;
    int size() const { return values.size() / 2; }
    std::complex<T> operator[](int i) const {
      return {values[2 * i], values[2 * i + 1]};
    }
  };
  Fill<std::complex<T>>(Pairs{values}, tensor);
}

template <typename T, typename Values>
void FillHalf(const Values& values, Tensor* tensor) {
  Fill<T>(values, tensor, [](int32_t bits) {
    T value;
    value.bits = static_cast<uint16_t>(bits);
    return value;
  });
}

absl::Status FillHandles(const pb::TensorProto& proto, Tensor* tensor) {
  const std::span<ResourceHandle> out = tensor->mutable_data<ResourceHandle>();
  const size_t given =
      std::min<size_t>(proto.resource_handle_val_size(), out.size());
  for (size_t i = 0; i < given; ++i) {
    SLUICE_ASSIGN_OR_RETURN(
        out[i], ResourceHandleFromProto(
                    proto.resource_handle_val(static_cast<int>(i))));
  }
  return absl::OkStatus();
}

// Of an element in memory, without the characters of strings.
int64_t ElementBytes(DType dtype) {
  if (dtype == DType::kString) return sizeof(std::string);
  if (dtype == DType::kResource) return sizeof(ResourceHandle);
  return static_cast<int64_t>(ElementSize(dtype));
}

// What the values take in a tensor, where the last one given stands for all
// that follow; strings that are given have their bytes in the message.
absl::StatusOr<int64_t> TypedBytesOf(const pb::TensorProto& proto, DType dtype,
                                     const Shape& shape) {
  const int64_t element = ElementBytes(dtype);
  const int64_t given = proto.string_val_size();
  const int64_t last =
      given == 0 ? 0
                 : static_cast<int64_t>(proto.string_val().rbegin()->size());
  if (shape.size() <= kMaxRepeatedBytes / element) {
    const int64_t bytes = shape.size() * element;
    const int64_t repeated = std::max<int64_t>(shape.size() - given, 0);
    if (last == 0 || repeated <= (kMaxRepeatedBytes - bytes) / last) {
      return bytes + repeated * last;
    }
  }
  return InvalidArgument("TensorProto of shape ", shape.DebugString(),
                         " and type ", DTypeName(dtype),
                         " would repeat its values to more than 2 GiB");
}

absl::StatusOr<Tensor> FromTypedValues(const pb::TensorProto& proto,
                                       DType dtype, const Shape& shape) {
  SLUICE_RETURN_IF_ERROR(TypedBytesOf(proto, dtype, shape).status());
  SLUICE_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(dtype, shape));
  switch (dtype) {
    case DType::kFloat:
      Fill<float>(proto.float_val(), &tensor);
      break;
    case DType::kDouble:
      Fill<double>(proto.double_val(), &tensor);
      break;
    case DType::kInt32:
    case DType::kQint32:
      Fill<int32_t>(proto.int_val(), &tensor);
      break;
    case DType::kInt16:
    case DType::kUint16:
    case DType::kQint16:
    case DType::kQuint16:
      Fill<uint16_t>(proto.int_val(), &tensor);
      break;
    case DType::kInt8:
    case DType::kUint8:
    case DType::kQint8:
    case DType::kQuint8:
      Fill<uint8_t>(proto.int_val(), &tensor);
      break;
    case DType::kInt64:
      Fill<int64_t>(proto.int64_val(), &tensor);
      break;
    case DType::kUint32:
      Fill<uint32_t>(proto.uint32_val(), &tensor);
      break;
    case DType::kUint64:
      Fill<uint64_t>(proto.uint64_val(), &tensor);
      break;
    case DType::kBool:
      Fill<bool>(proto.bool_val(), &tensor);
      break;
    case DType::kHalf:
      FillHalf<Half>(proto.half_val(), &tensor);
      break;
    case DType::kBfloat16:
      FillHalf<BFloat16>(proto.half_val(), &tensor);
      break;
    case DType::kComplex64:
      FillComplex<float>(proto.scomplex_val(), &tensor);
      break;
    case DType::kComplex128:
      FillComplex<double>(proto.dcomplex_val(), &tensor);
      break;
    case DType::kString:
      Fill<std::string>(proto.string_val(), &tensor);
      break;
    case DType::kResource:
      SLUICE_RETURN_IF_ERROR(FillHandles(proto, &tensor));
      break;
    default:
      return Internal("No typed field for ", DTypeName(dtype));
  }
  return tensor;
}

absl::Status BadStringList(const Shape& shape) {
  return InvalidArgument("tensor_content of TensorProto does not hold ",
                         shape.size(), " strings as its shape ",
                         shape.DebugString(), " says");
}

// All lengths as varints, then all bytes. Strings and handles are stored so.
absl::StatusOr<Tensor> FromStringList(std::string_view content, DType dtype,
                                      const Shape& shape) {
  // Each length takes a byte, which bounds what is allocated.
  if (static_cast<uint64_t>(shape.size()) > content.size()) {
    return BadStringList(shape);
  }
  std::vector<uint32_t> lengths(shape.size());
  uint64_t total = 0;
  for (uint32_t& length : lengths) {
    if (!TakeVarint32(&content, &length)) return BadStringList(shape);
    total += length;
  }
  if (total != content.size()) return BadStringList(shape);
  SLUICE_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(dtype, shape));
  pb::ResourceHandleProto handle;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const std::string_view element = content.substr(0, lengths[i]);
    content.remove_prefix(lengths[i]);
    if (dtype == DType::kString) {
      tensor.mutable_data<std::string>()[i] = element;
    } else {
      if (!handle.ParseFromArray(element.data(),
                                 static_cast<int>(element.size()))) {
        return InvalidArgument("Element ", i,
                               " of a resource TensorProto does not parse");
      }
      SLUICE_ASSIGN_OR_RETURN(tensor.mutable_data<ResourceHandle>()[i],
                              ResourceHandleFromProto(handle));
    }
  }
  return tensor;
}

absl::Status CheckContent(std::string_view content, DType dtype,
                          const Shape& shape) {
  // Divides, because the product may overflow.
  const size_t element = ElementSize(dtype);
  if (content.size() % element != 0 ||
      content.size() / element != static_cast<uint64_t>(shape.size())) {
    return InvalidArgument("tensor_content of TensorProto has ", content.size(),
                           " bytes; shape ", shape.DebugString(), " and type ",
                           DTypeName(dtype), " do not fit to that");
  }
  if (dtype == DType::kBool) {
    // Any other byte in a C++ bool is undefined behaviour.
    for (char byte : content) {
      if (static_cast<uint8_t>(byte) > 1) {
        return InvalidArgument(
            "tensor_content of a bool TensorProto has a byte other than 0, 1");
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> FromContent(std::string_view content, DType dtype,
                                   const Shape& shape) {
  if (ElementSize(dtype) == 0) return FromStringList(content, dtype, shape);
  SLUICE_RETURN_IF_ERROR(CheckContent(content, dtype, shape));
  SLUICE_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(dtype, shape));
  std::memcpy(tensor.mutable_raw(), content.data(), content.size());
  return tensor;
}

absl::StatusOr<DType> StoredTypeOf(const pb::TensorProto& proto) {
  const DType dtype = DTypeFromProto(proto.dtype());
  if (!IsKnown(dtype) || IsRef(dtype)) {
    return InvalidArgument("TensorProto has dtype ",
                           static_cast<int>(proto.dtype()),
                           ", which is no type of a value");
  }
  if (dtype == DType::kVariant) {
    return Unimplemented("Tensors of type variant cannot be decoded");
  }
  return dtype;
}

}  // namespace

absl::StatusOr<Shape> ShapeFromProto(const pb::TensorShapeProto& proto) {
  if (proto.unknown_rank()) {
    return InvalidArgument("Shape has unknown rank where all sizes are needed");
  }
  return Shape::Create(DimsOf(proto));
}

absl::StatusOr<PartialShape> PartialShapeFromProto(
    const pb::TensorShapeProto& proto) {
  if (!proto.unknown_rank()) return PartialShape::Create(DimsOf(proto));
  if (proto.dim_size() > 0) {
    return InvalidArgument("Shape of unknown rank has ", proto.dim_size(),
                           " dimensions");
  }
  // In place: gcc 12 takes the move of an empty one for a read of garbage.
  return absl::StatusOr<PartialShape>(absl::in_place);
}

absl::StatusOr<ResourceHandle> ResourceHandleFromProto(
    const pb::ResourceHandleProto& proto) {
  ResourceHandle handle;
  handle.device = proto.device();
  handle.container = proto.container();
  handle.name = proto.name();
  handle.type_hash = proto.hash_code();
  handle.type_name = proto.maybe_type_name();
  if (proto.dtypes_and_shapes_size() > 0 &&
      proto.dtypes_and_shapes(0).dtype() != pb::DT_INVALID) {
    const auto& value = proto.dtypes_and_shapes(0);
    handle.value_dtype = DTypeFromProto(value.dtype());
    SLUICE_ASSIGN_OR_RETURN(handle.value_shape,
                            PartialShapeFromProto(value.shape()));
  }
  return handle;
}

absl::StatusOr<int64_t> BytesBeyondContent(const pb::TensorProto& proto) {
  SLUICE_ASSIGN_OR_RETURN(const DType dtype, StoredTypeOf(proto));
  SLUICE_ASSIGN_OR_RETURN(const Shape shape,
                          ShapeFromProto(proto.tensor_shape()));
  const auto content = static_cast<int64_t>(proto.tensor_content().size());
  if (content == 0) return TypedBytesOf(proto, dtype, shape);
  if (ElementSize(dtype) != 0) return 0;
  // Each element takes a byte there, or the content is refused.
  return std::min(shape.size(), content) * ElementBytes(dtype);
}

absl::StatusOr<Tensor> TensorFromProto(const pb::TensorProto& proto) {
  SLUICE_ASSIGN_OR_RETURN(const DType dtype, StoredTypeOf(proto));
  SLUICE_ASSIGN_OR_RETURN(const Shape shape,
                          ShapeFromProto(proto.tensor_shape()));
  if (shape.size() == 0) return Tensor::Create(dtype, shape);
  if (proto.tensor_content().empty()) {
    return FromTypedValues(proto, dtype, shape);
  }
  return FromContent(proto.tensor_content(), dtype, shape);
}

absl::StatusOr<Tensor> TensorFromProto(pb::TensorProto&& proto) {
  const pb::TensorProto& same = proto;
  if (proto.tensor_content().size() < kSmallestBorrowed) {
    return TensorFromProto(same);
  }
  SLUICE_ASSIGN_OR_RETURN(const DType dtype, StoredTypeOf(proto));
  SLUICE_ASSIGN_OR_RETURN(const Shape shape,
                          ShapeFromProto(proto.tensor_shape()));
  // No element needs more than 16 bytes' alignment; malloc gives that much.
  const bool aligned =
      reinterpret_cast<uintptr_t>(proto.tensor_content().data()) % 16 == 0;
  if (shape.size() == 0 || ElementSize(dtype) == 0 || !aligned) {
    return TensorFromProto(same);
  }
  SLUICE_RETURN_IF_ERROR(CheckContent(proto.tensor_content(), dtype, shape));
  auto content =
      std::make_unique<std::string>(std::move(*proto.mutable_tensor_content()));
  char* const data = content->data();
  const size_t size = content->size();
  Buffer* const buffer =
      Buffer::Borrow(data, size, [owned = std::move(content)] {});
  if (buffer == nullptr) return ResourceExhausted("OOM when decoding a tensor");
  return Tensor::FromBuffer(dtype, shape, buffer);
}

}  // namespace sluice
