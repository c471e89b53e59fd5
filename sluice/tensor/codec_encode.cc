// Shapes, handles and tensors to messages.
#include <cstring>

#include "sluice/base/coding.h"
#include "sluice/tensor/codec.h"

namespace sluice {
namespace {

void AppendStringList(std::span<const std::string> elements, std::string* out) {
  size_t total = 0;
  for (const std::string& element : elements) total += element.size() + 5;
  out->reserve(total);
  for (const std::string& element : elements) {
    AppendVarint(element.size(), out);
  }
  for (const std::string& element : elements) out->append(element);
}

void AppendHandles(std::span<const ResourceHandle> handles, std::string* out) {
  std::vector<std::string> elements;
  pb::ResourceHandleProto proto;
  for (const ResourceHandle& handle : handles) {
    ResourceHandleToProto(handle, &proto);
    elements.push_back(proto.SerializeAsString());
  }
  AppendStringList(elements, out);
}

// Whether a Python client of 1.15 sends several such values as raw bytes.
bool PythonSendsRaw(DType dtype) {
  switch (dtype) {
    case DType::kFloat:
    case DType::kDouble:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUint8:
    case DType::kUint32:
    case DType::kUint64:
      return true;
    default:
      return IsQuantized(dtype);
  }
}

template <typename T, typename Field>
void AddAll(const Tensor& tensor, Field* field) {
  const std::span<const T> values = tensor.data<T>();
  field->Reserve(static_cast<int>(values.size()));
  for (const T& value : values) field->Add(value);
}

template <typename T, typename Field>
void AddPairs(const Tensor& tensor, Field* field) {
  for (const std::complex<T>& value : tensor.data<std::complex<T>>()) {
    field->Add(value.real());
    field->Add(value.imag());
  }
}

template <typename T>
void AddBits(const Tensor& tensor, pb::TensorProto* proto) {
  for (const T& value : tensor.data<T>()) proto->add_half_val(value.bits);
}

void SetContent(const Tensor& tensor, pb::TensorProto* proto) {
  std::string* const content = proto->mutable_tensor_content();
  if (tensor.dtype() == DType::kString) {
    AppendStringList(tensor.data<std::string>(), content);
  } else if (tensor.dtype() == DType::kResource) {
    AppendHandles(tensor.data<ResourceHandle>(), content);
  } else if (tensor.bytes() > 0) {
    content->assign(static_cast<const char*>(tensor.raw()), tensor.bytes());
  }
}

}  // namespace

void AppendTypedValues(const Tensor& tensor, pb::TensorProto* proto) {
  switch (tensor.dtype()) {
    case DType::kFloat:
      return AddAll<float>(tensor, proto->mutable_float_val());
    case DType::kDouble:
      return AddAll<double>(tensor, proto->mutable_double_val());
    case DType::kInt32:
    case DType::kQint32:
      return AddAll<int32_t>(tensor, proto->mutable_int_val());
    case DType::kInt16:
    case DType::kQint16:
      return AddAll<int16_t>(tensor, proto->mutable_int_val());
    case DType::kUint16:
    case DType::kQuint16:
      return AddAll<uint16_t>(tensor, proto->mutable_int_val());
    case DType::kInt8:
    case DType::kQint8:
      return AddAll<int8_t>(tensor, proto->mutable_int_val());
    case DType::kUint8:
    case DType::kQuint8:
      return AddAll<uint8_t>(tensor, proto->mutable_int_val());
    case DType::kInt64:
      return AddAll<int64_t>(tensor, proto->mutable_int64_val());
    case DType::kUint32:
      return AddAll<uint32_t>(tensor, proto->mutable_uint32_val());
    case DType::kUint64:
      return AddAll<uint64_t>(tensor, proto->mutable_uint64_val());
    case DType::kBool:
      return AddAll<bool>(tensor, proto->mutable_bool_val());
    case DType::kHalf:
      return AddBits<Half>(tensor, proto);
    case DType::kBfloat16:
      return AddBits<BFloat16>(tensor, proto);
    case DType::kComplex64:
      return AddPairs<float>(tensor, proto->mutable_scomplex_val());
    case DType::kComplex128:
      return AddPairs<double>(tensor, proto->mutable_dcomplex_val());
    case DType::kString:
      for (const std::string& value : tensor.data<std::string>()) {
        proto->add_string_val(value);
      }
      return;
    case DType::kResource:
      for (const ResourceHandle& handle : tensor.data<ResourceHandle>()) {
        ResourceHandleToProto(handle, proto->add_resource_handle_val());
      }
      return;
    default:
      return;
  }
}

void ShapeToProto(const Shape& shape, pb::TensorShapeProto* proto) {
  proto->Clear();
  for (int64_t size : shape.dims()) proto->add_dim()->set_size(size);
}

void PartialShapeToProto(const PartialShape& shape,
                         pb::TensorShapeProto* proto) {
  proto->Clear();
  proto->set_unknown_rank(!shape.known_rank());
  for (int64_t size : shape.dims()) proto->add_dim()->set_size(size);
}

void ResourceHandleToProto(const ResourceHandle& handle,
                           pb::ResourceHandleProto* proto) {
  proto->Clear();
  proto->set_device(handle.device);
  proto->set_container(handle.container);
  proto->set_name(handle.name);
  proto->set_hash_code(handle.type_hash);
  proto->set_maybe_type_name(handle.type_name);
  if (handle.value_dtype != DType::kInvalid) {
    auto* value = proto->add_dtypes_and_shapes();
    value->set_dtype(DTypeToProto(handle.value_dtype));
    PartialShapeToProto(handle.value_shape, value->mutable_shape());
  }
}

void TensorToProto(const Tensor& tensor, pb::TensorProto* proto) {
  proto->Clear();
  proto->set_dtype(DTypeToProto(tensor.dtype()));
  ShapeToProto(tensor.shape(), proto->mutable_tensor_shape());
  if (tensor.initialized()) SetContent(tensor, proto);
}

void TensorToTypedProto(const Tensor& values, const Shape& shape,
                        pb::TensorProto* proto) {
  proto->Clear();
  proto->set_dtype(DTypeToProto(values.dtype()));
  ShapeToProto(shape, proto->mutable_tensor_shape());
  if (!values.initialized()) return;
  if (PythonSendsRaw(values.dtype()) && shape.size() > 1 &&
      values.size() == shape.size()) {
    SetContent(values, proto);
  } else {
    AppendTypedValues(values, proto);
  }
}

void TensorToTypedProto(const Tensor& tensor, pb::TensorProto* proto) {
  TensorToTypedProto(tensor, tensor.shape(), proto);
}

}  // namespace sluice
